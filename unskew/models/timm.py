r"""timm: any image network of the timm library, by name.

.. math::  z = \text{timm.create\_model(name)}(x)

`name` is timm's (resnet10t, convnext_atto, ...); `pretrained=true` downloads its weights through timm. Feature layers are the
network's direct children; methods that split a network at a layer need a built-in one.

Source: Wightman, "PyTorch image models" (Apache 2.0); install it with pip install 'unskew[timm]'.
Differs: nothing.
"""

from dataclasses import dataclass

from torch import nn

from unskew.core.errors import UserError
from unskew.models._contract import need_images


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    name: str = ""  # timm's name of the network, such as resnet10t
    pretrained: bool = False  # start from timm's weights


def make(cfg: Config, shape: tuple[int, ...], outputs: int) -> nn.Module:
    channels, _, _ = need_images(shape, "timm", 32)
    try:
        import timm
    except (ImportError, RuntimeError) as error:  # a torchvision of another build raises RuntimeError
        raise UserError(f"model timm needs timm and torchvision: pip install 'unskew[timm]' ({error})") from None
    if not cfg.name:
        raise UserError("model timm: choose a network, such as model.name=resnet10t")
    try:
        network: nn.Module = timm.create_model(cfg.name, pretrained=cfg.pretrained, num_classes=outputs, in_chans=channels)
    except RuntimeError as error:
        raise UserError(f"model timm: {str(error).splitlines()[0]}") from None
    return network
