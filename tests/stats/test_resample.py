"""Against a plain bootstrap that draws rows, the moments of a Poisson count, and sums by hand."""

import math
import resource

import pytest
import torch

from unskew.stats.resample import CHUNK, SHARES, counts, drawn_sums, grouped_sums


def test_counts_are_poisson():
    shares = [n / 65_536 for n in SHARES]
    assert sum(SHARES) == 65_536
    assert sum(k * n for k, n in enumerate(SHARES)) == 65_536  # mean 1
    assert sum((k - 1) ** 2 * n for k, n in enumerate(SHARES)) == 65_536  # variance 1
    assert max(abs(s - math.exp(-1) / math.factorial(k)) for k, s in enumerate(shares)) < 3e-4
    often = torch.cat([w for _, w in counts(10, 3 * CHUNK, seed=3)], 1)
    assert often.shape == (10, 3 * CHUNK)
    # 491,520 counts: the standard error of their mean is 0.0014, that of their variance sqrt(3) times as much.
    assert float(often.mean()) == pytest.approx(1.0, abs=0.006)
    assert float(often.var()) == pytest.approx(1.0, abs=0.011)
    rows = often - often.mean(1, keepdim=True)
    agree = (rows @ rows.T / often.shape[1]).fill_diagonal_(0)
    assert float(agree.abs().max()) < 5 / math.sqrt(often.shape[1])  # draws have nothing to do with one another


def test_sums_are_those_of_the_counts():
    n = CHUNK + 77
    whole, fractions = torch.arange(2 * n).view(n, 2) % 3, torch.rand(n, 1, generator=torch.Generator().manual_seed(0))
    often = torch.cat([w for _, w in counts(5, n, seed=1)], 1).double()
    assert torch.equal(drawn_sums(lambda part: whole[part], n, 5, seed=1), often @ whole.double())
    torch.testing.assert_close(drawn_sums(lambda part: fractions[part], n, 5, seed=1), often @ fractions.double())
    group = torch.arange(n) % 4 - 1
    by_group = grouped_sums(lambda part: whole[part], group, 3, 5, seed=1)
    for g in range(3):
        assert torch.equal(by_group[:, g], often[:, group == g] @ whole[group == g].double())


def test_interval_of_a_ratio_is_that_of_a_plain_bootstrap():
    # A mean over rows of one kind, which is a ratio of sums: 95 % intervals by 2,000 plain draws and by 2,000 draws of counts.
    g = torch.Generator().manual_seed(0)
    n, draws = 3000, 2000
    kind, value = (torch.rand(n, generator=g) < 0.3).double(), torch.rand(n, generator=g, dtype=torch.float64).exp()
    parts = torch.stack([kind, kind * value], 1)
    plain = []
    for _ in range(draws):
        rows = torch.randint(n, (n,), generator=g)
        plain.append(float((kind * value)[rows].sum() / kind[rows].sum()))
    sums = drawn_sums(lambda part: parts[part], n, draws, seed=0)
    ends = torch.tensor([0.025, 0.975], dtype=torch.float64)
    expected = torch.tensor(plain, dtype=torch.float64).quantile(ends)
    got = (sums[:, 1] / sums[:, 0]).quantile(ends)
    # A 2.5 % quantile of 2,000 normal draws has a standard error of 0.060 standard deviations; four of them, and twice.
    spread = float(value[kind > 0].std()) / math.sqrt(float(kind.sum()))
    assert float((got - expected).abs().max()) < 4 * math.sqrt(2) * 0.06 * spread


def test_memory_is_that_of_a_chunk():
    n, draws = 40 * CHUNK, 100  # all counts together would be 262 MB of 32-bit numbers
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sums = drawn_sums(lambda part: torch.ones(part.stop - part.start, 1, dtype=torch.long), n, draws, seed=0)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < 100  # MB
    assert float((sums.mean() - n) / math.sqrt(n)) == pytest.approx(0, abs=0.5)  # the mean of 100 draws has a tenth of the spread
