"""The biased network beside the first: trained alone first, and never again."""

import copy

import pytest
import torch

from tests.support.methods import G, batch_of, make, same, sgd_step, toy
from unskew.core.errors import UserError
from unskew.records import Batch


def test_pretraining_moves_g_alone_and_then_never_again():
    data = toy()
    method = make("learned_mixin", {**G, "pretrain": "0.5"})
    method.begin(10, 4)  # half of an epoch of four steps
    assert method.prelude == 2
    before = copy.deepcopy(method)
    for k in range(2):
        index = torch.arange(16) + 16 * k
        assert set(sgd_step(method, Batch(index=index, x=data.inputs.x[index], y=data.y[index]))) == {"g_ce"}
        method.age += 1
    same(method.model, before.model)
    trained = copy.deepcopy(method.g)
    sgd_step(method, batch_of(method))
    same(method.g, trained)
    with pytest.raises(UserError, match="leave none for f"):
        method.begin(2, 4)
    assert not torch.equal(method.head.weight, before.head.weight)
