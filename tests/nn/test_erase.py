"""The erasing layer inside a network: identity before it is fitted, saved with the network, transparent to gradients."""

import pytest
import torch
from torch import nn

from unskew.core.errors import UserError
from unskew.nn.erase import Erase
from unskew.stats.erasure import leace


def test_in_a_network():
    torch.manual_seed(0)
    x, z = torch.randn(60, 2, 3, 3), torch.arange(60) % 2
    x[:, 0] += z[:, None, None]
    layer = Erase(18, removed=1)
    network = nn.Sequential(layer, nn.Flatten(), nn.Linear(18, 4))
    torch.testing.assert_close(layer(x), x, rtol=0, atol=0)
    layer.fit(x, z)
    means = layer(x)[z == 0].mean(0), layer(x)[z == 1].mean(0)
    torch.testing.assert_close(*means, rtol=0, atol=1e-5)
    torch.testing.assert_close(layer(x).flatten(1), leace(x.flatten(1), z)(x.flatten(1)), rtol=0, atol=1e-5)
    other = nn.Sequential(Erase(18, removed=1), nn.Flatten(), nn.Linear(18, 4))
    other.load_state_dict(network.state_dict())
    torch.testing.assert_close(other(x), network(x))
    torch.testing.assert_close(Erase.of(leace(x.flatten(1), z))(x), layer(x))
    x.requires_grad_()
    network(x).sum().backward()
    # The map is linear: its gradient is that of the linear layer, projected.
    direct = network[2].weight.sum(0).detach()
    expected = direct - layer.into @ (layer.out.T @ direct)
    torch.testing.assert_close(x.grad[5].flatten(), expected, rtol=1e-4, atol=1e-6)


def test_another_width_is_refused():
    with pytest.raises(UserError, match="erases from 4 numbers per row, got 3"):
        Erase(4).fit(torch.zeros(5, 3), torch.zeros(5))
