"""Which rows to keep, given a weight in (0, 1) for each: the five strategies of REPAIR, section 4.1."""

from typing import Literal

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import stream

Strategy = Literal["threshold", "rank", "class_rank", "sample", "uniform"]
STRATEGIES: tuple[Strategy, ...] = ("threshold", "rank", "class_rank", "sample", "uniform")


def select(
    weights: Tensor,
    y: Tensor,
    strategy: Strategy = "threshold",
    *,
    threshold: float = 0.5,
    keep: float = 0.5,
    seed: int = 0,
) -> Tensor:
    r"""The positions of the rows to keep, in order.

    .. math::
        \text{threshold:}\ w_i \ge t \qquad
        \text{rank:}\ \text{the } \mathrm{round}(pN) \text{ largest} \qquad
        \text{class\_rank:}\ \text{the same within each class, at least one}

        \text{sample:}\ u_i < w_i,\ u_i \sim U(0, 1) \qquad
        \text{uniform:}\ \mathrm{round}(pN) \text{ at random}

    `threshold` (t) applies to the first strategy, `keep` (p) to rank, class_rank and uniform. In a tie the earlier row wins.

    >>> select(torch.tensor([0.9, 0.2, 0.6, 0.4]), torch.tensor([0, 0, 1, 1]), "rank").tolist()
    [0, 2]
    """
    w, y = torch.as_tensor(weights), torch.as_tensor(y)
    if strategy not in STRATEGIES:
        raise UserError(f"strategy={strategy}: must be one of {', '.join(STRATEGIES)}")
    if len(w) != len(y):
        raise UserError(f"{len(w)} weights for {len(y)} labels")
    if not bool(torch.isfinite(w).all()):
        raise UserError(
            f"weights must be finite, but row {int((~torch.isfinite(w)).nonzero()[0])} is {float(w[~torch.isfinite(w)][0])}"
        )
    if not 0 < keep <= 1:
        raise UserError(f"keep={keep}: the share of rows to keep must lie in (0, 1]")
    if strategy == "threshold":
        return (w >= threshold).nonzero().flatten()
    if strategy == "rank":
        return _largest(w, keep)
    if strategy == "class_rank":
        kept = [(y == c).nonzero().flatten() for c in torch.unique(y).tolist()]
        return (
            torch.cat([rows[_largest(w[rows], keep, least=1)] for rows in kept]).sort().values if kept else torch.zeros(0).long()
        )
    generator = stream(seed, "select", strategy)
    if strategy == "sample":
        return (torch.rand(len(w), generator=generator, dtype=torch.float64) < w).nonzero().flatten()
    return torch.randperm(len(w), generator=generator)[: round(keep * len(w))].sort().values


def _largest(w: Tensor, share: float, least: int = 0) -> Tensor:
    return w.argsort(descending=True, stable=True)[: max(least, round(share * len(w)))].sort().values


def check_kept(kept: Tensor, y: Tensor, classes: tuple[str, ...], setting: str) -> None:
    """Raise if nothing is left, of all rows or of a class, naming the setting that caused it."""
    if not len(kept):
        raise UserError(f"no rows left: {setting} drops all {len(y)}")
    before = y.bincount(minlength=len(classes))
    after = y[kept].bincount(minlength=len(classes))
    emptied = ((before > 0) & (after == 0)).nonzero().flatten().tolist()
    if emptied:
        names = ", ".join(classes[c] for c in emptied[:5])
        raise UserError(
            f"{setting} leaves no row of class {names}; relax it, or use strategy=class_rank to keep a share of every class, or "
            "strategy=weights to keep all rows"
            if "strategy" in setting and "class_rank" not in setting
            else f"{setting} leaves no row of class {names}; relax it"
        )
