r"""corruptions: accuracy on corrupted images: noise, blur, weather and digital artefacts, fifteen kinds at five strengths.

.. math::  \text{accuracy}_c = \frac15 \sum_{s=1}^{5} \text{accuracy}(f, c_s(x)), \qquad \text{mean} = \frac{1}{15} \sum_c \text{accuracy}_c

Strengths are those of ImageNet-C; lengths in pixels are for images of 224 pixels and scale with the image's side.

Source: Hendrycks and Dietterich, "Benchmarking neural network robustness to common corruptions and perturbations", ICLR 2019.
Differs: frost is drawn (a fractal of fine crystals), not pasted from photographs; fog's fractal is made of octaves of smoothed
noise; motion blur follows a straight line at a random angle; JPEG compression is done in memory. Accuracies are not divided by
AlexNet's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unskew.core import progress
from unskew.core.errors import UserError, suggest
from unskew.core.rng import stream
from unskew.data.dataset import DataSet
from unskew.evaluation._contract import Judged
from unskew.methods._contract import Method
from unskew.stats.corrupt import CORRUPTIONS, corrupt
from unskew.training.predict import predict

KEYS = ("corruptions",)
STRENGTHS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    corruptions: tuple[str, ...] = ()  # names, or all

    def __post_init__(self) -> None:
        names = tuple(CORRUPTIONS) if self.corruptions == ("all",) else self.corruptions
        for name in names:
            if name not in CORRUPTIONS:
                raise UserError(f"no corruption {name!r}{suggest(name, CORRUPTIONS)}; or use all")
        object.__setattr__(self, "corruptions", names)


@dataclass(frozen=True, slots=True)
class Record:
    """Accuracy by kind and strength, and the mean over kinds."""

    kinds: dict[str, tuple[float, ...]]  # accuracy at strengths 1 to 5
    mean: float

    def json(self) -> dict[str, Any]:
        kinds = {name: {"mean": sum(right) / STRENGTHS, "severity": list(right)} for name, right in self.kinds.items()}
        return {"corruptions": {"kinds": kinds, "mean": self.mean}}


def check(data: DataSet, options: Options) -> None:
    if len(data.shape) not in (3, 4) or data.multi_label or data.inputs.rows(torch.zeros(1).long())[0].dtype != torch.uint8:
        raise UserError(f"--corruptions needs images with one class per row; {data.name} has inputs of shape {data.shape}")


def ask(judged: Judged, options: Options) -> Record:
    return accuracy_under(judged.method, judged.data, judged.index, options.corruptions, seed=judged.seed, workers=judged.workers)


def accuracy_under(
    method: Method, data: DataSet, rows: Tensor, kinds: Sequence[str], *, seed: int = 0, workers: int = 0
) -> Record:
    """Accuracy on corrupted rows."""
    by_kind: dict[str, tuple[float, ...]] = {}
    with progress.bar("corrupting", STRENGTHS * len(kinds)) as advance:
        for kind in kinds:
            right = []
            for severity in range(1, STRENGTHS + 1):

                def alter(x: Tensor, index: Tensor, kind: str = kind, severity: int = severity) -> Tensor:
                    g = stream(seed, "corruption", kind, severity, int(index[0]))
                    flat = x.flatten(0, 1) if x.ndim == 5 else x  # the frames of a clip as images
                    return corrupt(flat.contiguous(), kind, severity, g).view_as(x)

                index, logits = predict(method, data, rows, workers=workers, alter=alter)
                right.append(float((logits.argmax(1) == data.y[index]).double().mean()))
                advance(1, kind)
            by_kind[kind] = tuple(right)
    return Record(by_kind, sum(sum(right) / STRENGTHS for right in by_kind.values()) / len(by_kind))
