"""Two sources as one: what cannot be joined is named."""

import numpy as np
import pytest
import torch

from tests.support.photographs import noise
from unskew.core.errors import UserError
from unskew.data import load
from unskew.data.union import union


def test_training_rows_are_added():
    one, two = load((noise(30), ["a", "b"] * 15)), load((noise(20, seed=1), ["b", "a"] * 10), holdout=0)
    both = union(one, two)
    assert len(both) == 50
    assert both.duplicate_of is None
    assert torch.equal(both.inputs.rows(torch.arange(30, 50))[0], two.inputs.x)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ((noise(20), np.eye(2, dtype=int)[[0, 1] * 10]), "rows of arrays have several labels"),
        ((noise(20, 16), ["a", "b"] * 10), r"inputs of shape \(3, 16, 16\), not \(3, 32, 32\)"),
        ((noise(20), ["a", "c"] * 10), "class 'c'"),
    ],
)
def test_what_does_not_fit_is_named(other, said):
    with pytest.raises(UserError, match=said):
        union(load((noise(30), ["a", "b"] * 15)), load(other))
