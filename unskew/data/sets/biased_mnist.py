r"""biased-mnist: white digits on a background whose colour gives the class away (ReBias).

.. math::  x_i = \begin{cases} (1,1,1) & g_i > 0 \\ c_{b_i} & g_i = 0 \end{cases}, \qquad
           \#\{i : y_i = k, b_i = k\} = \lfloor \rho \, n_k \rfloor

g is the grey digit, b the colour (bias column `color`), rho is `ratio`. Counts are exact: int(rho n) random rows of a class get
its colour; the rest is cut into chunks of ceil(rest / 9), one for each of the other colours in random order. No jitter.

`test` has rho 0.1 (the paper's unbiased test), `test_biased` rho 1, `test_rho0` rho 0, all on the same test images. Inputs are
scaled to [-1, 1]. There is no validation split.

Source: Bahng, Chun, Yun, Choo, Oh, "Learning de-biased representations with biased representations", ICML 2020, section 4.2,
and the released code (palette, binarisation, counts).
Differs: `rows` and `size` make a smaller set for small machines (in a smaller image, the digit is where the mean pixel is above a
quarter). The biased test has rho 1 as in the code; the paper says the training rho. Shuffles use an explicit seed.
"""

import dataclasses
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.data.bases import base
from unskew.data.colour import REBIAS, REBIAS_NAMES, chunked_colours, colour_backgrounds
from unskew.data.dataset import DataSet, Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    base: Literal["mnist", "digits"] = "mnist"  # images to colour; digits needs no download
    ratio: float = 0.99  # rho: share of training rows with the class's colour
    rows: int = 0  # use only the first `rows` training images; 0: all
    size: int = 0  # side of the image, a divisor of the base's (pixels are averaged); 0: the base's
    seed: int = 0  # random seed

    def __post_init__(self) -> None:
        if self.rows < 0 or self.size < 0:
            raise UserError("rows and size must not be negative")
        if not 0 <= self.ratio <= 1:
            raise UserError(f"ratio={self.ratio}: the share of aligned rows must lie in [0, 1]")


def make(cfg: Config) -> DataSet:
    grey = base(cfg.base)
    if cfg.size:
        grey = dataclasses.replace(grey, x=_shrunk(grey.x, cfg.size))
    if cfg.rows:
        keep = torch.cat([torch.arange(min(cfg.rows, grey.num_train)), torch.arange(grey.num_train, len(grey.y))])
        grey = dataclasses.replace(grey, x=grey.x[keep], y=grey.y[keep], num_train=min(cfg.rows, grey.num_train))
    palette = torch.tensor(REBIAS, dtype=torch.uint8)
    test_x, test_y = grey.x[grey.num_train :], grey.y[grey.num_train :]
    parts = [(0, grey.x[: grey.num_train], grey.y[: grey.num_train], cfg.ratio)]
    parts += [(code, test_x, test_y, rho) for code, rho in ((2, 0.1), (3, 1.0), (4, 0.0))]
    xs, ys, biases, splits = [], [], [], []
    for code, x, y, rho in parts:
        colour = chunked_colours(y, rho, stream(cfg.seed, "biased-mnist", code, rho))
        xs.append(colour_backgrounds(x, palette[colour]))
        ys.append(y)
        biases.append(colour)
        splits.append(torch.full((len(y),), code))
    return DataSet(
        name=f"biased-{cfg.base}",
        inputs=Memory(torch.cat(xs)),
        y=torch.cat(ys),
        classes=tuple(map(str, range(10))),
        split=torch.cat(splits),
        splits=("train", "val", "test", "test_biased", "test_rho0"),
        bias=torch.cat(biases)[:, None],
        bias_names=("color",),
        bias_values=(REBIAS_NAMES,),
        aligned_by_design=(torch.eye(10, dtype=torch.bool),),
        mean=(0.5, 0.5, 0.5),
        std=(0.5, 0.5, 0.5),
    )


def _shrunk(x: Tensor, size: int) -> Tensor:
    """Means of blocks of pixels; faint ones become background, or strokes would thicken."""
    factor, rest = divmod(x.shape[-1], size)
    if rest or factor < 1:
        raise UserError(f"size={size}: must divide {x.shape[-1]}")
    small = torch.nn.functional.avg_pool2d(x.reshape(len(x), 1, *x.shape[-2:]).float(), factor).reshape(*x.shape[:-2], size, size)
    return torch.where(small > 64, small, 0).round().to(torch.uint8)
