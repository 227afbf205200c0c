"""What every network must do, asked of every file in unskew/models, and how a module of any kind becomes one."""

import pytest
import torch
from torch import nn

from tests.support.methods import toy
from unskew.core import registry
from unskew.core.errors import UserError
from unskew.models._contract import Adapter, maker
from unskew.training.make import make_method

MODELS = [n for n in registry.names("models") if n != "timm"]  # an extra: make test-timm
SHAPES = {"mlp": (6,), "convnet2": (3, 36, 36), "efficientnet-lite0": (3, 32, 32), "vgg16": (3, 32, 32)}
# Weights of the first are fetched (benchmarks/fruit_probe.py); the second is large.
SETTINGS = {"efficientnet-lite0": {"pretrained": False}, "vgg16": {"width": 4}}


def test_nn_module_networks_serve_methods_that_read_features():
    method = make_method("lnl", {}, "tests.support.small_network", {}, toy(), 0).double()
    assert isinstance(method.model.output, nn.Linear)
    f, logits = method.model.eval().both(toy().inputs.x)
    torch.testing.assert_close(method.model.output(f), logits)


def shape_for(name):
    return SHAPES.get(name, (3, 28, 28))


@pytest.mark.parametrize("name", MODELS)
def test_logits_layers_and_entering_in_the_middle(name):
    shape = shape_for(name)
    model = maker(name, SETTINGS.get(name, {}), shape, 7)().eval()
    x = torch.randn(5, *shape)
    logits = model(x)
    assert logits.shape == (5, 7)
    assert model.layers
    for layer in model.layers:
        torch.testing.assert_close(model.after(model.features(x, layer), layer), logits)
    torch.testing.assert_close(model.after(model.features(x)), logits)
    with pytest.raises(UserError, match="no layer 'nosuch'"):
        model.features(x, "nosuch")


@pytest.mark.parametrize("name", MODELS)
def test_every_parameter_gets_a_gradient_and_state_goes_round(name):
    shape = shape_for(name)
    make = maker(name, SETTINGS.get(name, {}), shape, 3)
    model, other = make(), make()
    model(torch.randn(8, *shape)).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters() if p.requires_grad)
    other.load_state_dict(model.state_dict())
    x = torch.randn(4, *shape)
    torch.testing.assert_close(model.eval()(x), other.eval()(x))


@pytest.mark.parametrize("name", MODELS)
def test_a_wrong_shape_or_setting_is_said(name):
    with pytest.raises(UserError, match=r"unknown setting 'model\.nosuch'"):
        maker(name, {"nosuch": 1}, shape_for(name), 3)
    if name not in ("mlp", "linear"):
        with pytest.raises(UserError, match="needs images"):
            maker(name, {}, (6,), 3)


@pytest.mark.parametrize("name", MODELS)
def test_card_is_complete(name):
    doc = registry.card("models", name)
    for part in (".. math::", "Source: ", "Differs: "):
        assert part in doc


def test_any_module_becomes_a_model():
    network = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    model = Adapter(network)
    x = torch.randn(5, 4)
    torch.testing.assert_close(model(x), network(x))
    torch.testing.assert_close(model.features(x, "0"), network[0](x))
    torch.testing.assert_close(model.features(x), network[1](network[0](x)))
    with pytest.raises(UserError, match="no layer 'nosuch'"):
        Adapter(network, ["nosuch"])
