r"""toy: two numbers, three classes. Both numbers give the class away in training, only one in the test (ReBias 3.2).

.. math::  x = (B, S), \quad B \sim N(b - 1, \sigma_B^2), \quad S \sim N(y - 1, \sigma_S^2), \qquad
           b = y \text{ in training}, \quad b \perp y \text{ in the test}

B is the bias, the cleaner of the two; S is the signal. `scale` stretches B, which makes it easier to learn from. The bias column
`B` holds the cluster b. Validation rows are drawn like training rows.

Source: Bahng et al., "Learning de-biased representations with biased representations", ICML 2020, section 3.2 and Figure A1.
Differs: positions and widths of the clusters are not published; these are ours.
"""

from dataclasses import dataclass

import torch

from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.data.dataset import DataSet, Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    rows: int = 3000  # training rows, and test rows; a tenth as many validation rows
    width_bias: float = 0.15  # sigma_B
    width_signal: float = 0.2  # sigma_S
    scale: float = 1.0  # factor on B
    seed: int = 0  # random seed

    def __post_init__(self) -> None:
        if self.rows < 30:
            raise UserError(f"rows={self.rows}: must be at least 30")
        if min(self.width_bias, self.width_signal, self.scale) < 0:
            raise UserError("width_bias, width_signal and scale must not be negative")


def make(cfg: Config) -> DataSet:
    parts = []
    for code, n in ((0, cfg.rows), (1, cfg.rows // 10), (2, cfg.rows)):
        g = stream(cfg.seed, "toy", code)
        y = torch.randint(0, 3, (n,), generator=g)
        b = torch.randint(0, 3, (n,), generator=g) if code == 2 else y
        noise = torch.randn(n, 2, generator=g) * torch.tensor([cfg.width_bias, cfg.width_signal])
        x = torch.stack([b - 1, y - 1], 1) + noise
        parts.append((x * torch.tensor([cfg.scale, 1.0]), y, b, torch.full((n,), code)))
    x, y, b, split = (torch.cat(column) for column in zip(*parts, strict=True))
    return DataSet(
        name="toy",
        inputs=Memory(x),
        y=y,
        classes=("0", "1", "2"),
        split=split,
        bias=b[:, None],
        bias_names=("B",),
        bias_values=(("0", "1", "2"),),
        aligned_by_design=(torch.eye(3, dtype=torch.bool),),
    )
