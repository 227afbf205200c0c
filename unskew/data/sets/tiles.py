r"""tiles: scenes of objects and one person, in which the objects depend on who the person is. A small stand-in for COCO.

.. math::
    a \sim \mathrm{Bernoulli}(\text{share}), \qquad
    P(o_k = 1 \mid a = 1) = r_k \, P(o_k = 1 \mid a = 0), \qquad
    \tfrac12 \big(P(o_k \mid 0) + P(o_k \mid 1)\big) = \text{presence}

==========  =============================================================================================================
a           the bias column `person`, two values: the colour and slant of the one coloured digit, an 8
o_k         object k is present; independent of each other given a. All but the last are the labels
r_k         `ratio` R gives R for the first label, 1/R for the last, evenly spaced in the logarithm; or one value per label
hidden      r of the last object, which is in the picture but not in the labels: balancing the labels leaves it
==========  =============================================================================================================

A scene has 3 x 4 cells of 14 x 14 pixels on black. Person and objects take different random cells; each is a training (test)
image at half size. Objects are grey, of brightness U(0.4, 1). The person has colour clamp(mu_a + 0.1 N(0, I)), mu = (0.35, 0.65,
0.95) and (0.95, 0.6, 0.35), and is sheared by -+0.4 +- 0.15 N(0, 1). Every pixel has Gaussian noise of standard deviation
`noise_std`. Objects of base=fashion: nine Fashion-MNIST classes, with bags as the hidden object; of base=digits: 0 to 7, hidden
9. 60 % of the rows train, 10 % validate, 30 % test. Columns: the person's box in pixels (x0, y0, x1, y1) and `hidden_object`.

True leakage of the labels at the default ratio 2, computed from the distribution: 0.6659 for nine labels, 0.6588 for eight; of
labels and hidden object together 0.7526 and 0.7489.

Source: the setting of Wang et al., "Balanced datasets are not enough", ICCV 2019 (COCO: objects and gender); Fashion-MNIST (Xiao,
Rasul, Vollgraf, 2017, MIT licence), MNIST (CC BY-SA 3.0).
Differs: generated, not photographed: the bias is in one object, visible, and of known strength.
"""

import itertools
from dataclasses import dataclass
from typing import Literal

import polars as pl
import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.data.bases import FASHION_NAMES, Base, base
from unskew.data.dataset import DataSet, Memory

CELL, DOWN, ACROSS = 14, 3, 4
PERSON = 8  # the digit that stands for the person
COLOURS = ((0.35, 0.65, 0.95), (0.95, 0.6, 0.35))
VALUES = ("blue", "orange")
CHUNK = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    base: Literal["fashion", "digits"] = "fashion"  # images of the objects; digits needs no download
    rows: int = 20_000  # scenes to make
    ratio: tuple[float, ...] = (2.0,)  # r of the labels: R for R to 1/R, or one value per label
    hidden: float = 6.0  # r of the hidden object
    presence: float = 0.3  # probability of each object, averaged over both values of person
    share: float = 0.5  # share of orange persons
    person_label: bool = False  # whether the person is orange is a label too, the last
    noise_std: float = 0.1  # standard deviation of the pixel noise
    seed: int = 0  # random seed

    def __post_init__(self) -> None:
        labels = len(_names(self.base)) - 1
        if len(self.ratio) not in (1, labels):
            raise UserError(f"tiles: ratio must have 1 or {labels} numbers, got {len(self.ratio)}")
        if min(self.ratio) <= 0 or self.hidden <= 0:
            raise UserError("tiles: ratio and hidden must be above 0")
        if not 0 < self.presence <= 0.5:
            raise UserError(f"tiles: presence={self.presence} must lie in (0, 0.5]")
        if not 0 < self.share < 1:
            raise UserError(f"tiles: share={self.share} must lie in (0, 1)")
        if self.rows < 100 or self.noise_std < 0:
            raise UserError("tiles: rows must be at least 100, and noise_std not negative")

    @property
    def ratios(self) -> Tensor:
        """(K,) r of all objects, the hidden one last."""
        labels = len(_names(self.base)) - 1
        given = torch.tensor(self.ratio, dtype=torch.float64)
        spread = given if len(given) > 1 else given ** torch.linspace(1, -1, labels, dtype=torch.float64)
        return torch.cat([spread, torch.tensor([self.hidden], dtype=torch.float64)])


def chances(ratios: Tensor, presence: float) -> Tensor:
    """(2, K) probability of each object for either value of the attribute.

    >>> chances(torch.tensor([3.0]), 0.25).flatten().tolist()
    [0.125, 0.375]
    """
    first = 2 * presence / (1 + ratios.double())
    return torch.stack([first, ratios * first])


def true_leakage(chance: Tensor) -> float:
    r"""Best possible accuracy of guessing the attribute, with balanced values, from the objects.

    .. math::  \lambda = \tfrac12 \sum_{o \in \{0,1\}^K} \max_a \prod_k p_{ak}^{o_k} (1 - p_{ak})^{1 - o_k}

    >>> round(true_leakage(torch.tensor([[0.2], [0.6]])), 3)  # guess by the object: (0.8 + 0.6) / 2
    0.7
    """
    sets = torch.tensor(list(itertools.product((0.0, 1.0), repeat=chance.shape[1])), dtype=torch.float64)
    both = torch.stack([(sets * p + (1 - sets) * (1 - p)).prod(1) for p in chance.double()])
    return float(both.max(0).values.sum() / 2)


