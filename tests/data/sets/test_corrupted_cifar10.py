"""corrupted-cifar10: exact counts, rows corrupted by their kind, and what it refuses. Photographs are made up here."""

import pytest
import torch

from unskew.core.errors import UserError
from unskew.data.cifar import Photographs
from unskew.data.sets import corrupted_cifar10
from unskew.data.sets.corrupted_cifar10 import KINDS, Config, corrupted, make
from unskew.stats.corrupt import corrupt


@pytest.fixture(autouse=True)
def photographs(monkeypatch):
    g = torch.Generator().manual_seed(0)
    x = torch.randint(0, 256, (1200, 3, 32, 32), generator=g).to(torch.uint8)
    made = Photographs(x, torch.arange(1200) % 10, 1000)
    monkeypatch.setattr(corrupted_cifar10, "cifar10", lambda: made)
    return made


def test_counts_are_exact_and_the_test_is_even():
    data = make(Config(ratio=0.9, rows=1000, test=200))
    early = torch.cat([data.rows("train"), data.rows("val")])
    for c in range(10):
        counts = data.bias[early, 0][data.y[early] == c].bincount(minlength=10)
        assert int(counts[c]) == 90
        assert sorted(counts.tolist())[:9] == [1] * 8 + [2]
        test = data.bias[data.rows("test"), 0][data.y[data.rows("test")] == c].bincount(minlength=10)
        assert test.tolist() == [2] * 10
    assert (len(data.rows("train")), len(data.rows("val")), len(data.rows("test"))) == (900, 100, 200)
    assert data.bias_values == (KINDS,)


def test_every_row_is_corrupted_by_its_kind(photographs):
    x = photographs.x[:20]
    kind = torch.tensor([8] * 10 + [4] * 10)  # pixelate and contrast draw nothing
    out = corrupted(x, kind, 3, 0).float()
    parts = [corrupt(x[a:b] / 255, name, 3, torch.Generator()) for a, b, name in ((0, 10, "pixelate"), (10, 20, "contrast"))]
    expected = torch.cat(parts)
    torch.testing.assert_close(out, (255 * expected).round(), rtol=0, atol=1)
    assert torch.equal(make(Config(rows=200, test=100)).inputs.x, make(Config(rows=200, test=100)).inputs.x)


def test_refusals():
    for settings, match in (
        ({"severity": 6}, "must be 1 to 5"),
        ({"ratio": 1.2}, "must lie in"),
        ({"rows": 5}, "must lie in 100"),
    ):
        with pytest.raises(UserError, match=match):
            Config(**settings)
