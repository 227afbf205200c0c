"""Folded batch normalisation: the same outputs, fewer layers; networks that cannot be folded stay as they are."""

import pytest
import torch
from torch import nn

from unskew.models._contract import maker
from unskew.nn import BatchNorm2d
from unskew.nn.folding import folded


def settled(network):
    """In evaluation mode, with statistics that are not those of a new layer."""
    torch.manual_seed(0)
    for module in network.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.running_mean.normal_(0, 0.3)
            module.running_var.uniform_(0.5, 2)
            if module.affine:
                nn.init.uniform_(module.weight, 0.5, 1.5)
                nn.init.normal_(module.bias, 0, 0.3)
    return network.eval().requires_grad_(False)


@pytest.mark.parametrize(
    ("name", "settings", "left"),
    [
        ("efficientnet-lite0", {"pretrained": "false"}, 0),
        ("resnet", {"width": "8"}, 0),
        ("small-resnet", {}, 1),  # that of its inputs
    ],
)
def test_the_outputs_are_the_same_but_for_rounding(name, settings, left):
    network = settled(maker(name, settings, (3, 32, 32), 5)()).double()
    x = torch.rand(2, 3, 32, 32, dtype=torch.float64)
    fast = folded(network, lambda one: one.features(x[:1]))
    assert fast is not network
    assert norms(fast) == left < norms(network)
    torch.testing.assert_close(fast.features(x), network.features(x), rtol=1e-9, atol=1e-9)


def norms(network):
    return sum(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in network.modules())


class Twice(nn.Module):
    """A convolution whose output is normalised and used as it is."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), BatchNorm2d(4)

    def forward(self, x):
        h = self.conv(x)
        return h + self.norm(h)


def test_what_cannot_be_folded_stays_as_it_is():
    x = torch.rand(2, 3, 8, 8)
    network = settled(Twice())
    assert folded(network, lambda one: one(x)) is network
    training = nn.Sequential(nn.Conv2d(3, 4, 3), BatchNorm2d(4))
    assert folded(training, lambda one: one(x)) is training
    shared = settled(nn.Sequential(nn.Conv2d(3, 4, 3), one := BatchNorm2d(4), nn.Conv2d(4, 4, 3), one))
    same = folded(shared, lambda one: one(x))
    torch.testing.assert_close(same(x), shared(x))
    assert norms(same) == norms(shared) == 1
