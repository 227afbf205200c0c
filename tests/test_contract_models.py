"""What every network must do, asked of every file in unskew/models; and the facts published about some of them."""

import pytest
import torch
from torch import nn

from unskew import registry
from unskew.errors import UserError
from unskew.models._base import Adapter, maker

MODELS = registry.names("models")
SHAPES = {"mlp": (6,), "convnet2": (3, 36, 36)}


def shape_for(name):
    return SHAPES.get(name, (3, 28, 28))


@pytest.mark.parametrize("name", MODELS)
def test_logits_layers_and_entering_in_the_middle(name):
    shape = shape_for(name)
    model = maker(name, {}, shape, 7)().eval()
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
    make = maker(name, {}, shape, 3)
    model, other = make(), make()
    model(torch.randn(8, *shape)).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    other.load_state_dict(model.state_dict())
    x = torch.randn(4, *shape)
    torch.testing.assert_close(model.eval()(x), other.eval()(x))


@pytest.mark.parametrize("name", MODELS)
def test_a_wrong_shape_or_setting_is_said(name):
    with pytest.raises(UserError, match=r"unknown setting 'model\.nosuch'"):
        maker(name, {"nosuch": 1}, shape_for(name), 3)
    if name != "mlp":
        with pytest.raises(UserError, match="takes images"):
            maker(name, {}, (6,), 3)


@pytest.mark.parametrize("name", MODELS)
def test_card_is_complete(name):
    doc = registry.load("models", name).__doc__
    for part in (".. math::", "Source: ", "Differs: "):
        assert part in doc


def count(name, shape=(3, 28, 28), **settings):
    return sum(p.numel() for p in maker(name, settings, shape, 10)().parameters())


def test_parameter_counts_that_are_published_or_counted_by_hand():
    assert count("rebias-conv") == 531_210  # ReBias f
    assert count("rebias-conv", kernel=1) == 12_810  # ReBias g
    # LeNet-5: 3*6*25+6, 6*16*25+16, 256*120+120, 120*84+84, 84*10+10
    assert count("lenet5") == 456 + 2416 + 30_840 + 10_164 + 850
    # LfF's perceptron 2352-100-100-100-10
    assert count("mlp") == 2352 * 100 + 100 + 2 * (100 * 100 + 100) + 1010
    # ConvNet-1: three 4x4 convolutions, three normalisations, 64 -> 10
    assert count("convnet1") == 3 * 8 * 16 + 8 + 16 + 8 * 32 * 16 + 32 + 64 + 32 * 64 * 16 + 64 + 128 + 650


def test_the_one_by_one_network_sees_single_pixels_only():
    model = maker("rebias-conv", {"kernel": 1}, (3, 28, 28), 10)().eval()
    x = torch.rand(2, 3, 28, 28)
    shuffled = x.flatten(2)[:, :, torch.randperm(784)].view_as(x)
    torch.testing.assert_close(model(x), model(shuffled))


def test_lnl_map_is_14_by_14():
    model = maker("lnl-net", {}, (3, 28, 28), 10)()
    assert model.features(torch.rand(2, 3, 28, 28), "f").shape == (2, 32, 14, 14)


def test_any_module_becomes_a_model():
    network = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    model = Adapter(network)
    x = torch.randn(5, 4)
    torch.testing.assert_close(model(x), network(x))
    torch.testing.assert_close(model.features(x, "0"), network[0](x))
    torch.testing.assert_close(model.features(x), network[1](network[0](x)))
    with pytest.raises(UserError, match="no layer 'nosuch'"):
        Adapter(network, ["nosuch"])
