"""Vectors are their own representation, and what can be read from them is what was planted."""

import pytest
import torch

from tests.support.pictures import features, pictures
from unskew.core.errors import UserError
from unskew.data import load
from unskew.features import spec, standard
from unskew.measure import representation_bias

pytestmark = pytest.mark.usefixtures("own_cache")


def test_the_vector_itself_and_nothing_else():
    x = torch.randn(7, 4, generator=torch.Generator().manual_seed(0))
    assert torch.equal(features(pictures(x), "input"), x)
    assert [s.name for s in standard(pictures(x))[0]] == ["input"]
    assert spec("input").content  # a vector may rightly tell its class
    with pytest.raises(UserError, match="are not vectors"):
        features(pictures(torch.zeros(4, 3, 8, 8, dtype=torch.uint8)), "input")


def test_a_planted_bias_is_read_from_it():
    data = load("planted:bias=0.3,rows=4000,seed=2")
    found = representation_bias(features(data, "input"), data.y, permutations=0)
    assert found.low - 1e-3 <= 0.3 <= found.high + 1e-3
