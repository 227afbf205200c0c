"""Sums over chunks are those of all rows at once, and readers fitted on a sample judge rows that they have not seen."""

import pytest
import torch

from unskew.core import matrix
from unskew.core.errors import UserError
from unskew.core.matrix import spilled
from unskew.measure import representation_bias
from unskew.stats import streamed
from unskew.stats.readers import held_out_opinion


@pytest.fixture
def small(monkeypatch):
    """Chunks of 100 rows, readers fitted on 2,000."""
    monkeypatch.setattr(matrix, "CHUNK", 100)
    monkeypatch.setattr(streamed, "FITTED", 2000)


def rows(n, seed=0, agree=0.85):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=g)
    shown = torch.where(torch.rand(n, generator=g) < agree, y, torch.randint(0, 3, (n,), generator=g))
    x = torch.nn.functional.one_hot(shown, 3) * 2.0 + torch.randn(n, 3, generator=g)
    return torch.cat([1000 + 1e-2 * x, x[:, :1] * 0 + 7], 1), y, shown  # a small spread on a large offset, and a constant


def test_moments_are_those_of_all_rows(small):
    x = rows(1234)[0]
    found = streamed.moments(x)
    torch.testing.assert_close(found.mean, x.double().mean(0), rtol=1e-12, atol=0)
    torch.testing.assert_close(found.std, x.double().std(0), rtol=1e-9, atol=1e-12)
    assert found.varies.tolist() == [True, True, True, False]
    with pytest.raises(UserError, match="NaN or infinity in 2 rows, first in row 350"):
        streamed.moments(torch.cat([x[:350], x[:1] * torch.nan, x[:200], x[:1] * torch.inf]))


def test_the_bias_of_many_rows_is_that_of_all_of_them(small, tmp_path, monkeypatch):
    x, y, _ = rows(6000)
    many = representation_bias(x, y, permutations=3, seed=1)
    stored = representation_bias(spilled(x, tmp_path), y, permutations=3, seed=1)
    monkeypatch.setattr(streamed, "FITTED", 10_000)
    whole = representation_bias(x, y, permutations=3, seed=1)
    assert many.bias == stored.bias  # to the bit: memory or file
    assert torch.equal(many.gain, stored.gain)
    assert whole.note == "1 of 4 features are constant"
    assert many.note == "1 of 4 features are constant; fitted on 2,000 of 6,000 rows, drawn class by class; every row is judged"
    assert many.n == len(many.gain) == 6000
    assert many.bias == pytest.approx(whole.bias, abs=0.01)
    assert many.low < whole.bias < many.high
    assert many.per_class == pytest.approx(whole.per_class, abs=0.02)
    assert float(torch.corrcoef(torch.stack([many.gain, whole.gain]))[0, 1]) > 0.99
    assert many.entropy == pytest.approx(whole.entropy, rel=1e-12)
    assert many.bias * many.entropy == pytest.approx(float(many.gain.mean()), rel=1e-9)  # B is the mean gain over H


def test_wide_rows_are_fitted_on_fewer_and_read_in_smaller_chunks(small, tmp_path, monkeypatch):
    x, y, _ = rows(3000)
    wide = spilled(x.repeat(1, 25), tmp_path)  # 100 columns
    assert [part.stop for part in matrix.passes(*wide.shape)][:3] == [64, 128, 192]
    monkeypatch.setattr(streamed, "NUMBERS", 100_000)
    found = representation_bias(wide, y, permutations=0, bootstrap=0)
    assert found.note.endswith("fitted on 1,000 of 3,000 rows, drawn class by class; every row is judged")
    assert held_out_opinion(wide, y, 3, 1e-2).eq(y).float().mean() > 0.75  # a third by chance


def test_rows_of_weight_0_are_not_read(small, tmp_path):
    x, y, _ = rows(5000)
    damaged = x.clone()
    weight = torch.ones(5000)
    weight[::7] = 0
    damaged[::7] = torch.nan
    found = representation_bias(spilled(damaged, tmp_path), y, weight, permutations=0)
    alone = representation_bias(x[weight > 0], y[weight > 0], permutations=0)
    assert found.bias == alone.bias
    assert torch.isnan(found.gain[::7]).all()


def test_weights_move_the_bias_as_they_move_the_rows(small, tmp_path):
    # A weight of 2 on every row that agrees with the feature is the same as having it twice, up to the sample drawn.
    x, y, shown = rows(4500, agree=0.6)
    weight = torch.where(shown == y, 2.0, 1.0)
    twice = torch.cat([torch.arange(4500), (shown == y).nonzero().flatten()])
    found = representation_bias(spilled(x, tmp_path), y, weight, permutations=0, bootstrap=0)
    written_out = representation_bias(x[twice], y[twice], permutations=0, bootstrap=0)
    assert found.bias == pytest.approx(written_out.bias, abs=0.015)


def test_an_opinion_of_many_rows(small, tmp_path):
    x, y, shown = rows(6000)
    found = held_out_opinion(spilled(x[:, :3], tmp_path), y, 3, 1e-2)
    assert float((found == shown).double().mean()) > 0.85  # it reads what the feature shows,
    assert float((found == y)[shown != y].double().mean()) < 0.3  # not the class of the rows that contradict it
