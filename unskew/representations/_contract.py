"""What a file in this folder defines: a representation, from which a shortcut may be read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from unskew.core import registry
from unskew.data.dataset import DataSet

Variants = Sequence[Mapping[str, str]]


def _no_state(cfg: Any) -> str:
    return ""


@dataclass(frozen=True)
class Representation:
    """A loaded file of this folder."""

    name: str
    source: Path  # its file: cached features belong to one version of it
    config: type  # frozen dataclass of its settings
    features: Callable[[DataSet, Tensor, Any, Any], Tensor]  # (data, ids, inputs in [0, 1] or None, cfg) -> (B, ...)
    phrase: Callable[[Any], str]  # its name in a sentence
    applies: Callable[[DataSet, Any], str]  # why it cannot be computed; empty if it can
    pixels: bool  # whether it reads the inputs
    content: bool | Callable[[Any], bool]  # whether it may legitimately show the class
    variants: Variants | Callable[[DataSet], Variants]  # the settings that an audit measures
    artefact: bool = False  # whether it cannot be part of what the inputs show: how a file was made, a column of the table
    cached: bool = True  # false: cheap to compute, and may change while the files do not
    state: Callable[[Any], str] = _no_state  # what its features depend on besides its settings, such as a file of weights

    def is_content(self, cfg: Any) -> bool:
        return bool(self.content(cfg) if callable(self.content) else self.content)

    def variants_for(self, data: DataSet) -> Variants:
        return self.variants(data) if callable(self.variants) else self.variants


def load(name: str) -> Representation:
    """The representation of this name; a dotted name is a user's module."""
    return registry.load("representations", name, Representation)


def grey_of(x: Tensor) -> Tensor:
    """(B, H, W) mean of the channels, standardised per image: `color` covers brightness and contrast."""
    grey = x.mean(1)
    grey = grey - grey.mean((1, 2), keepdim=True)
    return grey / grey.flatten(1).std(1).clamp(min=1e-3)[:, None, None]


def images_only(data: DataSet) -> str:
    return "" if len(data.shape) == 3 else f"inputs of shape {data.shape} are not images"
