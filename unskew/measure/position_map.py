r"""Position map: where in the image the class can be read, tile by tile, each by a linear reader of its own.

.. math::
    M_{tc} = P\big( s_{tc}(i) > s_{tc}(j) \mid y_i = c,\ y_j \ne c \big), \qquad
    s_t = X_t \beta_t, \quad \beta_t = (X_t^\top \Omega X_t + n \delta I)^{-1} X_t^\top \Omega\, \mathrm{onehot}(y)

======  ==========  ===================================================================================
X_t     tiles       (n, D) standardised features of tile t, with a constant
Omega   .           weights that give every class the same total
M       .area       (T, C) area under the curve of class c against the rest: 0.5 nothing, 1 everything
======  ==========  ===================================================================================

Every row is scored by readers that were not fitted on it; all tiles and folds are solved in one batch. `level` is the area that the
largest of all tiles reaches by chance in one of twenty data sets.

Source: ridge regression on class codes; the area under the curve as a rank statistic, Hanley and McNeil, Radiology 1982; the bound of
Bonferroni over tiles and classes.
Differs: nothing.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core.errors import UserError
from unskew.stats.readers import class_balanced, spread_folds

FOLDS = 5
DECAY = 0.05


@dataclass(frozen=True, slots=True)
class PositionMap:
    area: Tensor  # (T, C); NaN for a class without rows
    level: Tensor  # (C,) the area below which a tile of the class is within chance
    n: int

    @property
    def above(self) -> Tensor:
        """(T, C) whether a tile shows the class by more than chance."""
        return self.area > self.level


def position_map(tiles: Tensor, y: Tensor, *, folds: int = FOLDS, decay: float = DECAY, seed: int = 0) -> PositionMap:
    """Areas under the curve of every tile and class; `tiles` is (n, T, D).

    >>> y = torch.arange(60) % 2
    >>> tiles = torch.stack([torch.zeros(60), y.float()], 1)[:, :, None]  # the second tile shows the class
    >>> position_map(tiles, y).area[:, 1].tolist()
    [0.5, 1.0]
    """
    if tiles.ndim != 3 or len(tiles) != len(y) or y.ndim != 1:
        raise UserError(f"position_map: tiles must be (n, T, D) for n labels; got {tuple(tiles.shape)} and {tuple(y.shape)}")
    classes = int(y.max()) + 1
    counts = y.bincount(minlength=classes)
    x = tiles.transpose(0, 1).double()  # (T, n, D)
    x = (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True).clamp(min=1e-6)
    x = torch.cat([torch.ones_like(x[:, :, :1]), x], 2)
    weight, target = class_balanced(y), F.one_hot(y, classes).double()
    fold = spread_folds(y, folds, seed)
    products, answers = [], []
    for k in range(folds):
        rows = fold == k
        part = x[:, rows].transpose(1, 2) * weight[rows]
        products.append(part @ x[:, rows])
        answers.append(part @ target[rows])
    square, right = torch.stack(products, 1), torch.stack(answers, 1)  # (T, folds, ...)
    penalty = decay * len(y) * torch.eye(x.shape[2], dtype=x.dtype)
    penalty[0, 0] = 1e-9
    beta = torch.linalg.solve(square.sum(1, keepdim=True) - square + penalty, right.sum(1, keepdim=True) - right)
    score = torch.einsum("tnd,tndc->tnc", x, beta[:, fold]).round(decimals=9)  # equal scores must be equal in every digit
    area = torch.stack([_area(score[:, :, c], y == c) for c in range(classes)], 1)
    present = int((counts > 0).sum())
    z = NormalDist().inv_cdf(1 - 0.05 / (tiles.shape[1] * max(1, present if present > 2 else 1)))
    spread = ((len(y) + 1) / (12 * counts.double() * (len(y) - counts).double())).sqrt()
    return PositionMap(area, 0.5 + z * spread, len(y))


def _area(score: Tensor, mine: Tensor) -> Tensor:
    """(T,) share of pairs in which a row of the class scores higher than one of the rest; ties count half."""
    if not bool(mine.any()) or bool(mine.all()):
        return torch.full((len(score),), math.nan, dtype=torch.float64)
    own, rest = score[:, mine].contiguous(), score[:, ~mine].sort(1).values.contiguous()
    below, upto = torch.searchsorted(rest, own), torch.searchsorted(rest, own, right=True)
    return (below + upto).double().mean(1) / (2 * rest.shape[1])


def box_of(area: Tensor, level: float, grid: int) -> tuple[float, float, float, float] | None:
    """The box (left, top, right, bottom), as shares of the sides, around the tiles that join the best one and read at least half of
    what it reads above 0.5; None if the best is within chance.

    >>> area = torch.full((16,), 0.5); area[[14, 15]] = torch.tensor([0.8, 0.9])
    >>> box_of(area, 0.6, 4)
    (0.5, 0.75, 1.0, 1.0)
    """
    best = int(area.argmax())
    if not float(area[best]) > level:
        return None
    enough = (area > max(level, 0.5 + (float(area[best]) - 0.5) / 2)).view(grid, grid)
    joined = torch.zeros(grid, grid, dtype=torch.bool)
    joined[best // grid, best % grid] = True
    for _ in range(grid * grid):
        wider = F.max_pool2d(joined[None, None].float(), 3, 1, 1)[0, 0].bool() & enough
        if bool((wider == joined).all()):
            break
        joined = wider
    rows, columns = joined.any(1).nonzero().flatten(), joined.any(0).nonzero().flatten()
    return (
        int(columns[0]) / grid, int(rows[0]) / grid, (int(columns[-1]) + 1) / grid, (int(rows[-1]) + 1) / grid,
    )  # fmt: skip


def place_of(box: tuple[float, float, float, float]) -> str:
    """Where a box lies, in words.

    >>> place_of((0.75, 0.875, 1.0, 1.0)), place_of((0.0, 0.0, 1.0, 0.125)), place_of((0.25, 0.25, 0.75, 0.75))
    ('the lower right', 'the upper edge', 'the centre')
    """
    left, top, right, bottom = box
    wide, high = right - left > 0.75, bottom - top > 0.75
    if wide and high:
        return "the whole picture"
    down = "" if high else "upper" if bottom + top < 0.8 else "lower" if bottom + top > 1.2 else ""
    across = "" if wide else "left" if left + right < 0.8 else "right" if left + right > 1.2 else ""
    if down and across:
        return f"the {down} {across}"
    return (
        f"the {down or across} edge"
        if (down and wide) or (across and high)
        else f"the {down or across} part"
        if down or across
        else "the centre"
    )


FUNCTIONS = (position_map, box_of, place_of)
RANGE = (0.0, 1.0)
HIGHER = "the class can be read better from the tile; 0.5: not at all"
