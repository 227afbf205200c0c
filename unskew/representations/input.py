r"""input: the feature vector itself, for vector data.

.. math::  \phi(x) = x

Source: Li and Vasconcelos, "REPAIR", CVPR 2019 (phi is the identity).
Differs: nothing.
"""

from dataclasses import dataclass

from torch import Tensor

from unskew.data.dataset import DataSet

PIXELS, CONTENT = True, True
VARIANTS: tuple[dict[str, str], ...] = ({},)


@dataclass(frozen=True)
class Config:
    """No settings."""


def phrase(cfg: Config) -> str:
    return "the features, linearly"


def applies(data: DataSet, cfg: Config) -> str:
    if not data.has_inputs:
        return "there are no inputs"
    return "" if len(data.shape) == 1 else f"inputs of shape {data.shape} are not vectors"


def features(data: DataSet, index: Tensor, x: Tensor, cfg: Config) -> Tensor:
    return x
