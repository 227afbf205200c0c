"""Concept erasure in closed form: the smallest affine change after which no linear reader of the features tells a label."""

from dataclasses import dataclass

import torch
from torch import Tensor

from unskew.core.errors import UserError

TINY = 1e-8  # share of the largest variance below which a direction counts as constant
ALIKE = 1 - 1e-6  # cosine from which a direction of the task is one of the concept and cannot be kept


@dataclass(frozen=True, slots=True)
class Eraser:
    r"""An affine map of features that removes k directions: r(x) = x - out (into^T (x - mean))."""

    mean: Tensor  # (D,)
    into: Tensor  # (D, k)
    out: Tensor  # (D, k)
    kept: int = 0  # directions of the task whose covariance is kept exactly

    @property
    def removed(self) -> int:
        """Number of directions removed."""
        return self.into.shape[1]

    def __call__(self, x: Tensor) -> Tensor:
        """Features (n, D) without the concept."""
        mean, into, out = (t.to(x) for t in (self.mean, self.into, self.out))
        return x - (x - mean) @ into @ out.T


def leace(x: Tensor, concept: Tensor) -> Eraser:
    r"""Least-squares concept erasure: of all affine maps with Cov(r(x), z) = 0, the one that moves x least in every norm.

    .. math::  r(x) = x - W^+ U U^\top W (x - \mu), \qquad W = \Sigma_{xx}^{-1/2}, \quad
               U = \text{orthonormal basis of } W \Sigma_{xz}

    x is (n, D); `concept` (n,) codes or (n, K) columns. The means of x given each code are then equal, so no linear reader beats a
    constant, under any convex loss (Belrose, Schneider-Joseph, Ravfogel, Cotterell, Raff, Biderman, "LEACE: perfect linear
    concept erasure in closed form", NeurIPS 2023, Theorems 3.1 and 4.3).

    >>> x = torch.tensor([[0.0, 0.0], [2.0, 1.0], [0.0, 1.0], [2.0, 0.0]])
    >>> leace(x, torch.tensor([0, 1, 0, 1]))(x).tolist()
    [[1.0, 0.0], [1.0, 1.0], [1.0, 1.0], [1.0, 0.0]]
    """
    mean, white, back, z = _prepared(x, concept)
    u = _basis(white @ z)
    return Eraser(mean, white @ u, back @ u)


def splince(x: Tensor, concept: Tensor, task: Tensor) -> Eraser:
    r"""As `leace`, with the covariance of x and the task's labels kept exactly; of all such maps, the one that moves x least.

    .. math::  r(x) = x - W^+ Z (V^\top Z)^{-1} V^\top W (x - \mu), \qquad
               Z = \text{basis of } W \Sigma_{xz}, \quad V = \text{basis of the part of } [Z, Y] \text{ orthogonal to } Y, \quad
               Y = \text{basis of } W \Sigma_{xy}

    A direction that concept and task share cannot be kept; `kept` counts those that are (Holstege, Ravfogel, Wouters, "Preserving
    task-relevant information under linear concept removal", NeurIPS 2025).
    """
    mean, white, back, z = _prepared(x, concept)
    zs = _basis(white @ z)
    ys = _basis(white @ _covariance(x.double(), _columns(task, len(x), "task")))
    if zs.shape[1] and ys.shape[1]:
        turn, cosine, _ = torch.linalg.svd(ys.T @ zs, full_matrices=True)
        apart = torch.ones(ys.shape[1], dtype=torch.bool)
        apart[: len(cosine)] = cosine < ALIKE
        ys = ys @ turn[:, apart]
    v = _basis(zs - ys @ (ys.T @ zs))
    if v.shape[1] < zs.shape[1]:
        raise UserError(
            f"splince: concept ({zs.shape[1]} directions) and task ({ys.shape[1]}) leave no room in {white.shape[0]} features; use leace"
        )
    return Eraser(mean, white @ v, back @ zs @ torch.linalg.inv(v.T @ zs), kept=ys.shape[1])


def _prepared(x: Tensor, concept: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The mean, the whitening matrix, its pseudo-inverse, and the covariance with the concept."""
    if x.ndim != 2 or len(x) < 2:
        raise UserError(f"erasure needs features (rows, numbers) of at least two rows, got shape {tuple(x.shape)}")
    if not bool(torch.isfinite(x).all()):
        raise UserError("erasure: the features have NaN or infinity")
    x = x.double()
    centred = x - x.mean(0)
    values, vectors = torch.linalg.eigh(centred.T @ centred / len(x))
    wide = values > TINY * values.max().clamp(min=1e-300)
    values, vectors = values[wide], vectors[:, wide]
    white, back = ((vectors * values.pow(power)) @ vectors.T for power in (-0.5, 0.5))
    return x.mean(0), white, back, _covariance(x, _columns(concept, len(x), "concept"))


def _columns(labels: Tensor, rows: int, what: str) -> Tensor:
    """(n, K) numbers: codes become a column for each value."""
    labels = torch.as_tensor(labels)
    if len(labels) != rows:
        raise UserError(f"erasure: {rows} rows of features but {len(labels)} of the {what}")
    if labels.ndim == 1:
        labels = (labels[:, None] == torch.unique(labels)).double()
    return labels.double()


def _covariance(x: Tensor, z: Tensor) -> Tensor:
    """(D, K)."""
    return (x - x.mean(0)).T.matmul(z - z.mean(0)).div(len(x))


def _basis(columns: Tensor) -> Tensor:
    """Orthonormal columns that span the same space as these, which are of order one where they matter."""
    u, size, _ = torch.linalg.svd(columns, full_matrices=False)
    basis: Tensor = u[:, size > 1e-9]
    return basis
