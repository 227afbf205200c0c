"""Features of a frozen network, computed once and cached, in place of the inputs."""

import dataclasses
from dataclasses import dataclass
from typing import TypeGuard

import torch
from torch import Tensor, nn

from unskew.core import engine
from unskew.core.workplace import digest
from unskew.data.dataset import DataSet
from unskew.data.loader import normalise
from unskew.features import FEW, Spec, at_hand, compute
from unskew.models._contract import Model
from unskew.models.frozen import Frozen
from unskew.models.linear import Linear
from unskew.representations import _contract as representations

WHOLE = (0.0, 0.0, 1.0, 1.0)  # left, top, right, bottom, as shares of the sides


@dataclass(frozen=True)
class Computed:
    """Feature vectors of some rows of a data set, addressed by sample id."""

    x: Tensor  # (n, D)
    place: Tensor  # (N,) position of each sample, -1 where there are no features
    in_memory: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.x.shape[1:])

    def rows(self, index: Tensor) -> tuple[Tensor, Tensor]:
        place = self.place[index]
        return self.x[place.clamp(min=0)], place >= 0


def is_frozen(network: nn.Module) -> TypeGuard[Frozen]:
    return isinstance(network, Frozen)


def inside(x: Tensor, box: tuple[float, float, float, float]) -> Tensor:
    """The part of pictures (..., H, W) within a box.

    >>> inside(torch.arange(16).view(1, 4, 4), (0.5, 0.0, 1.0, 0.5))
    tensor([[[2, 3],
             [6, 7]]])
    """
    high, wide = x.shape[-2:]
    left, top, right, bottom = box
    return x[..., round(top * high) : round(bottom * high), round(left * wide) : round(right * wide)]


def representation_of(network: Frozen, box: tuple[float, float, float, float] = WHOLE) -> Spec:
    """What the backbone computes of a box in the picture, as a representation: cached by the digest of its weights.

    Without those of its last module: it is not used, and random in a network that was pretrained for other classes.
    """
    assert isinstance(network.backbone, Model)
    unused = {id(t) for t in network.backbone.output.state_dict(keep_vars=True).values()}
    used = [t for t in network.backbone.state_dict(keep_vars=True).values() if id(t) not in unused]
    weights = digest(*(t.detach().contiguous().cpu().numpy().tobytes() for t in used))

    def features(data: DataSet, index: Tensor, x: Tensor, cfg: object) -> Tensor:
        engine.keep_freed_memory()  # feature maps are large, and the next batch needs as much
        device = network.mean.device
        return network.pooled(inside(normalise(x, data), box).to(device)).cpu()

    state = f"{weights}-{network.side}" + ("" if box == WHOLE else f"-{box}")
    kind = dataclasses.replace(representations.load("layer"), features=features, state=lambda cfg: state)
    return Spec("layer", kind, kind.config(model="frozen"))


def with_features(data: DataSet, network: Frozen, rows: Tensor, workers: int = 0) -> DataSet:
    """The data set with features of at least these rows as its inputs; a data set that has them already is returned as it is.

    Every split is computed by itself, and taken whole from the cache if it is there: trial, training, slices and judgement ask for
    different rows, and for each of them the network is run once.
    """
    if isinstance(data.inputs, Computed):
        return data
    one, place, found = representation_of(network), torch.full((len(data),), -1), []
    done = 0
    for split in torch.unique(data.split[rows]):
        mine, every = rows[data.split[rows] == split].sort().values, (data.split == split).nonzero().flatten()
        whole = len(every) <= FEW and at_hand(data, one, every)
        index, blocks = compute(data, [one], every if whole else mine, workers=workers)
        place[index] = torch.arange(done, done + len(index))
        done += len(index)
        found.append(blocks["layer"])
    return dataclasses.replace(
        data, inputs=Computed(torch.cat([x for x in found if len(x)] or found[:1]), place), mean=(), std=()
    )


def standardise(network: nn.Module, data: DataSet) -> None:
    """Scale what a linear last layer reads by the training rows."""
    if isinstance(network, (Frozen, Linear)):
        x, there = data.inputs.rows(data.rows("train"))
        network.scale_by(x[there].flatten(1))
