r"""local: anything small, wherever it is: a convolutional network of about three thousand parameters, fitted on half of the rows.

.. math::  \phi(x) = W \big(\max_p h_p,\ \mathrm{mean}_p h_p\big), \qquad
           h = \mathrm{relu}(k_3 * \mathrm{relu}(k_2 * \mathrm{relu}(k_1 * x)))

Linear readers need a mark to be at one place, or a number made for it; this network finds what looks the same anywhere. It sees the
labels of the rows it is fitted on, at most 600, so these rows are not judged: their features are NaN. Fitted and judged rows differ in
no other way, and the rows judged share nothing but the network, so intervals and baselines of the measurement stay right.

Source: made here.
Differs: nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

from unskew.core.rng import stream
from unskew.core.threads import threads_for
from unskew.data.dataset import DataSet
from unskew.data.native import Picture
from unskew.representations._contract import pictures_only

PIXELS, CONTENT, CACHED, PROBE = True, False, False, True
VARIANTS: tuple[dict[str, str], ...] = ({},)
SIDE = 48
FITTED = 600  # rows at most that it is fitted on
EPOCHS, BATCH, RATE, DECAY = 16, 32, 0.01, 0.01
FEWEST = 10  # rows of every class in the half that is judged


@dataclass(frozen=True)
class Config:
    """No settings."""


def phrase(cfg: Config) -> str:
    return "something small, anywhere in the picture"


def applies(data: DataSet, cfg: Config) -> str:
    if why := pictures_only(data, 32):
        return why
    if data.multi_label:
        return "rows have several labels"
    return f"a class has fewer than {2 * FEWEST} rows" if int(data.y.bincount().min()) < 2 * FEWEST else ""


def look(picture: Picture, cfg: Config) -> NDArray[np.uint8]:
    image = picture.image
    small = image.resize((SIDE, SIDE), Image.Resampling.BOX if min(image.size) >= SIDE else Image.Resampling.BILINEAR)
    return np.asarray(small).transpose(2, 0, 1).ravel()


class Network(nn.Module):
    """Three layers of small filters, the largest and the mean answer of each, and a linear layer."""

    def __init__(self, classes: int, generator: torch.Generator) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv2d(3, 8, 5, 2), nn.Conv2d(8, 16, 3, 2), nn.Conv2d(16, 16, 3)])
        self.last = nn.Linear(32, classes)
        for weight in self.parameters():
            if weight.ndim == 4:
                nn.init.kaiming_normal_(weight, generator=generator)
            else:
                nn.init.zeros_(weight)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = F.relu(layer(x))
        answer: Tensor = self.last(torch.cat([x.amax((2, 3)), x.mean((2, 3))], 1))
        return answer


def halves(y: Tensor) -> Tensor:
    """(n,) whether the network is fitted on a row: every second row of each class, in random order, at most 600 in all."""
    order = torch.randperm(len(y), generator=stream(0, "local", "halves"))
    order = order[y[order].argsort(stable=True)]
    fitted = order[::2]
    fitted = fitted[torch.randperm(len(fitted), generator=stream(0, "local", "fitted"))[:FITTED]]
    chosen = torch.zeros(len(y), dtype=torch.bool)
    chosen[fitted] = True
    return chosen


@dataclass(frozen=True)
class Learnt:
    network: Network
    mean: Tensor  # of the pixels, by channel
    std: Tensor
    fitted: Tensor  # (m,) whether the network saw a row of the sample


def learn(block: Tensor, y: Tensor, cfg: Config) -> Learnt:
    y = torch.unique(y, return_inverse=True)[1]
    fitted = halves(y)
    x = block.view(-1, 3, SIDE, SIDE)[fitted].float() / 255
    mean, std = x.mean((0, 2, 3), keepdim=True), x.std((0, 2, 3), keepdim=True) + 1e-3
    with threads_for(BATCH * 3 * SIDE**2):
        return Learnt(fit((x - mean) / std, y[fitted], int(y.max()) + 1), mean, std, fitted)


def score(learnt: Learnt, block: Tensor, place: Tensor, cfg: Config) -> Tensor:
    """(n, C) logits of the rows that the network was not fitted on; NaN for the others."""
    seen = (place >= 0) & learnt.fitted[place.clamp(min=0)]
    logits = torch.full((len(block), learnt.network.last.out_features), float("nan"))
    pictures = block.view(-1, 3, SIDE, SIDE)
    with torch.no_grad():
        for rows in torch.split((~seen).nonzero().flatten(), 64):  # as many as stay in the processor's cache
            x = pictures[rows].float().div_(255).sub_(learnt.mean).div_(learnt.std)
            logits[rows] = learnt.network(x)
    return logits - logits.mean(1, keepdim=True)


def fit(x: Tensor, y: Tensor, classes: int) -> Network:
    """The network after a few passes over these rows, classes counting alike."""
    generator = stream(0, "local", "fit")
    network = Network(classes, generator)
    weight = len(y) / (classes * y.bincount(minlength=classes).clamp(min=1).float())
    parameters = list(network.parameters())
    first, second = ([torch.zeros_like(p) for p in parameters] for _ in range(2))
    steps = EPOCHS * -(-len(x) // BATCH)
    step = 0
    for _ in range(EPOCHS):
        for rows in torch.split(torch.randperm(len(x), generator=generator), BATCH):
            with torch.enable_grad():
                slopes = torch.autograd.grad(F.cross_entropy(network(x[rows]), y[rows], weight), parameters)
            step += 1
            rate = RATE * math.sin(math.pi * step / (steps + 1))  # up and down again
            adam(parameters, slopes, first, second, step, rate)
    return network


def adam(
    parameters: Sequence[Tensor],
    slopes: Sequence[Tensor],
    first: Sequence[Tensor],
    second: Sequence[Tensor],
    step: int,
    rate: float,
) -> None:
    """One step of AdamW, in place. Importing `torch.optim` would cost more time than the whole fit."""
    with torch.no_grad():
        for p, g, m, v in zip(parameters, slopes, first, second, strict=True):
            m.mul_(0.9).add_(g, alpha=0.1)
            v.mul_(0.999).addcmul_(g, g, value=0.001)
            p.mul_(1 - rate * DECAY)
            p.addcdiv_(m / (1 - 0.9**step), (v / (1 - 0.999**step)).sqrt_().add_(1e-8), value=-rate)
