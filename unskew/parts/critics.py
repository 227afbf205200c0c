"""Critics of adversarial removal: networks that guess a bias value from a layer or from an image."""

import torch
from torch import Tensor, nn

from unskew.core.errors import UserError
from unskew.models._contract import maker

CONVOLUTIONS = (16, 32, 64)


class Critic(nn.Module):
    """An MLP with batch normalisation, the paper's attacker, on what `look` sees: the numbers, or three convolutions of them."""

    def __init__(self, shape: tuple[int, ...], told: int, outputs: int, hidden: tuple[int, ...], convolve: bool) -> None:
        super().__init__()
        self.look: nn.Module = nn.Flatten()
        width = int(torch.tensor(shape).prod())
        if convolve:
            layers: list[nn.Module] = []
            channels = shape[0]
            for size in CONVOLUTIONS:
                layers += [nn.Conv2d(channels, size, 3, stride=2, padding=1), nn.BatchNorm2d(size), nn.LeakyReLU()]
                channels = size
            self.look = nn.Sequential(*layers, nn.Flatten())
            with torch.no_grad():
                width = self.look.eval()(torch.zeros(2, *shape)).shape[1]
            self.look.train()
        width += told
        parts: list[nn.Module] = []
        for size in hidden:
            parts += [nn.Linear(width, size), nn.BatchNorm1d(size), nn.LeakyReLU()]
            width = size
        self.guess = nn.Sequential(*parts, nn.Linear(width, outputs))

    def forward(self, read: Tensor, told: Tensor | None) -> Tensor:
        h = self.look(read)
        guessed: Tensor = self.guess(h if told is None else torch.cat([h, told], 1))
        return guessed


class ImageCritic(nn.Module):
    """A ResNet-18 on the image."""

    def __init__(self, shape: tuple[int, ...], outputs: int) -> None:
        super().__init__()
        self.network = maker("resnet", {"depth": 18}, shape, outputs)()

    def forward(self, read: Tensor, told: Tensor | None) -> Tensor:
        guessed: Tensor = self.network(read)
        return guessed


def make_critic(kind: str, shape: tuple[int, ...], told: int, outputs: int, hidden: tuple[int, ...], image: bool) -> nn.Module:
    """A critic of a kind: mlp, conv or resnet18; `auto` is conv at the image and mlp at a layer."""
    kind = ("conv" if image else "mlp") if kind == "auto" else kind
    if kind == "resnet18":
        if not image or told:
            raise UserError("adversarial: critic=resnet18 reads the image alone: use at=image, and leave out conditional")
        return ImageCritic(shape, outputs)
    if kind == "conv" and len(shape) != 3:
        raise UserError(
            f"adversarial: critic=conv needs a layer that is a map, but it has shape {shape}; choose another with at="
        )
    return Critic(shape, told, outputs, hidden, convolve=kind == "conv")
