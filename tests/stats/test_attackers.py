"""Attackers as one batched model, and which settings they refuse."""

import pytest
import torch

from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.stats.attackers import Attack, Attackers, attack_all


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


def test_a_share_of_the_rows_is_what_attackers_are_fitted_on():
    """With a quarter of the rows, the fit is that of an attack on exactly those rows."""
    generator = torch.Generator().manual_seed(1)
    x, a = torch.randn(1, 80, 3, generator=generator), torch.randint(0, 2, (1, 80), generator=generator)
    held = (torch.randn(1, 40, 3, generator=generator), torch.randint(0, 2, (1, 40), generator=generator))
    asked = {"rounds": 1, "hidden": 8, "epochs": 3, "min_steps": 0, "batch": 10, "lr": 0.01}
    part = attack_all({"train": (x, a), "val": held, "test": held}, 2, Attack(share=0.25, **asked), 0)
    some = torch.randperm(80, generator=stream(0, "share", 0))[:20]
    whole = attack_all({"train": (x[:, some], a[:, some]), "val": held, "test": held}, 2, Attack(**asked), 0)
    assert float(part) == float(whole)
    with pytest.raises(UserError, match="share=0 must lie in"):
        Attack(share=0)
