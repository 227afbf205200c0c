"""Rows of features around the mean of their class."""

import torch


def rows(n=600, width=5, classes=3, strength=1.0, seed=0):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, classes, (n,), generator=g)
    return torch.randn(classes, width, generator=g)[y] * strength + torch.randn(n, width, generator=g), y
