"""ReBias's networks: published counts, and a biased one that sees single pixels."""

import torch

from tests.support.networks import count
from unskew.models._contract import maker


def test_parameter_counts_are_those_published():
    assert count("rebias-conv") == 531_210  # ReBias f
    assert count("rebias-conv", kernel=1) == 12_810  # ReBias g


def test_the_one_by_one_network_sees_single_pixels_only():
    model = maker("rebias-conv", {"kernel": 1}, (3, 28, 28), 10)().eval()
    x = torch.rand(2, 3, 28, 28)
    shuffled = x.flatten(2)[:, :, torch.randperm(784)].view_as(x)
    torch.testing.assert_close(model(x), model(shuffled))
