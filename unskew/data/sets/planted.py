r"""planted: feature vectors whose information about the label is known in closed form. A reference for every measure.

A symbol z copies the label with probability q and is otherwise drawn independently from the label's distribution p:

.. math::
    P(z, y) = p_y \big(q [z = y] + (1 - q) p_z\big), \qquad
    I(Z; Y) = \sum_{y,z} P(z, y) \log \frac{P(z, y)}{p_y p_z}, \qquad
    B = \frac{I(Z; Y)}{H(Y)}

q is solved from the wanted bias B. The features are the one-hot code of z, for which a linear softmax can be the exact posterior,
followed by `extra` standard normal numbers without information. The bias column `planted` holds z. Class k has the share
`shares[k]`.

Source: the channel with erasure and guessing; Cover and Thomas, "Elements of information theory", chapter 7.
Differs: nothing.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.data.dataset import DataSet, Memory
from unskew.data.splitting import carve_splits


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    bias: float = 0.2  # I(Z; Y) / H(Y)
    shares: tuple[float, ...] = (0.5, 0.5)  # class frequencies, summing to 1
    rows: int = 5000  # rows to draw
    extra: int = 4  # features without information
    seed: int = 0  # random seed

    def __post_init__(self) -> None:
        if not 0 <= self.bias <= 1:
            raise UserError(f"bias={self.bias}: must lie in [0, 1]")
        if len(self.shares) < 2 or min(self.shares) <= 0 or abs(sum(self.shares) - 1) > 1e-6:
            raise UserError(f"shares={self.shares}: must be at least two positive numbers that sum to 1")
        if self.extra < 0:
            raise UserError(f"extra={self.extra}: must not be negative")
        if self.rows < 10 * len(self.shares):
            raise UserError(f"rows={self.rows}: must be at least ten per class")


def information(q: float, p: Tensor) -> float:
    """I(Z; Y) in nats for copy probability q and class shares p.

    >>> round(information(1.0, torch.tensor([0.5, 0.5])), 6)  # a copy knows everything: log 2
    0.693147
    """
    joint = p[:, None] * (q * torch.eye(len(p), dtype=p.dtype) + (1 - q) * p[None, :])
    ratio = joint / (p[:, None] * p[None, :])
    return float(torch.where(joint > 0, joint * ratio.clamp(min=1e-300).log(), 0.0).sum())


def copy_chance(bias: float, p: Tensor) -> float:
    """The q whose information is the share `bias` of the label's entropy, by bisection."""
    wanted = bias * float(-(p * p.log()).sum())
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if information(middle, p) < wanted else (low, middle)
    return (low + high) / 2


def make(cfg: Config) -> DataSet:
    p = torch.tensor(cfg.shares, dtype=torch.float64)
    g = stream(cfg.seed, "planted")
    # Exact class counts, so that the entropy of the rows is the one asked for.
    counts = (p * cfg.rows).round().long()
    counts[0] += cfg.rows - counts.sum()
    y = torch.repeat_interleave(torch.arange(len(p)), counts)[torch.randperm(cfg.rows, generator=g)]
    q = copy_chance(cfg.bias, p)
    guess = torch.multinomial(p, cfg.rows, replacement=True, generator=g)
    z = torch.where(torch.rand(cfg.rows, generator=g) < q, y, guess)
    x = torch.cat([torch.eye(len(p))[z], torch.randn(cfg.rows, cfg.extra, generator=g)], 1)
    split, _ = carve_splits(y, torch.zeros(cfg.rows, dtype=torch.long), 0.1, cfg.seed)
    names = tuple(map(str, range(len(p))))
    return DataSet(
        name="planted",
        inputs=Memory(x),
        y=y,
        classes=names,
        split=split,
        bias=z[:, None],
        bias_names=("planted",),
        bias_values=(names,),
        aligned_by_design=(torch.eye(len(p), dtype=torch.bool),),
    )
