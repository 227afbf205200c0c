"""Textured shapes: silhouettes and textures are what they are said to be."""

import pytest
import torch

from tests.support.sets import biased_in_training_only
from unskew.core.rng import stream
from unskew.data.sets import texture_shapes


def test_training_is_biased_and_the_test_part_is_not_and_stays_the_same():
    biased_in_training_only("texture-shapes:size=24")


def test_a_texture_fills_the_silhouette_and_leaves_the_ground():
    n = 8
    shape = torch.arange(n)

    def drawn(texture):
        return texture_shapes.draw(shape, torch.full((n,), texture), 64, 0.0, stream(0, "t")).float()

    one, two = drawn(0), drawn(1)
    changed = (one - two).abs().sum(1) > 0
    area = changed.float().mean((1, 2))
    assert (area > 0.03).all()
    assert (area < 0.6).all()
    for k in range(n):
        ground = one[k][:, ~changed[k]]
        assert ground.std(1).max() < 60  # plain, but for the soft edge and places where both textures agree


def test_silhouettes_have_the_areas_of_their_formulas():
    side = torch.linspace(-1.2, 1.2, 801)
    u, v = side[None, None, :].expand(1, 801, 801), side[None, :, None].expand(1, 801, 801)
    inside = texture_shapes.silhouettes(u, v) > 0
    area = inside.float().mean((1, 2, 3)) * 2.4**2
    pi = torch.pi
    expected = {
        "circle": pi * 0.85**2, "square": 1.5**2, "triangle": 3 * 3**0.5 * 0.55**2,
        "cross": 2 * 0.6 * 1.9 - 0.6**2, "ring": pi * (0.94**2 - 0.5**2), "bar": 0.64 * 2,
    }  # fmt: skip
    for name, value in expected.items():
        assert float(area[texture_shapes.SHAPES.index(name)]) == pytest.approx(value, rel=0.02), name


def test_textures_vary_only_where_they_should():
    made = texture_shapes.textures(50, 48, stream(0, "x"))
    assert made.shape == (8, 50, 48, 48)
    assert made.min() >= 0
    assert made.max() <= 1
    across, down = made[0], made[1]
    assert across.diff(dim=2).abs().max() < 1e-5  # stripes that lie across do not change along a row
    assert down.diff(dim=1).abs().max() < 1e-5
    rising = made[2]
    torch.testing.assert_close(rising[:, 1:, :-1], rising[:, :-1, 1:], atol=1e-4, rtol=0)
    falling = made[3]
    torch.testing.assert_close(falling[:, 1:, 1:], falling[:, :-1, :-1], atol=1e-4, rtol=0)
    assert {0.0, 1.0} == set(made[4].unique().tolist()) == set(made[5].unique().tolist())
