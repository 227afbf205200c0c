"""What a file in this folder defines: a representation, from which a shortcut may be read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from unskew.core import registry
from unskew.core.errors import UserError
from unskew.data.dataset import DataSet, Memory
from unskew.data.native import Finish, Look

Variants = Sequence[Mapping[str, str]]
REDUCED = 16  # cells along each side that most representations are made from


def _no_state(cfg: Any) -> str:
    return ""


@dataclass(frozen=True)
class Representation:
    """A loaded file of this folder."""

    name: str
    source: Path  # its file: cached features belong to one version of it
    config: type  # frozen dataclass of its settings
    phrase: Callable[[Any], str]  # its name in a sentence
    applies: Callable[[DataSet, Any], str]  # why it cannot be computed; empty if it can
    pixels: bool  # whether it reads the inputs
    content: bool | Callable[[Any], bool]  # whether it may legitimately show the class
    variants: Variants | Callable[[DataSet], Variants]  # the settings that an audit measures
    features: Callable[[DataSet, Tensor, Any, Any], Tensor] | None = (
        None  # (data, ids, inputs in [0, 1] or None, cfg) -> (B, ...)
    )
    look: Look | None = None  # instead of features: one picture at full resolution with its file's header, and cfg -> (D,)
    # Instead of what each row gave, what it is beside others: `learn` from a sample (m, D) with its labels, and cfg; `score` then makes
    # (n, K) of what was learnt, any rows (n, D), and the place of each in the sample, -1 for most.
    learn: Callable[[Tensor, Tensor, Any], Any] | None = None
    score: Callable[[Any, Tensor, Tensor, Any], Tensor] | None = None
    note: Look | None = None  # the part of a look that needs the picture; what `finish` makes of it is the look
    finish: Finish | None = None  # (what was noted of several pictures (B, ...), cfg) -> (B, D)
    foreign: bool | Callable[[Any], bool] = False  # whether it can never be part of the subject, such as the name of a camera
    probe: bool = False  # whether only an audit measures it: a biased model's opinion is not read from it
    asked: bool = False  # whether it is a part of the inputs, so that a model may follow it by right: only the user can say
    pieces: bool = False  # whether its features are computed for a few pictures at a time, which stay in the processor's cache
    cached: bool = True  # false: cheap to compute, and may change while the files do not
    state: Callable[[Any], str] = _no_state  # what its features depend on besides its settings, such as a file of weights

    def __post_init__(self) -> None:
        if (self.features is None) == (self.look is None):
            raise UserError("a representation defines either features or look")
        if (self.learn is None) != (self.score is None):
            raise UserError("a representation defines both learn and score, or neither")
        if (self.note is None) != (self.finish is None) or (self.note is not None and self.look is None):
            raise UserError("a representation that defines note or finish defines both, and look")

    def is_content(self, cfg: Any) -> bool:
        return bool(self.content(cfg) if callable(self.content) else self.content)

    def is_foreign(self, cfg: Any) -> bool:
        return bool(self.foreign(cfg) if callable(self.foreign) else self.foreign)

    def variants_for(self, data: DataSet) -> Variants:
        return self.variants(data) if callable(self.variants) else self.variants


def load(name: str) -> Representation:
    """The representation of this name; a dotted name is a user's module."""
    return registry.load("representations", name, Representation)


_SHARED = WeakIdKeyDictionary()  # by batch: what several representations need of it, as long as it lives


def _once(x: Tensor, name: str, compute: Callable[[Tensor], Tensor]) -> Tensor:
    kept: dict[str, Tensor] = _SHARED.setdefault(x, {})  # type: ignore[no-untyped-call]
    if name not in kept:
        kept[name] = compute(x)
    return kept[name]


def grey_of(x: Tensor) -> Tensor:
    """(B, H, W) mean of the channels, standardised per image: `color` covers brightness and contrast. Not to be changed in place."""
    return _once(x, "grey", _grey)


def _grey(x: Tensor) -> Tensor:
    grey = x[:, 0].clone()
    for k in range(1, x.shape[1]):  # half the time of a mean over the second of four axes
        grey += x[:, k]
    grey /= x.shape[1]
    grey -= grey.mean((1, 2), keepdim=True)
    spread: Tensor = torch.linalg.vector_norm(grey, dim=(1, 2)) / max(1, grey[0].numel() - 1) ** 0.5
    return grey.div_(spread.clamp(min=1e-3)[:, None, None])


def reduced(x: Tensor, side: int) -> Tensor:
    """(B, C, side, side) area averages of images (B, C, H, W). Not to be changed in place."""
    return _once(x, f"reduced {side}", lambda whole: _reduced(whole, side))


def _reduced(x: Tensor, side: int) -> Tensor:
    height, width = x.shape[2:]
    if height % side or width % side:
        return F.adaptive_avg_pool2d(x, side)
    if 2 * side == REDUCED and height % REDUCED == 0 and width % REDUCED == 0:
        return F.avg_pool2d(reduced(x, REDUCED), 2)
    # Whole lines first: several times as fast as torch's pooling.
    lines = x.reshape(*x.shape[:2], side, height // side, width).mean(3)
    return lines.reshape(*lines.shape[:3], side, width // side).mean(4)


def images_only(data: DataSet) -> str:
    return "" if len(data.shape) == 3 else f"inputs of shape {data.shape} are not images"


def pictures_only(data: DataSet, side: int = 16) -> str:
    """Why the levels of pixels cannot be looked at; empty if they can."""
    if len(data.shape) != 3 or data.shape[0] not in (1, 3):
        return f"inputs of shape {data.shape} are not pictures"
    if min(data.shape[1:]) < side:
        return f"images are smaller than {side} pixels"
    if isinstance(data.inputs, Memory) and data.inputs.x.dtype != torch.uint8:
        low, high = data.inputs.x.min(), data.inputs.x.max()
        if float(low) < 0 or float(high) > 1:
            return f"inputs from {float(low):.3g} to {float(high):.3g} are not levels from 0 to 1"
    return ""


def files_only(data: DataSet) -> str:
    return "" if data.paths and len(data.shape) == 3 else "the rows are not image files"