def make(cfg: Config) -> DataSet:
    names = _names(cfg.base)
    ratios = cfg.ratios
    g = stream(cfg.seed, "tiles", "law")
    attribute = (torch.rand(cfg.rows, generator=g) < cfg.share).long()
    present = torch.rand(cfg.rows, len(names), generator=g) < chances(ratios, cfg.presence)[attribute]
    # A random order of the cells for every scene: the person takes the first, object k the cell k + 1.
    cells = torch.rand(cfg.rows, DOWN * ACROSS, generator=g).argsort(1)
    split = torch.full((cfg.rows,), 2)
    split[: cfg.rows * 7 // 10], split[: cfg.rows * 6 // 10] = 1, 0
    objects = base("fashion" if cfg.base == "fashion" else "digits")
    people = base("mnist" if cfg.base == "fashion" else "digits")
    x = torch.empty(cfg.rows, 3, DOWN * CELL, ACROSS * CELL, dtype=torch.uint8)
    for start in range(0, cfg.rows, CHUNK):
        part = slice(start, start + CHUNK)
        g = stream(cfg.seed, "tiles", "scenes", start)
        x[part] = _scenes(objects, people, attribute[part], present[part], cells[part], split[part], cfg, g)
    top, left = cells[:, 0] // ACROSS * CELL, cells[:, 0] % ACROSS * CELL
    box = {"x0": left, "y0": top, "x1": left + CELL, "y1": top + CELL}
    return DataSet(
        name="tiles" if cfg.base == "fashion" else "tiles-digits",
        inputs=Memory(x),
        y=torch.cat([present[:, :-1], attribute[:, None].bool()[:, : int(cfg.person_label)]], 1).float(),
        classes=(*names[:-1], *([VALUES[1]] if cfg.person_label else [])),
        split=split,
        bias=attribute[:, None],
        bias_names=("person",),
        bias_values=(VALUES,),
        columns=pl.DataFrame({**{k: v.numpy() for k, v in box.items()}, "hidden_object": present[:, -1].int().numpy()}),
    )


def _names(kind: str) -> tuple[str, ...]:
    """The objects, the hidden one last."""
    if kind == "fashion":
        return (*(n for n in FASHION_NAMES if n != "bag"), "bag")
    return (*map(str, range(8)), "9")


def _scenes(
    objects: Base, people: Base, attribute: Tensor, present: Tensor, cells: Tensor, split: Tensor, cfg: Config, g: torch.Generator
) -> Tensor:
    n = len(attribute)
    canvas = torch.zeros(n, DOWN * ACROSS, 3, CELL, CELL)
    codes = [FASHION_NAMES.index(name) if cfg.base == "fashion" else int(name) for name in _names(cfg.base)]
    every = torch.arange(n)
    for k, code in enumerate(codes):
        grey = _half(_draw(objects, code, split, g)) * (0.4 + 0.6 * torch.rand(n, 1, 1, generator=g))
        shown = present[:, k]
        canvas[every[shown], cells[shown, k + 1]] = grey[shown, None].expand(-1, 3, -1, -1)
    slant = torch.where(attribute == 1, 0.4, -0.4) + 0.15 * torch.randn(n, generator=g)
    colour = (torch.tensor(COLOURS)[attribute] + 0.1 * torch.randn(n, 3, generator=g)).clamp(0, 1)
    person = _half(_shear(_draw(people, PERSON, split, g), slant))
    canvas[every, cells[:, 0]] = colour[:, :, None, None] * person[:, None]
    picture = canvas.view(n, DOWN, ACROSS, 3, CELL, CELL).permute(0, 3, 1, 4, 2, 5).reshape(n, 3, DOWN * CELL, ACROSS * CELL)
    noisy = picture + cfg.noise_std * torch.randn(picture.shape, generator=g)
    return (noisy.clamp(0, 1) * 255).round().to(torch.uint8)


def _draw(source: Base, code: int, split: Tensor, g: torch.Generator) -> Tensor:
    """(n, 28, 28) in [0, 1]: an image of the class for every scene, from the test part for test scenes."""
    of_class = (source.y == code).nonzero().flatten()
    known, unseen = of_class[of_class < source.num_train], of_class[of_class >= source.num_train]
    u = torch.rand(len(split), generator=g)
    picked = torch.where(split == 2, unseen[(u * len(unseen)).long()], known[(u * len(known)).long()])
    return source.x[picked].float() / 255


def _half(x: Tensor) -> Tensor:
    return F.avg_pool2d(x[:, None], 2)[:, 0]


def _shear(x: Tensor, slant: Tensor) -> Tensor:
    """Each row of pixels shifted sideways in proportion to its height."""
    turn = torch.zeros(len(x), 2, 3)
    turn[:, 0, 0], turn[:, 1, 1], turn[:, 0, 1] = 1, 1, slant
    grid = F.affine_grid(turn, [len(x), 1, *x.shape[1:]], align_corners=False)
    return F.grid_sample(x[:, None], grid, align_corners=False)[:, 0]
