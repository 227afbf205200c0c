"""Receptive fields: those published, and by the gradient of a place."""

import pytest
import torch
from torch import nn

from unskew.core.errors import UserError
from unskew.models import receptive_field
from unskew.models._contract import maker


def test_receptive_fields():
    def seen(shape=(3, 32, 32), **settings):
        return receptive_field(maker("resnet", settings, shape, 10)())

    assert seen() == (435, 435)
    assert seen(kind="bagnet") == (43, 43)
    assert seen(kind="bagnet-released") == (5, 5)
    assert seen((8, 3, 32, 32), kind="3d", width=4) == (19, 435, 435)
    assert seen((8, 3, 32, 32), kind="2d", width=4) == (1, 435, 435)
    assert seen((8, 3, 32, 32), kind="difference", width=4) == (2, 435, 435)
    assert receptive_field(maker("rebias-conv", {}, (3, 28, 28), 10)()) == (25, 25)  # 1 + 4 (7 - 1)
    with pytest.raises(UserError, match="no convolution"):
        receptive_field(nn.Linear(3, 2))


@pytest.mark.parametrize("kind", ["bagnet", "bagnet-released"])
def test_a_bagnet_sees_no_further_than_computed(kind):
    # The gradient of one place of the last map, with respect to the pixels, is the receptive field by another way.
    torch.manual_seed(0)
    model = maker("resnet", {"kind": kind, "width": 8}, (3, 129, 129), 10)().eval()
    x = torch.rand(1, 3, 129, 129, requires_grad=True)
    out = model.features(x, "layer4")
    out[0, :, out.shape[2] // 2, out.shape[3] // 2].sum().backward()
    rows = x.grad.abs().sum((0, 1, 3)).nonzero().flatten()
    assert rows.max() - rows.min() + 1 <= receptive_field(model)[0]
    assert rows.max() - rows.min() + 1 > receptive_field(model)[0] / 2
