"""Features are computed once, what an interruption left is kept, and a user's own representation is one like any other."""

import dataclasses

import pytest
import torch

from tests.support.pictures import features, pictures
from unskew import features as _base
from unskew.data.dataset import Memory
from unskew.features import compute, spec

pytestmark = pytest.mark.usefixtures("own_cache")


def test_features_are_computed_once(monkeypatch):
    data = pictures(torch.randint(0, 256, (50, 3, 16, 16), dtype=torch.uint8))
    specs = [spec("color"), spec("texture")]
    first = compute(data, specs, torch.arange(50))[1]
    monkeypatch.setattr(_base, "_chunk", None)  # would fail if called
    again = compute(data, specs, torch.arange(50))[1]
    for name in first:
        torch.testing.assert_close(first[name], again[name], rtol=0, atol=0)


def test_an_interrupted_computation_keeps_its_chunks(monkeypatch):
    data = pictures(torch.randint(0, 256, (50, 3, 16, 16), dtype=torch.uint8))
    monkeypatch.setattr(_base, "CHUNK", 10)
    real, calls = _base._chunk, []

    def breaks(*words):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(*words)

    monkeypatch.setattr(_base, "_chunk", breaks)
    with pytest.raises(KeyboardInterrupt):
        compute(data, [spec("color")], torch.arange(50))
    found = compute(data, [spec("color")], torch.arange(50))[1]["color"]
    assert len(calls) == 4 + 2  # three chunks were kept; the fourth and fifth were computed now
    torch.testing.assert_close(found, data.inputs.x.float().flatten(2).amax(2) / 255)


def test_a_users_own_representation_by_dotted_name():
    data = pictures(torch.randint(0, 256, (20, 3, 8, 8), dtype=torch.uint8))
    assert features(data, "tests.support.own_representation").flatten().tolist() == data.inputs.x[:, 0, 0, 0].div(255).tolist()


def test_rows_in_any_order_get_their_own_features():
    data = pictures(torch.randint(0, 256, (50, 3, 16, 16), dtype=torch.uint8))
    rows = torch.randperm(50, generator=torch.Generator().manual_seed(0))
    index, found = compute(data, [spec("color"), spec("texture")], rows)
    assert torch.equal(index, rows)
    torch.testing.assert_close(found["color"], data.inputs.x[rows].float().flatten(2).amax(2) / 255)


def test_a_chunk_without_a_readable_row_has_no_features(monkeypatch):
    monkeypatch.setattr(_base, "CHUNK", 10)
    whole = pictures(torch.randint(0, 256, (30, 3, 16, 16), dtype=torch.uint8))
    readable = torch.ones(30, dtype=torch.bool)
    readable[10:20] = False
    data = dataclasses.replace(whole, inputs=Memory(whole.inputs.x, readable))
    for _ in range(2):  # computed, and from the cache
        index, found = compute(data, [spec("color")], torch.arange(30))
        assert index.tolist() == [*range(10), *range(20, 30)]
        torch.testing.assert_close(found["color"], data.inputs.x[index].float().flatten(2).amax(2) / 255)


@pytest.mark.parametrize("side", [32, 48, 144])
def test_pieces_of_a_batch_have_the_features_of_the_whole(monkeypatch, side):
    data = pictures(torch.randint(0, 256, (7, 3, side, side + 5 * (side == 48)), dtype=torch.uint8))
    specs = [spec(name) for name in ("color:kind=histogram", "crop", "low_resolution", "spectrum", "texture", "position")]
    whole = {one.name: _base._one(one, data, torch.arange(7), data.inputs.x.float() / 255) for one in specs}
    monkeypatch.setattr(_base, "PIECE", 2 * 3 * side * side)
    for name, block in _base._computed(specs, data, torch.arange(7), data.inputs.x).items():
        torch.testing.assert_close(block, whole[name], rtol=1e-4, atol=1e-4, msg=name)
