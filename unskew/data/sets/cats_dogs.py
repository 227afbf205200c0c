r"""cats-dogs: photographs of cats and dogs from CIFAR-10. In training, one animal is bright and the other dark.

.. math::  \text{TB1} = \text{dark cats} \cup \text{bright dogs}, \qquad \text{TB2} = \text{bright cats} \cup \text{dark dogs}

A real-image stand-in for Dogs vs Cats, fetched and cached. The brightness of a photograph is the mean of its grey values; of each
animal's photographs, the `share` with the highest are bright and as many with the lowest dark, in the training part and in the test
part by itself; the rest is left out. The bias column is `light`. `set` is the set to train on (TB1 or TB2); a tenth of it, equally
biased, is held out for validation. The test split has all four kinds, as many of each: its aligned rows are like the training set,
its conflicting rows are the opposite set.

Source: the task of Kim et al., "Learning not to learn", CVPR 2019, section 4.2; images: Krizhevsky, "Learning multiple layers of
features from tiny images", 2009.
Differs: images of 32x32 pixels; brightness is that of the whole picture, not of the fur, and the sets have as many cats as dogs.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.data.cifar import NAMES, cifar10
from unskew.data.dataset import DataSet, Memory

ANIMALS, LIGHT = ("cat", "dog"), ("dark", "bright")
LUMA = (0.299, 0.587, 0.114)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    set: Literal["TB1", "TB2"] = "TB1"  # set to train on
    share: float = 0.33  # share of an animal's photographs that are bright, and that are dark
    seed: int = 0  # random seed: which tenth is held out

    def __post_init__(self) -> None:
        if not 0 < self.share <= 0.5:
            raise UserError("cats-dogs: share must lie in (0, 0.5]")


def make(cfg: Config) -> DataSet:
    photographs = cifar10()
    rows, animal, light, split = [], [], [], []
    for part in (slice(0, photographs.num_train), slice(photographs.num_train, len(photographs.y))):
        first = part.start or 0
        for code, name in enumerate(ANIMALS):
            own = first + (photographs.y[part] == NAMES.index(name)).nonzero().flatten()
            for value, chosen in enumerate(extremes(brightness(photographs.x[own]), cfg.share)):
                aligned = (value == code) == (cfg.set == "TB1")  # TB1: dark cats (0, 0) and bright dogs (1, 1)
                if first == 0 and not aligned:
                    continue
                rows.append(own[chosen])
                animal.append(torch.full((len(chosen),), code))
                light.append(torch.full((len(chosen),), value))
                split.append(torch.full((len(chosen),), 2 if first else 0))
    index, which = torch.cat(rows), torch.cat(split)
    train = (which == 0).nonzero().flatten()
    held = torch.randperm(len(train), generator=stream(cfg.seed, "cats-dogs", "val"))[: len(train) // 10]
    which[train[held]] = 1
    aligned_pairs = torch.eye(2, dtype=torch.bool)
    return DataSet(
        name="cats-dogs",
        inputs=Memory(photographs.x[index]),
        y=torch.cat(animal),
        classes=ANIMALS,
        split=which,
        bias=torch.cat(light)[:, None],
        bias_names=("light",),
        bias_values=(LIGHT,),
        aligned_by_design=(aligned_pairs if cfg.set == "TB1" else ~aligned_pairs,),
    )


def brightness(x: Tensor) -> Tensor:
    """(N,) mean grey value of colour images (N, 3, H, W)."""
    grey: Tensor = (x.float().mean((2, 3)) * torch.tensor(LUMA)).sum(1)
    return grey


def extremes(values: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """The positions of the lowest and of the highest values, `share` of them each.

    >>> [part.tolist() for part in extremes(torch.tensor([3.0, 1.0, 2.0, 4.0]), 0.25)]
    [[1], [3]]
    """
    order, count = values.argsort(stable=True), int(share * len(values))
    return order[:count], order[len(order) - count :]
