r"""defects: industrial surfaces with or without a dark area. Darkness is the class itself, so it is nothing to be repaired.

.. math::
    x_i = s_i \cdot h_i \cdot \prod_{j} (1 - k_{ij}\, m_{ij}) \cdot (1 - y_i\, k_i\, m_i), \qquad
    k_i \sim U(0.15, 0.55), \quad r_i \sim U(0.06, 0.18)

s is the surface: brushed lines or cast grain of random brightness and colour; h a slow shadow across the picture; every picture has
up to three kinds of distractors j, drawn alike in both classes: a dark frame at an edge, small dark dots, a thin scratch. A defect
is one more dark area m of irregular outline, at a random place, of radius r (as a share of the side) and contrast k; exactly
round(n * share) rows of every split have one. They are darker on average, but brightness alone does not tell the classes apart.
There is no bias column: an audit that calls darkness a shortcut here, or a repair that removes it, does harm.

`order=class` writes the same rows in order of class with a little mixing, so that row numbers and file names leak the class.

Source: made here; the setting is that of surface inspection (Tabernik et al., "Segmentation-based deep-learning approach for
surface-defect detection", 2020).
Differs: generated, so that the cause of the class is known; results do not compare with those on photographs.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.data.dataset import DataSet, Memory

CLASSES = ("clean", "defect")
RADIUS = (0.06, 0.18)  # of a defect, as a share of the side
CONTRAST = (0.15, 0.55)  # share of the light that a defect takes
MIXING = 0.35  # order=class: spread of the key that rows are sorted by; the classes are 1 apart
CHUNK = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    rows: int = 2000  # training rows; a tenth more for validation
    test: int = 600  # test rows
    share: float = 0.3  # share of rows with a defect
    order: Literal["random", "class"] = "random"  # order of the rows in every split; class: it leaks the class
    size: int = 96  # side of the image in pixels
    seed: int = 0  # random seed

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise UserError(f"share={self.share}: the share of defects must lie between 0 and 1")
        if self.rows < 50 or self.test < 10 or self.size < 32:
            raise UserError("defects: rows must be at least 50, test at least 10, and size at least 32")


def make(cfg: Config) -> DataSet:
    counts = {"train": cfg.rows, "val": cfg.rows // 10, "test": cfg.test}
    y, x = zip(*(_part(cfg, name, n) for name, n in counts.items()), strict=True)
    return DataSet(
        name="defects",
        inputs=Memory(torch.cat(x)),
        y=torch.cat(y),
        classes=CLASSES,
        split=torch.cat([torch.full((len(part),), k) for k, part in enumerate(y)]),
    )


def _part(cfg: Config, split: str, n: int) -> tuple[Tensor, Tensor]:
    """Class and pictures of one split."""
    y = (torch.arange(n) < round(cfg.share * n)).long()
    y = y[torch.randperm(n, generator=stream(cfg.seed, "defects", split, "class"))]
    x = torch.empty(n, 3, cfg.size, cfg.size, dtype=torch.uint8)
    for start in range(0, n, CHUNK):
        part = slice(start, start + CHUNK)
        x[part] = draw(y[part], cfg.size, stream(cfg.seed, "defects", split, "draw", start))
    if cfg.order == "class":
        place = (y + MIXING * torch.randn(n, generator=stream(cfg.seed, "defects", split, "order"))).argsort()
        y, x = y[place], x[place]
    return y, x


def draw(y: Tensor, size: int, g: torch.Generator) -> Tensor:
    """Pictures (n, 3, size, size) in bytes; those of class 1 have a defect."""
    n = len(y)
    light = surfaces(n, size, g) * distractors(n, size, g)
    # Every row draws a defect, whether shown or not: the class changes nothing else in the picture.
    r, k = (low + (high - low) * torch.rand(n, 1, 1, generator=g) for low, high in (RADIUS, CONTRAST))
    light = light * (1 - y[:, None, None] * k * blots(r, size, g))
    cast = 1 + 0.05 * torch.randn(n, 3, 1, 1, generator=g)
    picture = light[:, None] * cast + 0.015 * torch.randn(n, 3, size, size, generator=g)
    return (255 * picture).round().clamp(0, 255).to(torch.uint8)


def surfaces(n: int, size: int, g: torch.Generator) -> Tensor:
    """Plates (n, size, size) around 0.45 to 0.75: brushed lines, down or across, or cast grain, with a slow shadow."""

    def filtered(kernel: tuple[int, int]) -> Tensor:
        """Noise of standard deviation 1, smoothed over `kernel`."""
        noise = torch.randn(n, 1, size + kernel[0] - 1, size + kernel[1] - 1, generator=g)
        return F.avg_pool2d(noise, kernel, 1)[:, 0] * math.sqrt(kernel[0] * kernel[1])

    long = size // 4
    lines, grain = filtered((1, long)), 0.6 * filtered((3, 3)) + 0.8 * filtered((9, 9))
    lines = torch.where(torch.rand(n, 1, 1, generator=g) < 0.5, lines, lines.transpose(1, 2))
    texture = torch.where(torch.rand(n, 1, 1, generator=g) < 0.5, lines, grain)
    mean = 0.45 + 0.3 * torch.rand(n, 1, 1, generator=g)
    depth = 0.02 + 0.05 * torch.rand(n, 1, 1, generator=g)
    side = torch.linspace(-0.5, 0.5, size)
    angle = 2 * math.pi * torch.rand(n, 1, 1, generator=g)
    shadow = 0.5 * torch.rand(n, 1, 1, generator=g) * (angle.cos() * side[None, None] + angle.sin() * side[None, :, None])
    return (mean + depth * texture) * (1 + shadow)


def distractors(n: int, size: int, g: torch.Generator) -> Tensor:
    """Share of light (n, size, size) that a frame, dots and a scratch let through; each is there in half of the pictures."""

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(n, *shape, generator=g)

    def strength(low: float, high: float) -> Tensor:
        return uniform(low, high, 1, 1) * (uniform(0, 1, 1, 1) < 0.5)

    side = (torch.arange(size) + 0.5) / size
    down, across = side[None, :, None], side[None, None, :]
    edges = torch.stack([d.expand(n, size, size) for d in (down, 1 - down, across, 1 - across)])
    edge = edges[torch.randint(0, 4, (n,), generator=g), torch.arange(n)]
    frame = ((uniform(0.03, 0.14, 1, 1) - edge) * size / 2 + 0.5).clamp(0, 1)
    dots = torch.zeros(n, size, size)
    for _ in range(4):
        r = uniform(0.008, 0.02, 1, 1)
        away = ((down - uniform(0, 1, 1, 1)).square() + (across - uniform(0, 1, 1, 1)).square()).sqrt()
        dots = torch.maximum(dots, ((r - away) * size + 0.5).clamp(0, 1))
    turn = uniform(0, math.pi, 1, 1)
    line = ((across - uniform(0.2, 0.8, 1, 1)) * turn.sin() - (down - uniform(0.2, 0.8, 1, 1)) * turn.cos()).abs()
    scratch = (1 - line * size / 1.2).clamp(0, 1)
    through = torch.ones(n, size, size)
    for mask, (low, high) in ((frame, (0.2, 0.6)), (dots, (0.3, 0.8)), (scratch, (0.15, 0.4))):
        through = through * (1 - strength(low, high) * mask)
    return through


def blots(radius: Tensor, size: int, g: torch.Generator) -> Tensor:
    """Areas (n, size, size) in [0, 1] of this radius (n, 1, 1), a share of the side: an ellipse with a wavy, soft outline."""
    n = len(radius)

    def uniform(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(n, 1, 1, generator=g)

    side = (torch.arange(size) + 0.5) / size
    v, u = side[None, :, None] - uniform(0.15, 0.85), side[None, None, :] - uniform(0.15, 0.85)
    turn, stretch = uniform(0, math.pi), uniform(1, 1.8).sqrt()
    u, v = (u * turn.cos() + v * turn.sin()) / stretch, (v * turn.cos() - u * turn.sin()) * stretch
    angle = torch.atan2(v, u)
    outline = radius.expand(n, size, size)
    for waves in (2, 3, 5):
        outline = outline + radius * uniform(0, 0.2) * (waves * angle + uniform(0, 2 * math.pi)).sin()
    soft = uniform(0.01, 0.05)
    return torch.sigmoid((outline - (u.square() + v.square()).sqrt()) * 4 / soft)
