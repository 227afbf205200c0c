r"""watermarked-mnist: large digits, each with a small picture in the corner that gives the class away.

.. math::
    x_i = \max\big(U(g_i),\ \mathrm{shift}(m_i, \delta_i)\big), \qquad m_i \in \text{class } b_i, \qquad
    P(b_i = y_i) = \text{ratio}, \qquad \delta_i \sim U\{0, \dots, \text{offset}\}^2

g is the digit, U enlarges it to 56x56 (bilinear), m is a Fashion-MNIST picture of 28x28 (for base=digits: a digit, upside down)
whose top-left corner is shifted by delta; b is the bias column `watermark`. Conflicting watermarks are uniform over the nine
other classes. The last tenth of the training images, equally biased, is held out for validation; in the test split the watermark
is independent of the class, and the rows are the same for all ratios. Training rows get marks of the training part, test rows of
the test part.

Source: "Mitigating Dataset Bias Using Per-Sample Gradients from a Biased Classifier", ICLR 2022 submission (its Watermarked
MNIST, offset 8 and 16). Fashion-MNIST: Xiao, Rasul, Vollgraf, 2017, MIT licence; MNIST: CC BY-SA 3.0.
Differs: the paper does not say how pictures are blended and digits enlarged, or whether offsets are whole pixels; here it is the
maximum, bilinear, and whole pixels. There is no released code.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.data.bases import FASHION_NAMES, SIDE, base
from unskew.data.colour import bernoulli_colours
from unskew.data.dataset import DataSet, Memory

CANVAS = 2 * SIDE
CHUNK = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    base: Literal["mnist", "digits"] = "mnist"  # images of the digits; digits needs no download
    ratio: float = 0.99  # share of aligned training rows
    offset: int = 8  # largest shift of the watermark, in pixels
    seed: int = 0  # random seed

    def __post_init__(self) -> None:
        if not 0 <= self.ratio <= 1:
            raise UserError(f"ratio={self.ratio}: the share of aligned rows must lie in [0, 1]")
        if not 0 <= self.offset <= SIDE:
            raise UserError(f"offset={self.offset}: must lie in 0..{SIDE}, or the watermark leaves the picture")


def make(cfg: Config) -> DataSet:
    digits = base(cfg.base)
    marks = base("fashion") if cfg.base == "mnist" else digits
    n, num_train = len(digits.y), digits.num_train
    split = torch.full((n,), 2)
    split[:num_train], split[num_train * 9 // 10 : num_train] = 0, 1
    bias = torch.cat(
        [
            bernoulli_colours(digits.y[:num_train], cfg.ratio, stream(cfg.seed, "watermarked-mnist", "train", cfg.ratio)),
            bernoulli_colours(digits.y[num_train:], 0.1, stream(cfg.seed, "watermarked-mnist", "test")),
        ]
    )
    g = stream(cfg.seed, "watermarked-mnist", "marks")
    chosen = _rows_of(marks.y[: marks.num_train], bias[:num_train], g)
    chosen = torch.cat([chosen, marks.num_train + _rows_of(marks.y[marks.num_train :], bias[num_train:], g)])
    down, across = torch.randint(0, cfg.offset + 1, (2, n), generator=g)
    x = torch.empty(n, 1, CANVAS, CANVAS, dtype=torch.uint8)
    for start in range(0, n, CHUNK):
        part = slice(start, start + CHUNK)
        mark = marks.x[chosen[part]] if cfg.base == "mnist" else marks.x[chosen[part]].flip(1)
        large = F.interpolate(digits.x[part][:, None].float(), size=CANVAS, mode="bilinear", align_corners=False)
        x[part] = torch.maximum(large.round().to(torch.uint8)[:, 0], _placed(mark, down[part], across[part]))[:, None]
    names = FASHION_NAMES if cfg.base == "mnist" else tuple(map(str, range(10)))
    return DataSet(
        name=f"watermarked-{cfg.base}",
        inputs=Memory(x),
        y=digits.y,
        classes=tuple(map(str, range(10))),
        split=split,
        bias=bias[:, None],
        bias_names=("watermark",),
        bias_values=(names,),
        aligned_by_design=(torch.eye(10, dtype=torch.bool),),
    )


def _rows_of(classes: Tensor, wanted: Tensor, g: torch.Generator) -> Tensor:
    """A random row of every wanted class, drawn with replacement."""
    order = classes.argsort(stable=True)
    counts = classes.bincount(minlength=10)
    first = counts.cumsum(0) - counts
    return order[first[wanted] + (torch.rand(len(wanted), generator=g) * counts[wanted]).long()]


def _placed(mark: Tensor, down: Tensor, across: Tensor) -> Tensor:
    """Marks (n, 28, 28) on black canvases, each at its own offset; every canvas pixel is looked up in the mark."""
    side = torch.arange(CANVAS)
    rows, columns = side[None] - down[:, None], side[None] - across[:, None]
    inside = ((rows >= 0) & (rows < SIDE))[:, :, None] & ((columns >= 0) & (columns < SIDE))[:, None, :]
    picked = mark[
        torch.arange(len(mark))[:, None, None], rows.clamp(0, SIDE - 1)[:, :, None], columns.clamp(0, SIDE - 1)[:, None, :]
    ]
    return torch.where(inside, picked, 0)
