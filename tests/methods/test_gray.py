"""gray: colours do not reach the network."""

import torch

from tests.support.methods import images
from unskew.training.make import make_method


def test_gray_sees_no_colour():
    data, rows = images()
    method = make_method("gray", {}, "mlp", {}, data, 0).eval()
    x = data.inputs.x[rows].float() / 255
    turned = x.flip(1)  # red for blue
    torch.testing.assert_close(method.predict(x), method.predict(turned))
    assert not torch.allclose(method.model(x), method.model(turned))
