"""stylised: the rows of the second source are added, or it is refused."""

import pytest
import torch

from unskew.core.errors import UserError
from unskew.data import load
from unskew.training.make import training_data


def test_stylised_adds_the_second_source():
    data = load("colored-mnist:base=digits,ratio=0.9")
    joined = training_data("stylised", {"second": "colored-mnist:base=digits,ratio=0.5,seed=3"}, data)
    n = len(data.rows("train"))
    assert len(joined.rows("train")) == 2 * n
    assert torch.equal(joined.rows("test"), data.rows("test"))
    x, fine = joined.inputs.rows(torch.tensor([0, len(data)]))
    second = load("colored-mnist:base=digits,ratio=0.5,seed=3")
    assert bool(fine.all())
    assert torch.equal(x[1], second.inputs.x[second.rows("train")[0]])
    with pytest.raises(UserError, match="needs a second source"):
        training_data("stylised", {}, data)
    with pytest.raises(UserError, match="inputs of shape"):
        training_data("stylised", {"second": "planted:rows=100"}, data)
