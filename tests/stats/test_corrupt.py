"""Corruptions: each does what it says, stronger is further, the same seed is the same picture."""

import io
import itertools

import numpy as np
import pytest
import torch
from PIL import Image

from unskew.core.errors import UserError
from unskew.stats.corrupt import CORRUPTIONS, corrupt


def picture(n=3, side=64):
    """Smooth shapes with edges and a texture, in [0, 1]."""
    ramp = torch.linspace(0, 1, side)
    x = torch.stack(
        [ramp[None].expand(side, side), ramp[:, None].expand(side, side), 0.5 + 0.3 * (20 * ramp).sin().expand(side, side)]
    )
    x[:, 17:43, 17:43] = torch.tensor([0.9, 0.2, 0.3])[:, None, None]
    return x[None].repeat(n, 1, 1, 1)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_there_are_fifteen():
    assert len(CORRUPTIONS) == 15


@pytest.mark.parametrize("kind", CORRUPTIONS)
@pytest.mark.parametrize("shape", [(3, 64, 64), (1, 28, 28), (3, 40, 56)])
def test_every_kind_keeps_shape_and_range_and_its_seed(kind, shape):
    x = torch.rand(2, *shape, generator=seeded(1))
    for severity in (1, 5):
        out = corrupt(x, kind, severity, seeded())
        assert out.shape == x.shape
        assert out.isfinite().all()
        assert out.min() >= 0
        assert out.max() <= 1
        assert torch.equal(out, corrupt(x, kind, severity, seeded()))
        assert not torch.equal(out, x)


@pytest.mark.parametrize(
    "kind", sorted(set(CORRUPTIONS) - {"elastic_transform", "snow", "glass_blur", "frost", "fog", "pixelate"})
)
def test_stronger_is_further_from_the_picture(kind):
    x = picture(8)
    far = [(corrupt(x, kind, s, seeded()) - x).square().mean() for s in range(1, 6)]
    assert all(a <= b * 1.02 for a, b in itertools.pairwise(far)), far
    assert far[4] > 1.5 * far[0]


def test_noise_has_the_stated_deviation_and_shares():
    grey = torch.full((1, 3, 200, 200), 0.5)
    noise = corrupt(grey, "gaussian_noise", 1, seeded()) - grey
    assert noise.std() == pytest.approx(0.08, rel=0.02)
    shot = corrupt(grey, "shot_noise", 1, seeded())
    assert shot.mean() == pytest.approx(0.5, abs=0.002)
    assert shot.std() == pytest.approx((0.5 / 60) ** 0.5, rel=0.03)  # a Poisson count of mean 30, over 60
    impulse = corrupt(grey, "impulse_noise", 4, seeded())
    assert (impulse == 0).double().mean() == pytest.approx(0.085, abs=0.004)
    assert (impulse == 1).double().mean() == pytest.approx(0.085, abs=0.004)


def test_blurs_keep_what_is_plain_and_spread_a_point():
    plain, point = torch.full((1, 1, 65, 65), 0.4), torch.zeros(1, 1, 65, 65)
    point[0, 0, 32, 32] = 1
    for kind in ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "pixelate"):
        torch.testing.assert_close(corrupt(plain, kind, 3, seeded()), plain, atol=1e-5, rtol=0)
    spread = corrupt(point, "defocus_blur", 5, seeded())
    assert spread.sum() == pytest.approx(1, abs=1e-4)
    radius = 10 * 65 / 224  # pixels of the stated radius, for this side
    seen = (spread[0, 0] > 1e-3).nonzero() - 32
    assert seen.square().sum(1).sqrt().max() == pytest.approx(radius, abs=1.5)


def test_contrast_and_brightness_by_hand():
    x = picture(1)
    mean = x.mean((2, 3), keepdim=True)
    torch.testing.assert_close(corrupt(x, "contrast", 2, seeded()), 0.3 * x + 0.7 * mean)
    red = torch.tensor([0.4, 0.2, 0.1]).view(1, 3, 1, 1).expand(1, 3, 8, 8)
    torch.testing.assert_close(corrupt(red, "brightness", 2, seeded()), red * 1.5)  # value 0.4 becomes 0.6


def test_pixelate_at_half_the_size_is_the_mean_of_every_four():
    x = torch.rand(1, 3, 8, 8, generator=seeded())
    blocks = x.view(1, 3, 4, 2, 4, 2).mean((3, 5))
    torch.testing.assert_close(corrupt(x, "pixelate", 2, seeded()), blocks.repeat_interleave(2, 2).repeat_interleave(2, 3))


def test_jpeg_is_near_what_a_file_of_that_quality_gives():
    x = picture(1, 128)
    pixels = (x[0] * 255).round().byte().permute(1, 2, 0).numpy()
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", quality=25)
    file = torch.from_numpy(np.asarray(Image.open(stream)).copy()).permute(2, 0, 1).float() / 255
    ours = corrupt(x, "jpeg_compression", 1, seeded())[0]
    assert (ours - file).abs().mean() < 0.01
    assert (ours - file).abs().mean() < 0.6 * (x[0] - file).abs().mean()


def test_a_severity_out_of_range_is_refused():
    with pytest.raises(UserError, match="severity 6: must be 1 to 5"):
        corrupt(picture(1), "fog", 6, seeded())
