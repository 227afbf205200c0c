"""Networks that predict the bias from features, which lnl, blind_eye and grl train against."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unskew.core import engine
from unskew.core.errors import UserError
from unskew.losses import confusion, negative_entropy
from unskew.models._contract import Model
from unskew.nn import share_statistics
from unskew.records import Batch, Facts

LEVELS = 8  # of a colour channel
HIDDEN = (100,)  # units of a label's head, by default


class LabelHeads(nn.Module):
    """One small classifier per bias column on flattened features. Rows without a value are ignored."""

    def __init__(self, width: int, sizes: Sequence[int], hidden: Sequence[int]) -> None:
        super().__init__()
        self.heads = nn.ModuleList(share_statistics(_mlp(width, size, hidden)) for size in sizes)

    def forward(self, h: Tensor) -> list[Tensor]:
        return [head(h.flatten(1)) for head in self.heads]

    @staticmethod
    def targets(batch: Batch) -> list[Tensor]:
        return list(batch.need("bias").unbind(1))


def _mlp(width: int, outputs: int, hidden: Sequence[int]) -> nn.Module:
    layers: list[nn.Module] = []
    for size in hidden:
        layers += [nn.Linear(width, size), nn.ReLU()]
        width = size
    return nn.Sequential(*layers, nn.Linear(width, outputs))


class ColourHeads(nn.Module):
    """Three small convolutional networks that read each channel's level, pixel by pixel, from a feature map."""

    def __init__(self, channels: int, facts: Facts, stride: int = 2) -> None:
        super().__init__()
        self.facts, self.stride = facts, stride
        self.heads = nn.ModuleList(
            share_statistics(
                nn.Sequential(
                    nn.Conv2d(channels, channels, 3, padding=1),
                    nn.BatchNorm2d(channels),
                    nn.ReLU(),
                    nn.Conv2d(channels, LEVELS, 3, padding=1),
                )
            )
            for _ in range(3)
        )

    def forward(self, h: Tensor) -> list[Tensor]:
        return [head(h) for head in self.heads]

    def targets(self, batch: Batch) -> list[Tensor]:
        """Levels 0 to 7 of each channel at the map's size; -1, ignored, where the channel is 0."""
        return list(colour_levels(batch.x, self.facts.mean, self.facts.std, self.stride).unbind(1))


def colour_levels(x: Tensor, mean: Sequence[float] = (), std: Sequence[float] = (), stride: int = 2) -> Tensor:
    """(B, 3, H/s, W/s) codes: normalisation undone, every s-th pixel, 256 values cut into 8 levels; -1 where the value is 0."""
    if mean:
        x = x * x.new_tensor(std).view(-1, 1, 1) + x.new_tensor(mean).view(-1, 1, 1)
    value = (x[:, :, ::stride, ::stride] * 255).round().clamp(0, 255).long()
    return torch.where(value == 0, -1, value // (256 // LEVELS))


def make_heads(model: nn.Module, at: str, target: str, facts: Facts, hidden: Sequence[int]) -> nn.Module:
    """Heads on the named layer, whose shape a pass on zeros finds."""
    if not isinstance(model, Model):
        raise UserError("this method needs a network with named layers")
    if any(size < 1 for size in hidden):
        raise UserError(f"hidden={','.join(map(str, hidden))}: every layer of the bias predictor needs at least one unit")
    model.eval()
    with torch.no_grad():
        shape = model.features(torch.zeros(2, *facts.shape), at).shape[1:]
    model.train()
    if target == "label":
        if not facts.bias_sizes:
            raise UserError("the method needs a bias column; name one with --bias, or use target=color for images")
        return LabelHeads(int(torch.tensor(shape).prod()), facts.bias_sizes, hidden)
    if len(facts.shape) != 3 or facts.shape[0] != 3 or len(shape) != 3:
        raise UserError(
            f"target=color needs colour images and a layer that is a map; {at or 'the last layer'} has shape {tuple(shape)}"
        )
    sides, image = tuple(shape[1:]), tuple(facts.shape[1:])
    stride = -(-image[0] // sides[0])
    if stride < 2 or tuple(-(-side // stride) for side in image) != sides:
        raise UserError(
            f"target=color needs a layer of a half, a third, ... of the image's size, {image}; {at or 'the last layer'} has {sides}"
        )
    return ColourHeads(shape[0], facts, stride)


def check_hidden(method: str, target: str, hidden: Sequence[int]) -> None:
    """Colour is read by convolutions, which `hidden` does not describe."""
    if target == "color" and tuple(hidden) != HIDDEN:
        raise UserError(f"{method}: hidden is for target=label; target=color reads the map by two convolutions")


def bias_loss(logits: list[Tensor], targets: list[Tensor], weight: Tensor | None = None) -> Tensor:
    """The sum over bias columns (or channels) of the mean weighted cross-entropy over known values."""
    losses = []
    for z, b in zip(logits, targets, strict=True):
        per_place = F.cross_entropy(z, b, ignore_index=-1, reduction="none")
        # Average over the known values of the whole batch, possibly none; `share` undoes the averaging over processes.
        known = engine.global_sum((b >= 0).sum().to(z)).clamp(min=1)
        if weight is not None:
            per_place = per_place * weight.view(-1, *[1] * (per_place.ndim - 1))
        share = engine.global_sum(z.new_tensor(float(len(z)))) / len(z)
        losses.append(per_place.sum() / known * share)
    return torch.stack(losses).sum()


def mean_negative_entropy(logits: list[Tensor], weight: Tensor | None = None) -> Tensor:
    return torch.stack([negative_entropy(z) * (1 if weight is None else weight) for z in logits]).mean()


def mean_confusion(logits: list[Tensor], weight: Tensor | None = None) -> Tensor:
    return torch.stack([confusion(z) * (1 if weight is None else weight) for z in logits]).mean()
