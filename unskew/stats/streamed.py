"""Statistics of more rows than fit into memory: sums in passes over chunks, and readers fitted on a stated sample.

A reader of a few hundred numbers is known to a thousandth of a nat after a few hundred thousand rows; more of them only cost time.
So it is fitted on a stratified sample, while every row is judged, in a second pass, by a reader that has not seen it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.matrix import Rows, only, passes
from unskew.stats.sample import stratified

FITTED = 200_000  # rows that a reader is fitted on, at most
NUMBERS = 2**24  # and numbers in them: rows of more than 83 columns are fewer. A fit holds about five copies of them


@dataclass(frozen=True, slots=True)
class Moments:
    """Of every column: mean, standard deviation (of n - 1), and whether it varies."""

    mean: Tensor  # (D,) double precision
    std: Tensor
    varies: Tensor


def moments(features: Rows) -> Moments:
    r"""One pass, in double precision; a chunk of n' rows is merged into the n before it (Chan, Golub and LeVeque, 1979).

    .. math::  \mu \leftarrow \mu + \frac{n'}{n + n'} \delta, \qquad M \leftarrow M + M' + \frac{n n'}{n + n'} \delta^2, \qquad
               \delta = \mu' - \mu, \qquad \sigma^2 = \frac{M}{n - 1}

    >>> [round(one, 6) for one in moments(torch.tensor([[1.0, 5.0], [3.0, 5.0]])).std.tolist()]
    [1.414214, 0.0]
    """
    rows = 0
    bad, first = 0, -1
    for part in passes(len(features), features.shape[-1]):
        x = features[part].double().flatten(1)
        wrong = ~torch.isfinite(x).all(1)
        if bool(wrong.any()):
            first = rows + int(wrong.nonzero()[0]) if first < 0 else first
            bad += int(wrong.sum())
        own = x.mean(0)
        square = (x - own).square().sum(0)
        if rows == 0:
            mean, total, low, high = own, square, x.amin(0), x.amax(0)
        else:
            delta, share = own - mean, len(x) / (rows + len(x))
            mean, total = mean + share * delta, total + square + rows * share * delta.square()
            low, high = torch.minimum(low, x.amin(0)), torch.maximum(high, x.amax(0))
        rows += len(x)
    if bad:
        raise UserError(f"features have NaN or infinity in {bad} rows, first in row {first}")
    return Moments(mean, (total / max(1, rows - 1)).sqrt(), high > low)


@dataclass(frozen=True, slots=True)
class Standard:
    """Standardised columns that vary, after a column of ones, in single precision: computed when rows are asked for."""

    features: Rows
    moments: Moments

    def __len__(self) -> int:
        return len(self.features)

    @property
    def width(self) -> int:
        return 1 + int(self.moments.varies.sum())

    def __getitem__(self, rows: slice | Tensor) -> Tensor:
        found = self.features[rows].flatten(1)
        x = torch.ones(len(found), self.width)
        kept = self.moments.varies
        for part in passes(*found.shape):  # double precision takes twice the memory, and again for every difference
            x[part, 1:] = ((found[part][:, kept].double() - self.moments.mean[kept]) / self.moments.std[kept]).float()
        return x


@dataclass(frozen=True, slots=True)
class Scaled:
    """Columns with mean 0 and standard deviation 1, in single precision, computed when rows are asked for; a constant one is 0."""

    features: Rows
    moments: Moments

    def __len__(self) -> int:
        return len(self.features)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.features), len(self.moments.mean)

    def __getitem__(self, rows: slice | Tensor) -> Tensor:
        x = self.features[rows].flatten(1).double() - self.moments.mean
        return (x / self.moments.std.clamp(min=1e-12)).float()

    def only(self, rows: Tensor) -> "Scaled":
        """Some rows, scaled as they are among all."""
        return Scaled(only(self.features, rows), self.moments)


def fitted(width: int) -> int:
    """Rows that a reader of so many columns is fitted on, at most.

    >>> fitted(64), fitted(336)
    (200000, 49932)
    """
    return min(FITTED, NUMBERS // max(1, width))


def sample_of(y: Tensor, weight: Tensor, least: int, seed: int, most: int) -> tuple[Tensor, Tensor]:
    """(positions, weights) of a stratified sample, in order: every class has the share of the weight that it has in all rows.

    >>> picked, weight = sample_of(torch.tensor([0] * 900 + [1] * 100), torch.full((1000,), 1e-3), 50, 0, most=100)
    >>> len(picked), round(float(weight[-50:].sum()), 6)
    (140, 0.1)
    """
    picked = stratified(y, most, seed=seed, least=least)
    size = int(y.max()) + 1
    whole = torch.zeros(size, dtype=torch.float64).index_add_(0, y, weight.double())
    there = torch.zeros(size, dtype=torch.float64).index_add_(0, y[picked], weight[picked].double())
    return picked, weight[picked].double() * (whole / there.clamp(min=1e-300))[y[picked]]


def folds_of_all(rows: int, folds: int, picked: Tensor, fold: Tensor) -> Tensor:
    """(n,) the fold whose reader judges each row: its own for a row of the sample; any reader has not seen the others."""
    every = (torch.arange(rows) % folds).to(torch.uint8)
    every[picked] = fold.to(torch.uint8)
    return every


def held_out(x: Standard, w: Tensor, fold: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """(rows, logits) of all rows, chunk by chunk, by the readers w (folds, D, C) of their folds."""
    for part in passes(len(x), x.width):
        block, mine = x[part], fold[part]
        logits = torch.empty(len(block), w.shape[2])
        for k in range(len(w)):
            inside = mine == k
            logits[inside] = block[inside] @ w[k]
        yield part, logits


def by_class(y: Tensor, value: Tensor, size: int) -> Tensor:
    """(size,) sums of a value over the rows of each class."""
    return torch.zeros(size, dtype=torch.float64).index_add_(0, y, value)


def without_numbers(features: Rows) -> Tensor:
    """(n,) rows that have a NaN."""
    parts = passes(len(features), features.shape[-1])
    return torch.cat([torch.isnan(features[part]).flatten(1).any(1) for part in parts])
