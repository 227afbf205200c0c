"""A layer that erases a concept from the features that pass through it, in closed form."""

import torch
from torch import Tensor, nn

from unskew.core.errors import UserError
from unskew.stats.erasure import Eraser, leace, splince


class Erase(nn.Module):
    r"""Features without a concept: the identity until `fit`, then the map of `leace`, or of `splince` if the task is given.

    .. math::  r(x) = x - \text{out}\,\big(\text{into}^\top (x - \mu)\big)

    Rows of any shape are flattened and put back. Gradients flow through it; its numbers are buffers, so a checkpoint holds them.

    >>> layer = Erase(2, removed=1)
    >>> x = torch.tensor([[0.0, 0.0], [2.0, 1.0], [0.0, 1.0], [2.0, 0.0]])
    >>> layer.fit(x, torch.tensor([0, 1, 0, 1]))(x)[:, 0].tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    mean: Tensor  # (D,)
    into: Tensor  # (D, removed)
    out: Tensor  # (D, removed)

    def __init__(self, width: int, removed: int = 0) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        for name in ("into", "out"):
            self.register_buffer(name, torch.zeros(width, removed))

    @classmethod
    def of(cls, eraser: Eraser) -> "Erase":
        """The layer of a fitted eraser."""
        return cls(len(eraser.mean), eraser.removed)._set(eraser)

    def fit(self, x: Tensor, concept: Tensor, task: Tensor | None = None) -> "Erase":
        """Erase what is linear in x (n, ...) about the concept, (n,) codes or (n, K) columns."""
        flat = x.flatten(1)
        if flat.shape[1] != len(self.mean):
            raise UserError(f"this layer erases from {len(self.mean)} numbers per row, got {flat.shape[1]}")
        return self._set(leace(flat, concept) if task is None else splince(flat, concept, task))

    def _set(self, eraser: Eraser) -> "Erase":
        for name in ("mean", "into", "out"):
            setattr(self, name, getattr(eraser, name).to(self.mean))
        return self

    def forward(self, x: Tensor) -> Tensor:
        flat = x.flatten(1)
        return (flat - (flat - self.mean) @ self.into @ self.out.T).view_as(x)
