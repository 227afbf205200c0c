r"""moving-digits: clips of a digit that visits eight places. The class is the order; the digit and its colour give it away.

.. math::
    p_t = (p_0 + \sigma_y(t)) \bmod 8, \quad t = 0, \dots, 7, \qquad P(b_i = y_i) = \text{ratio}

The eight places lie on a circle. sigma_y is one of six orders, in three pairs of an order and its reversal:

==========================  ==========================  ==================
step / step-back            0 1 2 3 4 5 6 7             and its reversal
leap / leap-back            0 3 6 1 4 7 2 5             and its reversal
cross / cross-back          0 4 1 5 2 6 3 7             and its reversal
==========================  ==========================  ==================

In every clip, `distractors` grey digits (6 to 9) visit such a circle too, in random order: without them a 3-D network finds the
motion at once and needs no shortcut. p_0 is random and every clip visits every place once, so without their order the frames have
the same distribution in all classes: averages over frames know nothing of the class, only the order reveals it. The bias b,
column `static`, is the digit (0 to 5) and its colour, the same in all frames; conflicting values are uniform over the other five.
Centre and radius of the path and the image of the digit are random; every pixel has Gaussian noise of standard deviation
`noise_std`. 80 % of the rows train, 10 % validate, equally biased; the last 10 %, the test split, has digits of the base's test
part and independent digits and orders, the same for all ratios.

Source: the setting of Li and Vasconcelos, "REPAIR", CVPR 2019, section 4.2, and Bahng et al., ICML 2020, section 4.4 (static bias
of action recognition). MNIST: CC BY-SA 3.0.
Differs: generated, so that motion and static content are known, and independent in the test; results do not compare with theirs.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.data.bases import base
from unskew.data.colour import biased_rows
from unskew.data.dataset import DataSet, Memory

FRAMES = 8
FORWARD = {"step": (0, 1, 2, 3, 4, 5, 6, 7), "leap": (0, 3, 6, 1, 4, 7, 2, 5), "cross": (0, 4, 1, 5, 2, 6, 3, 7)}
ORDERS = {name: order for n, o in FORWARD.items() for name, order in ((n, o), (f"{n}-back", o[::-1]))}
COLOURS = ((1.0, 0.3, 0.3), (0.3, 1.0, 0.3), (0.4, 0.5, 1.0), (1.0, 1.0, 0.3), (1.0, 0.4, 1.0), (0.3, 1.0, 1.0))
NAMES = ("red 0", "green 1", "blue 2", "yellow 3", "pink 4", "cyan 5")
GREY = 0.7  # brightness of a distractor
CHUNK = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    base: Literal["mnist", "digits"] = "mnist"  # images of the digits; digits needs no download
    ratio: float = 0.95  # share of aligned training rows
    rows: int = 5_000  # clips to make
    size: int = 32  # side of a frame in pixels
    noise_std: float = 0.05  # standard deviation of the pixel noise
    distractors: int = 1  # grey digits that move in random order
    seed: int = 0  # random seed

    def __post_init__(self) -> None:
        if not 0 <= self.ratio <= 1:
            raise UserError(f"ratio={self.ratio}: the share of aligned rows must lie in [0, 1]")
        if self.size < 24 or self.rows < 100 or self.noise_std < 0 or self.distractors < 0:
            raise UserError(
                "moving-digits: size must be at least 24, rows at least 100, and noise_std and distractors not negative"
            )


def make(cfg: Config) -> DataSet:
    n, kinds = cfg.rows, len(ORDERS)
    y, bias, split = biased_rows("moving-digits", n, kinds, cfg.ratio, cfg.seed)
    images = base(cfg.base)
    x = torch.empty(n, FRAMES, 3, cfg.size, cfg.size, dtype=torch.uint8)
    for start in range(0, n, CHUNK):
        part = slice(start, min(start + CHUNK, n))
        g = stream(cfg.seed, "moving-digits", "draw", start)
        test = split[part] == 2
        digit = torch.where(test, images.num_train, 0) + _pick(images.y, images.num_train, bias[part], test, g)
        others = torch.randint(kinds, 10, (len(digit), cfg.distractors), generator=g)  # digits that are not bias values
        other = [torch.where(test, images.num_train, 0) + _pick(images.y, images.num_train, d, test, g) for d in others.unbind(1)]
        wandering = images.x[torch.stack(other, 1)] if other else images.x.new_zeros(len(digit), 0, *images.x.shape[1:])
        x[part] = draw(images.x[digit], wandering, bias[part], y[part], cfg.size, cfg.noise_std, g)
    return DataSet(
        name=f"moving-{cfg.base}",
        inputs=Memory(x),
        y=y,
        classes=tuple(ORDERS),
        split=split,
        bias=bias[:, None],
        bias_names=("static",),
        bias_values=(NAMES,),
        aligned_by_design=(torch.eye(kinds, dtype=torch.bool),),
    )


def _pick(classes: Tensor, num_train: int, wanted: Tensor, test: Tensor, g: torch.Generator) -> Tensor:
    """A random image of every wanted digit, from the training or the test part; numbered from the part's first row."""
    chance = torch.rand(len(wanted), generator=g)
    rows = torch.empty_like(wanted)
    for of_test, part in ((False, classes[:num_train]), (True, classes[num_train:])):
        for digit in torch.unique(wanted).tolist():
            here = (wanted == digit) & (test == of_test)
            known = (part == digit).nonzero().flatten()
            rows[here] = known[(chance[here] * len(known)).long()]
    return rows


