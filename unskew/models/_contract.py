"""What a file in this folder defines: a network with logits and named feature layers."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from unskew.core import config, failures, registry
from unskew.core.errors import UserError, suggest
from unskew.nn import guard_convolutions, share_statistics


class Model(nn.Module):
    """A chain of named blocks and a linear head. Each block's output is a feature layer; the head reads the last."""

    def __init__(self, blocks: Sequence[tuple[str, nn.Module]], head: nn.Module) -> None:
        super().__init__()
        self.blocks = nn.Sequential(OrderedDict(blocks))
        self.head = head

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the feature layers, first to last."""
        return tuple(name for name, _ in self.blocks.named_children())

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.blocks(x))
        return logits

    def features(self, x: Tensor, layer: str = "") -> Tensor:
        """The output of one feature layer, by default the last."""
        for name, block in self.blocks.named_children():
            x = block(x)
            if name == (layer or self.layers[-1]):
                return x
        raise self._unknown(layer)

    def after(self, h: Tensor, layer: str = "") -> Tensor:
        """Logits from the output of a feature layer: `after(features(x, l), l) == forward(x)`."""
        self._check(layer)
        past = layer == ""
        for name, block in self.blocks.named_children():
            if past and layer:
                h = block(h)
            past = past or name == layer
        logits: Tensor = self.head(h)
        return logits

    def both(self, x: Tensor, layer: str = "") -> tuple[Tensor, Tensor]:
        """The output of a feature layer and the logits, in one pass."""
        h = self.features(x, layer)
        return h, self.after(h, layer)

    @property
    def output(self) -> nn.Module:
        """The module that computes the logits."""
        return self.head

    def _check(self, layer: str) -> None:
        if layer and layer not in self.layers:
            raise self._unknown(layer)

    def _unknown(self, layer: str) -> UserError:
        return UserError(f"no layer {layer!r}; available: {', '.join(self.layers)}")


class Parts(Model):
    """A network whose modules keep the names of published weights; `layers` and `_part` define their order."""

    def _part(self, name: str, x: Tensor) -> Tensor:
        """The output of one feature layer from that of the one before."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        return self.after(self.features(x))

    def features(self, x: Tensor, layer: str = "") -> Tensor:
        self._check(layer)
        for name in self.layers:
            x = self._part(name, x)
            if name == layer:
                break
        return x

    def after(self, h: Tensor, layer: str = "") -> Tensor:
        self._check(layer)
        for name in self.layers[self.layers.index(layer or self.layers[-1]) + 1 :]:
            h = self._part(name, h)
        logits: Tensor = self.output(h)
        return logits


class Adapter(Model):
    """Any nn.Module as a Model: its children, or the named modules, are the feature layers, read by hooks in one pass."""

    def __init__(self, network: nn.Module, layers: Sequence[str] = ()) -> None:
        nn.Module.__init__(self)
        self.network = network
        known = dict(network.named_modules())
        for name in layers:
            if name not in known:
                raise UserError(f"no layer {name!r} in {type(network).__name__}{suggest(name, filter(None, known))}")
        self._layers = tuple(layers) or tuple(name for name, _ in network.named_children())[:-1]

    @property
    def layers(self) -> tuple[str, ...]:
        return self._layers

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.network(x)
        return logits

    @property
    def output(self) -> nn.Module:
        return list(self.network.children())[-1]

    def features(self, x: Tensor, layer: str = "") -> Tensor:
        return self.both(x, layer)[0]

    def both(self, x: Tensor, layer: str = "") -> tuple[Tensor, Tensor]:
        self._check(layer)
        if not self.layers:
            raise UserError(f"{type(self.network).__name__} has no layer to read features from")
        kept: list[Tensor] = []
        handle = self.network.get_submodule(layer or self.layers[-1]).register_forward_hook(
            lambda module, inputs, output: kept.append(output)
        )
        try:
            logits: Tensor = self.network(x)
        finally:
            handle.remove()
        return kept[0], logits

    def after(self, h: Tensor, layer: str = "") -> Tensor:
        raise UserError(f"{type(self.network).__name__} cannot be split at a layer; use a built-in model with this method")


@dataclass(frozen=True)
class Network:
    """A loaded file of this folder: a Config and one Model, or a function `make` that returns any nn.Module."""

    name: str
    config: type  # frozen dataclass of its settings
    make: Callable[[Any, tuple[int, ...], int], nn.Module] = field(metadata={"subclass_of": Model})  # (cfg, shape, outputs)


def load(name: str) -> Network:
    """The network of this name; a dotted name is a user's module."""
    return registry.load("models", name, Network)


def maker(name: str, settings: dict[str, Any], shape: tuple[int, ...], outputs: int) -> Callable[[], nn.Module]:
    """A function that builds fresh copies of a network for inputs of this shape; settings are checked here, not in the call."""
    network = load(name)
    cfg: Any = config.build(network.config, settings, "model.")

    def make() -> nn.Module:
        module = network.make(cfg, shape, outputs)
        return guard_convolutions(share_statistics(module if isinstance(module, Model) else Adapter(module)))

    _try_on(make(), name, shape)
    return make


def _try_on(network: nn.Module, name: str, shape: tuple[int, ...]) -> None:
    """Run the network on zeros; raises, before any work starts, if it does not fit the inputs."""
    network.eval()
    try:
        with torch.no_grad():
            network(torch.zeros(2, *shape))
    except (RuntimeError, ValueError) as error:
        if isinstance(error, UserError) or failures.is_allocation(error):
            raise
        raise UserError(f"model {name!r} does not fit inputs of shape {shape}: {error}") from None


def need_images(shape: tuple[int, ...], name: str, smallest: int = 1) -> tuple[int, int, int]:
    if len(shape) != 3 or min(shape[1:]) < smallest:
        raise UserError(f"model {name!r} needs images of at least {smallest}x{smallest} pixels, got inputs of shape {shape}")
    return shape[0], shape[1], shape[2]
