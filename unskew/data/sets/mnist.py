r"""mnist: 70,000 handwritten digits, 28x28, grey, no planted bias. Downloaded once (11 MB) and cached.

.. math::  x \in [0, 1]^{1 \times 28 \times 28}, \qquad y \in \{0, \dots, 9\}

Rows 0 to 53,999 are the training split, 54,000 to 59,999 the validation split, the 10,000 official test images the test split.

Source: LeCun, Bottou, Bengio, Haffner, "Gradient-based learning applied to document recognition", Proc. IEEE 1998.
Licence of the data: CC BY-SA 3.0.
Differs: nothing.
"""

from dataclasses import dataclass

from unskew.data.dataset import DataSet
from unskew.data.sets.digits import grey_digits


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """No settings: the images are fixed."""


def make(cfg: Config) -> DataSet:
    return grey_digits("mnist")
