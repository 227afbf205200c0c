"""Texture ignores place and brightness and tells directions."""

import pytest
import torch

from tests.support.pictures import features, pictures
from unskew.representations.texture import filters

pytestmark = pytest.mark.usefixtures("own_cache")


def test_texture_ignores_place_and_brightness_and_tells_directions():
    bank = filters()
    assert bank.sum((1, 2, 3)).abs().max() < 1e-5
    assert bank.flatten(1).norm(dim=1).tolist() == pytest.approx([1] * 10)
    stripes = ((torch.arange(32)[None] // 2 % 2) * 200).expand(32, -1).to(torch.uint8)
    x = torch.stack([stripes, stripes.roll(4, 1), stripes + 30, stripes.T])[:, None].expand(-1, 3, -1, -1).contiguous()
    f = features(pictures(x), "texture")
    torch.testing.assert_close(f[0], f[1], atol=0.03, rtol=0)
    torch.testing.assert_close(f[0], f[2], atol=1e-3, rtol=0)
    assert (f[0] - f[3]).abs().max() > 0.3


@pytest.mark.parametrize(("side", "by"), [(40, 1), (130, 2)])
def test_products_of_six_answers_give_those_of_all_ten(side, by):
    x = torch.randint(0, 256, (2, 3, side, side), dtype=torch.uint8)
    grey = x.double().mean(1) / 255
    grey = (grey - grey.mean((1, 2), keepdim=True)) / grey.flatten(1).std(1)[:, None, None]
    answer = torch.nn.functional.conv2d(grey[:, None], filters().double())[:, :, ::by, ::by].flatten(2)
    gram = (answer @ answer.mT / answer.shape[2])[:, *torch.triu_indices(10, 10)]
    torch.testing.assert_close(features(pictures(x), "texture").double(), gram.sign() * gram.abs().sqrt(), rtol=1e-2, atol=1e-2)
