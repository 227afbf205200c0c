"""Per-sample gradients of a network: of the last layer in closed form, of other layers by torch.func."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from unskew.core.errors import UserError, suggest

EVERY = "all"  # as the name of a layer: all parameters


def row_norm(v: Tensor) -> Tensor:
    """The Euclidean norm of every row, in double precision."""
    length: Tensor = torch.linalg.vector_norm(v.double(), dim=1)
    return length


class Gradients(Protocol):
    """Gradients of a batch of rows, stored as compactly as the layer allows."""

    def norm(self) -> Tensor: ...

    def absolute_sum(self, group: Tensor, size: int) -> Tensor:
        """(size, P) sums of |gradient| by group."""
        ...

    def only(self, chosen: Tensor, group: Tensor | None) -> Tensor:
        """(b, k) these coordinates of every row."""
        ...

    def small(self, k: int) -> bool:
        """Whether a row takes O(k) numbers, so that all rows can be kept."""
        ...


@dataclass(frozen=True, slots=True)
class Outer:
    """Gradient of a linear layer's weights: error (b, C) times input (b, F), never multiplied out."""

    error: Tensor  # softmax - onehot
    h: Tensor

    def norm(self) -> Tensor:
        return row_norm(self.error) * row_norm(self.h)

    def absolute_sum(self, group: Tensor, size: int) -> Tensor:
        e, h = self.error.abs().double(), self.h.abs().double()
        if size == 1:
            return (e.T @ h).reshape(1, -1)
        return torch.stack([(e[group == c].T @ h[group == c]).flatten() for c in range(size)])

    def only(self, chosen: Tensor, group: Tensor | None) -> Tensor:
        width = self.h.shape[1]
        if group is None:
            which = chosen[0]
            return self.error[:, which // width].double() * self.h[:, which % width].double()
        which = chosen[group]
        return self.error.gather(1, which // width).double() * self.h.gather(1, which % width).double()

    def small(self, k: int) -> bool:
        return self.error.shape[1] + self.h.shape[1] <= 4 * k


@dataclass(frozen=True, slots=True)
class Dense:
    """Gradients (b, P) multiplied out: any layer."""

    g: Tensor

    def norm(self) -> Tensor:
        return row_norm(self.g)

    def absolute_sum(self, group: Tensor, size: int) -> Tensor:
        return self.g.new_zeros(size, self.g.shape[1]).index_add_(0, group, self.g.abs()).double()

    def only(self, chosen: Tensor, group: Tensor | None) -> Tensor:
        return (self.g[:, chosen[0]] if group is None else self.g.gather(1, chosen[group])).double()

    def small(self, k: int) -> bool:
        return self.g.shape[1] <= 4 * k


@dataclass(frozen=True, slots=True)
class Layer:
    name: str
    closed: bool  # whether it is the last linear layer, whose output is the logits
    numbers: int  # parameters


def find_layer(model: nn.Module, name: str = "") -> Layer:
    """The layer of this name, the last linear one, or all parameters."""
    modules = {n: m for n, m in model.named_modules() if n and any(True for _ in m.parameters())}
    if name == EVERY and name not in modules:
        return Layer("", False, sum(p.numel() for p in model.parameters()))
    linear = [n for n, m in modules.items() if isinstance(m, nn.Linear)]
    if not name and not linear:
        raise UserError(f"{type(model).__name__} has no linear layer; name the module to take gradients of with layer=NAME")
    if name and name not in modules:
        raise UserError(f"no layer {name!r}{suggest(name, modules)}")
    chosen = name or linear[-1]
    return Layer(chosen, bool(linear) and chosen == linear[-1], sum(p.numel() for p in modules[chosen].parameters()))


def gradients(model: nn.Module, layer: Layer, x: Tensor, y: Tensor, bias: bool = False) -> Gradients:
    """The gradients of each row's cross-entropy with respect to one layer's weights."""
    if layer.closed:
        outer = _outer(model, layer.name, x, y, bias)
        if outer is not None:
            return outer
    return Dense(_dense(model, layer.name, x, y, bias))


def _outer(model: nn.Module, name: str, x: Tensor, y: Tensor, bias: bool) -> Outer | None:
    seen: list[tuple[Tensor, Tensor]] = []
    handle = model.get_submodule(name).register_forward_hook(lambda m, inputs, output: seen.append((inputs[0], output)))
    try:
        with torch.no_grad():
            logits = model(x)
    finally:
        handle.remove()
    if len(seen) != 1 or seen[0][1] is not logits or seen[0][0].ndim != 2:
        return None  # something else turns this layer's output into the logits
    h = seen[0][0]
    error = logits.double().softmax(1)
    # 1 - p of the true class as the sum of the others: exact even if p is nearly 1.
    error.scatter_(1, y[:, None], 0.0)
    error.scatter_(1, y[:, None], -error.sum(1, keepdim=True))
    h = torch.cat([h, h.new_ones(len(h), 1)], 1) if bias else h
    return Outer(error.to(h.dtype), h)


def _dense(model: nn.Module, name: str, x: Tensor, y: Tensor, bias: bool) -> Tensor:
    from torch.func import functional_call, grad, vmap

    chosen = {
        f"{name}.{n}" if name else n: p.detach()
        for n, p in model.get_submodule(name).named_parameters()
        if bias or not name or not n.endswith("bias")
    }
    rest = {n: t.detach() for n, t in [*model.named_parameters(), *model.named_buffers()] if n not in chosen}

    def loss(part: dict[str, Tensor], one: Tensor, label: Tensor) -> Tensor:
        logits = functional_call(model, {**rest, **part}, (one[None],))
        return nn.functional.cross_entropy(logits, label[None])

    by_name = vmap(grad(loss), in_dims=(None, 0, 0), randomness="different")(chosen, x, y)
    whole: Tensor = torch.cat([by_name[n].flatten(1) for n in chosen], 1).detach()
    return whole
