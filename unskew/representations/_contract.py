"""What a file of this folder defines: a representation, something that a shortcut could be read from."""

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
    """A file of this folder, loaded."""

    name: str
    source: Path  # its file: features in the cache are of one version of it
    config: type  # frozen dataclass of its settings
    features: Callable[[DataSet, Tensor, Any, Any], Tensor]  # (data, ids, inputs in [0, 1] or None, cfg) -> (B, ...)
    phrase: Callable[[Any], str]  # what a sentence calls it
    applies: Callable[[DataSet, Any], str]  # why it cannot be computed, or nothing
    pixels: bool  # whether it looks at the inputs
    content: bool | Callable[[Any], bool]  # whether it may rightly tell the class
    variants: Variants | Callable[[DataSet], Variants]  # the settings that an audit runs
    cached: bool = True  # false: costs nothing to read and may change while the files stay
    state: Callable[[Any], str] = _no_state  # what its features depend on beside its settings, such as a file of weights

    def is_content(self, cfg: Any) -> bool:
        return bool(self.content(cfg) if callable(self.content) else self.content)

    def variants_for(self, data: DataSet) -> Variants:
        return self.variants(data) if callable(self.variants) else self.variants


def load(name: str) -> Representation:
    """The representation of this name; a dotted name is a user's own module."""
    return registry.load("representations", name, Representation)


def grey_of(x: Tensor) -> Tensor:
    """(B, H, W) mean of the channels, with mean 0 and deviation 1: brightness and contrast are colour's to tell."""
    grey = x.mean(1)
    grey = grey - grey.mean((1, 2), keepdim=True)
    return grey / grey.flatten(1).std(1).clamp(min=1e-3)[:, None, None]


def images_only(data: DataSet) -> str:
    return "" if len(data.shape) == 3 else f"inputs of shape {data.shape} are not images"
