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


def test_both_layouts_of_the_large_kernel_agree(monkeypatch):
    from unskew.models import rebias_conv

    model = maker("rebias-conv", {"kernel": 5, "channels": "4,6"}, (3, 9, 8), 10)().double().train()
    x = torch.rand(12, 3, 9, 8, dtype=torch.float64)
    results = []
    for frequencies in (False, True):
        monkeypatch.setattr(rebias_conv, "pays", lambda x, convs, use=frequencies: use)
        model.zero_grad()
        for norm in (m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)):
            norm.reset_running_stats()
        logits = model(x)
        logits.square().sum().backward()
        gradients = [p.grad.clone() for p in model.parameters()]
        state = {name: value.clone() for name, value in model.state_dict().items()}
        results.append([logits.detach(), model.features(x, "conv1").detach(), model.both(x)[0].detach(), gradients, state])
    torch.testing.assert_close(results[0], results[1])
    torch.testing.assert_close(model.after(model.features(x, "conv1"), "conv1"), model(x))


def test_names_of_the_weights_are_those_of_earlier_versions():
    names = list(maker("rebias-conv", {}, (3, 28, 28), 10)().state_dict())
    assert names[:3] == ["blocks.conv1.0.weight", "blocks.conv1.0.bias", "blocks.conv1.1.weight"]
    assert names[-2:] == ["head.weight", "head.bias"]
    assert len(names) == 4 * 7 + 2


def test_side_reads_every_so_many_pixels():
    settings = {"kernel": 1, "side": 10}
    model = maker("rebias-conv", settings, (3, 30, 24), 10)().eval()
    x = torch.rand(2, 3, 30, 24)
    whole = maker("rebias-conv", {"kernel": 1}, (3, 10, 8), 10)().eval()
    whole.load_state_dict(model.state_dict())
    torch.testing.assert_close(model(x), whole(x[:, :, ::3, ::3]))
