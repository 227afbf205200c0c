r"""A network that is not trained any more, with its batch normalisation folded into the convolutions before it: less than half of the time.

.. math::
    \gamma\, \frac{(W * x + b) - m}{\sqrt{v + \epsilon}} + \beta = W' * x + b', \qquad
    W' = \frac{\gamma}{\sqrt{v + \epsilon}}\, W, \qquad b' = \frac{\gamma}{\sqrt{v + \epsilon}}\, (b - m) + \beta
"""

import copy
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

N = TypeVar("N", bound=nn.Module)
CLOSE = 1e-3  # of the largest output: how far a folded network's may be off


def folded(network: N, run: Callable[[N], Tensor]) -> N:
    """A copy that gives the same outputs but for rounding; `run` calls a network on an example, from which it is seen what follows what.

    A network that cannot be folded (its normalisation uses the batch, or a convolution's output is needed elsewhere too) is returned
    as it is.
    """
    if any(module.training for module in network.modules()):
        return network
    fast = copy.deepcopy(network)
    with torch.no_grad():
        expected = run(network)
        pairs = _pairs(fast, run)
        names = {id(module): name for name, module in fast.named_modules()}
        for conv, norm in pairs:
            _replace(fast, names[id(conv)], fuse_conv_bn_eval(conv, norm))
            _replace(fast, names[id(norm)], nn.Identity())
        fast = fast.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        off = (run(fast) - expected).abs().max()
    return fast if float(off) <= CLOSE * float(expected.abs().max()) else network


def _pairs(network: N, run: Callable[[N], Tensor]) -> list[tuple[Any, Any]]:
    """Every convolution whose output goes straight into a batch normalisation, with that; each is called once."""
    made: list[tuple[Tensor, nn.Module]] = []  # outputs are kept, so that no two are the same object
    pairs: list[tuple[nn.Module, nn.Module]] = []

    def before(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        pairs.extend((conv, module) for output, conv in made if output is inputs[0])

    handles = []
    for module in network.modules():
        if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d):
            handles.append(module.register_forward_hook(lambda conv, inputs, output: made.append((output, conv))))
        elif isinstance(module, nn.modules.batchnorm._BatchNorm) and module.track_running_stats:
            handles.append(module.register_forward_pre_hook(before))
    run(network)
    for handle in handles:
        handle.remove()
    called = [id(conv) for _, conv in made] + [id(norm) for _, norm in pairs]
    return [(conv, norm) for conv, norm in pairs if called.count(id(conv)) == 1 and called.count(id(norm)) == 1]


def _replace(network: nn.Module, name: str, new: nn.Module) -> None:
    place, _, last = name.rpartition(".")
    setattr(network.get_submodule(place), last, new)
