"""Grad-CAM against the closed form of networks that end in a mean and one linear layer; and on the page."""

import numpy as np
import pytest
import torch

import unskew as package
from unskew.models._contract import maker
from unskew.pages.attention import activation_map, last_with_places, overlay


def test_it_is_the_class_activation_map_where_that_has_a_closed_form():
    # With z = W mean(A) + b the gradient of z_c is W_c / (h w) everywhere, so L is the weighted sum of the maps.
    torch.manual_seed(0)
    model = maker("resnet", {"width": 4}, (3, 64, 64), 5)().eval()
    x, target = torch.rand(3, 3, 64, 64), torch.tensor([0, 3, 4])
    maps = model.features(x, "layer4").detach()
    expected = torch.einsum("nk,nkhw->nhw", model.fc.weight.detach()[target], maps).clamp(min=0)
    expected = expected / expected.amax((1, 2), keepdim=True).clamp(min=1e-12)
    torch.testing.assert_close(activation_map(model, x, "layer4", target), expected, rtol=1e-4, atol=1e-5)
    assert last_with_places(model, x) == "layer4"


def test_it_points_at_what_decides():
    # One bright square in an otherwise dark picture, and a network that adds up brightness.
    model = maker("rebias-conv", {"kernel": 1, "channels": (4, 4)}, (3, 16, 16), 2)().eval()
    for parameter in model.parameters():
        torch.nn.init.constant_(parameter, 0.1)
    torch.nn.init.constant_(model.head.weight, 1.0)
    x = torch.zeros(1, 3, 16, 16)
    x[:, :, 4:8, 9:12] = 1
    seen = activation_map(model, x, "conv2", torch.tensor([1]))[0]
    assert seen[4:8, 9:12].min() > 0.99
    outside = seen.clone()
    outside[4:8, 9:12] = 0
    assert outside.max() < seen[5, 10] - 0.01


def test_the_overlay_is_warm_where_the_map_is_high():
    seen = torch.zeros(4, 4)
    seen[:, 2:] = 1
    out = overlay(torch.full((3, 16, 16), 128, dtype=torch.uint8), seen)
    assert out.shape == (3, 16, 16)
    assert int(out[0, 8, 14]) > int(out[2, 8, 14]) + 60
    assert int(out[0, 8, 1]) == int(out[2, 8, 1])


@pytest.mark.parametrize(("method", "there"), [("erm", True), ("gray", False)])
def test_the_page_shows_aligned_and_conflicting_samples_side_by_side(tmp_path, method, there):
    run = package.train("colored-mnist:base=digits,ratio=0.9", method, out=tmp_path / "run", settings={"train.steps": 3})
    page = package.report([run], tmp_path / "page.html").read_text(encoding="utf-8")
    assert ("Where it looks" in page) is there  # gray changes its input: a map over the coloured picture would mislead


def test_tables_of_numbers_have_no_pictures(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "d.npz", x=rng.random((80, 4)).astype(np.float32), y=rng.integers(0, 2, 80), site=rng.integers(0, 2, 80))
    run = package.train(str(tmp_path / "d.npz"), out=tmp_path / "run", settings={"train.steps": 3, "data.bias": "site"})
    assert "Where it looks" not in package.report([run], tmp_path / "page.html").read_text(encoding="utf-8")