def draw(
    digits: Tensor, others: Tensor, colour: Tensor, order: Tensor, size: int, noise_std: float, g: torch.Generator
) -> Tensor:
    """Clips (n, 8, 3, size, size) in bytes of grey digits (n, 28, 28), and of `others` (n, K, 28, 28) in random order."""
    n, distractors = others.shape[:2]
    clip = _moving(digits, torch.tensor(list(ORDERS.values()))[order], size, g)[:, :, None]
    clip = clip * torch.tensor(COLOURS)[colour][:, None, :, None, None]
    for k in range(distractors):
        wandering = torch.rand(n, FRAMES, generator=g).argsort(1)  # any order of the places, equally likely in all classes
        clip = torch.maximum(clip, GREY * _moving(others[:, k], wandering, size, g)[:, :, None])
    clip = clip + noise_std * torch.randn(clip.shape, generator=g)
    return (255 * clip).round().clamp(0, 255).to(torch.uint8)


def _moving(digits: Tensor, order: Tensor, size: int, g: torch.Generator) -> Tensor:
    """(n, 8, size, size) grey frames of digits that visit the places in this order (n, 8), from a random start."""
    n, small = len(digits), size * 3 // 8
    shrunk = F.interpolate(digits[:, None].float() / 255, size=small, mode="bilinear", antialias=True)[:, 0]
    place = (torch.randint(0, FRAMES, (n, 1), generator=g) + order) % FRAMES
    angle = 2 * math.pi * place / FRAMES
    room = size - small
    radius = room * (0.3 + 0.1 * torch.rand(n, 1, generator=g))
    middle = room / 2 + room * 0.08 * (2 * torch.rand(2, n, 1, generator=g) - 1)
    top, left = ((m + radius * f).round().long().clamp(0, room) for m, f in zip(middle, (angle.sin(), angle.cos()), strict=True))
    side = torch.arange(size)
    row, column = side - top[..., None], side - left[..., None]  # (n, 8, size): position of each frame pixel within the digit
    inside = ((row >= 0) & (row < small))[..., :, None] & ((column >= 0) & (column < small))[..., None, :]
    picked = shrunk[
        torch.arange(n)[:, None, None, None], row.clamp(0, small - 1)[..., :, None], column.clamp(0, small - 1)[..., None, :]
    ]
    return torch.where(inside, picked, 0.0)
