"""Inputs that stay in a file: vectors, read row by row when they are needed."""

from dataclasses import dataclass

import torch
from torch import Tensor

from unskew.core.matrix import Matrix


@dataclass(frozen=True)
class Stored:
    """Vectors in a file of 32-bit numbers. A batch is one gather, so no worker process has to decode ahead."""

    matrix: Matrix
    in_memory: bool = True  # as far as reading them is concerned

    @property
    def shape(self) -> tuple[int, ...]:
        return self.matrix.shape[1:]

    def rows(self, index: Tensor) -> tuple[Tensor, Tensor]:
        return self.matrix[index], torch.ones(len(index), dtype=torch.bool)
