"""Attackers as one batched model, and which settings they refuse."""

import pytest
import torch

from unskew.core.errors import UserError
from unskew.stats.attackers import Attack, Attackers


def test_batched_attacker_is_a_plain_network():
    attack = Attack(hidden=7, layers=2)
    net = Attackers(4, 3, attack, [torch.Generator().manual_seed(k) for k in range(2)])
    x = torch.randn(2, 10, 4)
    got = net(x, training=True)
    for r in range(2):
        h = torch.nn.functional.batch_norm(x[r], None, None, training=True)
        for k in range(3):
            h = h @ net.weights[k][r].T + net.biases[k][r].T
            if k < 2:
                h = torch.nn.functional.leaky_relu(torch.nn.functional.batch_norm(h, None, None, training=True), 0.01)
        torch.testing.assert_close(got[r], h, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rounds": 0}, "at least 1"),
        ({"protocol": "folded"}, "must be one of paper, code"),
        ({"attacker": "svm"}, "auto, network"),
    ],
)
def test_bad_settings(given, words):
    with pytest.raises(UserError, match=words):
        Attack(**given)
