r"""How much of the input one position of a feature map sees, computed from the network's modules.

.. math::  r_{k+1} = r_k + (d_k (s_k - 1))\, j_k, \qquad j_{k+1} = j_k \cdot \text{stride}_k

r is the receptive field, j the distance between neighbouring positions, s and d kernel size and dilation; where paths meet, the
widest counts.
"""

from typing import Any

from torch import fx, nn

from unskew.core.errors import UserError

DIMENSIONS = {
    1: (nn.Conv1d, nn.MaxPool1d, nn.AvgPool1d),
    2: (nn.Conv2d, nn.MaxPool2d, nn.AvgPool2d),
    3: (nn.Conv3d, nn.MaxPool3d, nn.AvgPool3d),
}
SLIDING = tuple(kind for kinds in DIMENSIONS.values() for kind in kinds)
WHOLE = (nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d, nn.Flatten, nn.Linear)


class _Leaves(fx.Tracer):
    """Does not trace into modules without children: their sizes are what counts."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return not list(m.children())


def receptive_field(network: nn.Module) -> tuple[int, ...]:
    """Receptive field of the last feature map, before global pooling, in each direction (time first, for clips)."""
    modules = dict(network.named_modules())
    seen: dict[fx.Node, tuple[tuple[int, ...], tuple[int, ...]]] = {}
    widest: tuple[int, ...] = ()
    for node in _Leaves().trace(network).nodes:
        before = [seen[n] for n in node.all_input_nodes if n in seen]
        if node.op == "call_module":
            module = modules[str(node.target)]
            if isinstance(module, WHOLE):
                continue  # everything after sees the whole input
            if isinstance(module, SLIDING):
                sizes, strides = _each(module, "kernel_size"), _each(module, "stride")
                dilations = _each(module, "dilation") if hasattr(module, "dilation") else (1,) * len(sizes)
                r, j = before[0] if before else ((1,) * len(sizes), (1,) * len(sizes))
                r = tuple(a + d * (s - 1) * b for a, s, d, b in zip(r, sizes, dilations, j, strict=True))
                seen[node] = (r, tuple(b * s for b, s in zip(j, strides, strict=True)))
                widest = tuple(map(max, widest or r, r))
                continue
        if node.op == "call_method" and node.target == "diff":
            seen[node] = ((2, 1, 1), (1, 1, 1))  # of neighbouring frames, before the first convolution
        elif before:
            seen[node] = (
                tuple(map(max, *(b[0] for b in before))) if len(before) > 1 else before[0][0],
                before[0][1],
            )
    if not widest:
        raise UserError(f"{type(network).__name__} has no convolution, so no receptive field")
    return widest


def _each(module: Any, name: str) -> tuple[int, ...]:
    value = getattr(module, name)
    dims = next(d for d, kinds in DIMENSIONS.items() if isinstance(module, kinds))
    return tuple(value) if isinstance(value, tuple) else (value,) * dims
