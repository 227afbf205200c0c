"""What one reader tells beyond another: by counts where the answer can be written down."""

import math

import pytest
import torch
import torch.nn.functional as F

from unskew.core.errors import UserError
from unskew.measure.overlap import left_over, overlap


def reader(opinion):
    return 3.0 * F.one_hot(opinion, 2).float()


def draw(seed=0, n=4000):
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 2, (n,), generator=generator)
    first = torch.where(torch.rand(n, generator=generator) < 0.9, y, 1 - y)
    second = torch.where(torch.rand(n, generator=generator) < 0.8, y, 1 - y)
    return y, first, second


def entropy(p):
    return -p * math.log(p) - (1 - p) * math.log(1 - p)


def test_two_independent_readers_add_what_bayes_says():
    # H(Y | first) = H(0.1); H(Y | both) is over the four cells of agreement, weighted by how often each occurs.
    y, first, second = draw(n=20_000)
    both = 0.0
    for right in (0.8, 0.2):
        together = 0.9 * right + 0.1 * (1 - right)
        both += together * entropy(0.9 * right / together)
    expected = (entropy(0.1) - both) / math.log(2)
    assert overlap(reader(second), reader(first), y) == pytest.approx(expected, abs=0.01)


def test_a_copy_adds_nothing_even_if_it_is_noisier():
    y, first, _ = draw()
    blurred = torch.where(torch.arange(len(y)) % 10 == 0, 1 - first, first)
    assert overlap(reader(blurred), reader(first), y) < 0.005
    assert overlap(reader(first), reader(blurred), y) > 0.1


def test_what_is_left_after_balancing():
    y, first, second = draw()
    assert left_over(reader(first), reader(first), y) < 0.01
    # The second is independent of the first given the class, so balancing the first leaves it as it was: 1 - H(0.2) / log 2.
    assert left_over(reader(second), reader(first), y) == pytest.approx(1 - entropy(0.2) / math.log(2), abs=0.04)


def test_wrong_shapes_are_named():
    with pytest.raises(UserError, match="must fit"):
        overlap(torch.zeros(4, 2), torch.zeros(4, 3), torch.zeros(4, dtype=torch.long))
