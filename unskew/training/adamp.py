r"""AdamP: Adam whose step loses its radial part on weights whose scale does not matter.

.. math::
    p_t = \frac{\hat m_t}{\sqrt{\hat v_t} + \epsilon}, \qquad
    q_t = \begin{cases} p_t - \bar w\, (\bar w \cdot p_t) & \text{if } |\cos(w, g)| < \delta / \sqrt{\dim w} \\
          p_t & \text{else} \end{cases}

w is tested channel by channel, then as a whole tensor; where the radial part is removed, weight decay is scaled by 0.1.

Source: Heo et al., "AdamP: slowing down the slowdown for momentum optimizers on scale-invariant weights", ICLR 2021, Algorithm 2.
Differs: nothing.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, overload

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

DELTA = 0.1  # how near to orthogonal weight and gradient must be
DECAY_RATIO = 0.1  # factor on weight decay where the radial part is removed


class AdamP(Optimizer):
    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(parameters, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], float]) -> float: ...
    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group)
        return loss

    def _update(self, w: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[w]
        if not state:
            state |= {"step": 0, "exp_avg": torch.zeros_like(w), "exp_avg_sq": torch.zeros_like(w)}
        state["step"] += 1
        first, second = group["betas"]
        m, v = state["exp_avg"], state["exp_avg_sq"]
        m.mul_(first).add_(gradient, alpha=1 - first)
        v.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        scale = (v.sqrt() / math.sqrt(1 - second ** state["step"])).add_(group["eps"])
        move, ratio = tangential(w, gradient, m / scale, group["eps"])
        if group["weight_decay"] > 0:
            w.mul_(1 - group["lr"] * group["weight_decay"] * ratio)
        w.add_(move, alpha=-group["lr"] / (1 - first ** state["step"]))


def tangential(w: Tensor, gradient: Tensor, move: Tensor, eps: float) -> tuple[Tensor, float]:
    """The move without its part along w, where w looks scale-invariant, and the factor on weight decay.

    >>> w, g = torch.tensor([[3.0, 4.0]]), torch.tensor([[-4.0, 3.0]])  # orthogonal: the loss does not depend on w's length
    >>> tangential(w, g, torch.tensor([[1.0, 0.0]]), 1e-8)[0]
    tensor([[ 0.6400, -0.4800]])
    """
    if w.ndim < 2:
        return move, 1.0
    for rows in (w.shape[0], 1):  # by channel, then as a whole
        flat, grad = w.reshape(rows, -1), gradient.reshape(rows, -1)
        cosine = torch.nn.functional.cosine_similarity(grad, flat, dim=1, eps=eps).abs()
        if float(cosine.max()) < DELTA / math.sqrt(flat.shape[1]):
            unit = flat / flat.norm(dim=1, keepdim=True).add(eps)
            part = move.reshape(rows, -1)
            return (part - unit * (unit * part).sum(1, keepdim=True)).view_as(move), DECAY_RATIO
    return move, 1.0
