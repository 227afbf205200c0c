"""Features are computed once, what an interruption left is kept, and a user's own representation is one like any other."""

import dataclasses

import pytest
import torch

from tests.support.pictures import features, pictures
from unskew import features as _base
from unskew.core.fetch import cache
from unskew.data.dataset import Memory
from unskew.data.native import picture_of
from unskew.features import compute, compute_many, spec
from unskew.stats.sample import stratified

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


def test_chunks_that_lack_different_features_get_what_they_lack(monkeypatch):
    monkeypatch.setattr(_base, "CHUNK", 4)
    g = torch.Generator().manual_seed(0)
    data = pictures(torch.randint(0, 256, (12, 3, 64, 64), dtype=torch.uint8, generator=g))
    specs, rows = [spec(name) for name in ("detail", "tone", "texture")], torch.arange(12)
    whole = compute(data, specs, rows)[1]
    for one, number in zip(specs, (0, 1, 1), strict=True):
        (place,) = (cache() / "features" / data.fingerprint / one.key).glob(f"{number:05d}-*.safetensors")
        place.unlink()
    again = compute(data, specs, rows)[1]
    for name, block in whole.items():
        assert torch.equal(again[name], block), name


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


@pytest.mark.parametrize("name", ["local", "overlay", "sensor:kind=pattern", "sensor:kind=pixels"])
def test_what_compares_rows_learns_from_a_sample_and_scores_every_row(name, monkeypatch):
    g = torch.Generator().manual_seed(0)
    x = torch.nn.functional.interpolate(torch.randint(0, 256, (300, 3, 9, 9), generator=g).float(), size=72, mode="bilinear")
    x = (x + 20 * torch.randn(300, 3, 72, 72, generator=g)).clamp(0, 255).byte()
    x[::3, :, 8:16, :8] = (255 * torch.randint(0, 2, (8, 8), generator=g)).byte()  # a mark that many share
    x[::2, :, 40, 30] = 255
    data = pictures(x)
    one, rows = spec(name), torch.arange(300)
    looks = torch.stack([torch.from_numpy(one.kind.look(picture_of(p), one.cfg)) for p in x])
    whole = compute(data, [one], rows)[1][name]
    expected = one.kind.score(one.kind.learn(looks, data.y, one.cfg), looks, rows, one.cfg)
    torch.testing.assert_close(whole, expected, equal_nan=True)
    monkeypatch.setattr(_base, "CHUNK", 32)
    monkeypatch.setattr(_base, "SAMPLED", 200)
    monkeypatch.setattr(_base, "FEW", 10)
    sample = stratified(data.y, 200)
    place = torch.full((300,), -1)
    place[sample] = torch.arange(len(sample))
    expected = one.kind.score(one.kind.learn(looks[sample], data.y[sample], one.cfg), looks, place, one.cfg)
    assert expected.nan_to_num().abs().sum() > 0
    torch.testing.assert_close(compute(data, [one], rows)[1][name], expected, equal_nan=True)
    monkeypatch.setattr(_base, "HELD", 10)
    index, found = compute_many(data, [spec("color"), one], rows)
    assert torch.equal(index, rows)
    torch.testing.assert_close(found[name][:], expected, equal_nan=True)
    judged = (~found[name][:].isnan().any(1)).sum()
    assert int(judged) == (200 if name == "local" else 300)  # half of the sample was fitted on


@pytest.mark.parametrize("sampled", [60, 149])
def test_rows_of_a_sample_are_read_once_and_keep_their_place(sampled, monkeypatch):
    monkeypatch.setattr(_base, "CHUNK", 16)
    monkeypatch.setattr(_base, "SAMPLED", sampled)
    whole = pictures(torch.randint(0, 256, (150, 3, 40, 40), dtype=torch.uint8))
    readable = torch.ones(150, dtype=torch.bool)
    readable[torch.tensor([0, 7, 149, *range(100, 140)])] = False
    read = []

    class Counted(Memory):
        def rows(self, index):
            read.extend(index.tolist())
            return super().rows(index)

    data = dataclasses.replace(whole, inputs=Counted(whole.inputs.x, readable))
    rows = torch.randperm(150, generator=torch.Generator().manual_seed(0))
    index, found = compute(data, [spec("sensor:kind=pixels"), spec("color")], rows)
    assert torch.equal(index, rows[readable[rows]])
    torch.testing.assert_close(found["color"], data.inputs.x[index].float().flatten(2).amax(2) / 255)
    assert len(found["sensor:kind=pixels"]) == len(index)
    assert sorted(read) == list(range(150))


@pytest.mark.parametrize("side", [32, 48, 144])
def test_pieces_of_a_batch_have_the_features_of_the_whole(monkeypatch, side):
    data = pictures(torch.randint(0, 256, (7, 3, side, side + 5 * (side == 48)), dtype=torch.uint8))
    specs = [spec(name) for name in ("color:kind=histogram", "crop", "low_resolution", "spectrum", "texture", "position")]
    whole = {one.name: _base._one(one, data, torch.arange(7), data.inputs.x.float() / 255) for one in specs}
    monkeypatch.setattr(_base, "PIECE", 2 * 3 * side * side)
    for name, block in _base._in_pieces(specs, data, torch.arange(7), data.inputs.x).items():
        torch.testing.assert_close(block, whole[name], rtol=1e-4, atol=1e-4, msg=name)
