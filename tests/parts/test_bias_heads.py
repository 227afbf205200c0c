"""Networks that predict the bias: missing values, the colours of an image, and methods that read those in place of a column."""

import pytest
import torch
import torch.nn.functional as F

from tests.support.methods import images
from unskew.core.errors import UserError
from unskew.parts.bias_heads import bias_loss, colour_levels
from unskew.records import Batch
from unskew.training.make import make_method


def test_missing_bias_values_teach_nothing():
    z = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    b = torch.tensor([0, -1, 2, -1, 1])
    known = b >= 0
    torch.testing.assert_close(bias_loss([z], [b]), F.cross_entropy(z[known], b[known]))
    assert float(bias_loss([z], [torch.full((5,), -1)])) == 0


def test_colour_levels_at_half_size():
    x = torch.zeros(1, 3, 4, 4)
    x[0, 0, 0, 0], x[0, 1, 2, 2], x[0, 2, 0, 2] = 31 / 255, 32 / 255, 1.0
    levels = colour_levels(x)
    assert levels.shape == (1, 3, 2, 2)
    assert levels[0, 0, 0, 0] == 0
    assert levels[0, 1, 1, 1] == 1
    assert levels[0, 2, 0, 1] == 7
    assert int((levels == -1).sum()) == 9  # black is not a colour
    mean, std = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
    normal = (x - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1)
    assert torch.equal(colour_levels(normal, mean, std), levels)


@pytest.mark.parametrize("name", ["lnl", "grl", "blind_eye"])
def test_the_colours_of_the_image_as_target_need_no_bias_column(name):
    data, rows = images()
    blind = data.only_bias([])
    method = make_method(name, {"target": "color", "at": "f"}, "lnl-net", {}, blind, 0)
    assert method.sees == frozenset()
    batch = Batch(index=rows, x=data.inputs.x[rows].float() / 255, y=data.y[rows])
    terms = method.loss(batch)
    assert all(t.isfinite() for t in terms.values())
    assert len(method.h.heads) == 3
    assert method.h(method.model.features(batch.x, "f"))[0].shape == (40, 8, 14, 14)
    with pytest.raises(UserError, match="of the image's size"):
        make_method(name, {"target": "color", "at": "conv1"}, "convnet1", {}, blind, 0)


def test_colours_are_read_from_any_map_whose_size_divides_the_images():
    x = torch.arange(3 * 12 * 12).reshape(1, 3, 12, 12).float() / 432
    codes = colour_levels(x, stride=4)
    assert codes.shape == (1, 3, 3, 3)
    assert int(codes[0, 1, 2, 1]) == round(float(x[0, 1, 8, 4]) * 255) // 32


@pytest.mark.parametrize("name", ["lnl", "grl", "blind_eye"])
def test_hidden_layers_of_a_colour_head_are_refused(name):
    with pytest.raises(UserError, match=f"{name}: hidden is for target=label"):
        make_method(name, {"target": "color", "at": "f", "hidden": "5"}, "lnl-net", {}, images()[0], 0)
