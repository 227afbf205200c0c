r"""digits: 1,797 real handwritten digits, 8x8 enlarged to 28x28, grey, no planted bias. Embedded: no download.

.. math::  x \in [0, 1]^{1 \times 28 \times 28}, \qquad y \in \{0, \dots, 9\}

A fixed random fifth of every class is the test split; a tenth of the rest is the validation split.

Source: Alpaydin and Kaynak, "Optical recognition of handwritten digits", UCI 1998 (its test part), as shipped with
scikit-learn. Licence of the data: CC BY 4.0.
Differs: enlarged bilinearly with a margin of one source pixel, to fit networks for MNIST.
"""

from dataclasses import dataclass

import torch

from unskew.data.bases import base
from unskew.data.dataset import DataSet, Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """No settings: the images are fixed."""


def make(cfg: Config) -> DataSet:
    return grey_digits("digits")


def grey_digits(name: str) -> DataSet:
    """A base set unchanged; the last tenth of its training images is the validation split, as in PGD."""
    grey = base(name)
    split = torch.full((len(grey.y),), 2)
    split[: grey.num_train] = 1
    split[: grey.num_train * 9 // 10] = 0
    return DataSet(name=name, inputs=Memory(grey.x[:, None]), y=grey.y, classes=tuple(map(str, range(10))), split=split)
