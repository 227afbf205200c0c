import pytest
import torch

from unskew.stats.neutralise import CLIPS, IMAGES, changes_for, same_energy

X = torch.rand(5, 3, 18, 22, generator=torch.Generator().manual_seed(0))
CLIP = torch.rand(4, 6, 3, 16, 16, generator=torch.Generator().manual_seed(1))


def stream():
    return torch.Generator().manual_seed(7)


@pytest.mark.parametrize("kind", IMAGES)
def test_shape_is_kept_and_something_changes(kind):
    for x in (X, CLIP):
        got = IMAGES[kind](x, stream())
        assert got.shape == x.shape
        assert not torch.equal(got, x)


def test_grey_has_equal_channels_and_remixed_the_same_ones():
    assert torch.equal(IMAGES["grey"](X, stream())[:, 0], IMAGES["grey"](X, stream())[:, 2])
    got = IMAGES["colours"](X, stream())
    assert torch.allclose(got.sort(1).values, X.sort(1).values)
    assert not bool((got == X).flatten(1).all(1).any())  # every row has other colours
    # Another order, the same at every pixel: some shift of the channels gives it.
    for before, after in zip(X, got, strict=True):
        assert any(torch.equal(before.roll(-k, 0), after) for k in (1, 2))


def test_patches_keep_every_pixel_and_stay_whole():
    x = torch.arange(16 * 16.0).reshape(1, 1, 16, 16)
    got = IMAGES["arrangement"](x, stream())
    assert sorted(got.flatten().tolist()) == x.flatten().tolist()
    corners = {float(got[0, 0, 4 * r, 4 * c]) for r in range(4) for c in range(4)}
    assert corners == {float(x[0, 0, 4 * r, 4 * c]) for r in range(4) for c in range(4)}
    assert torch.equal(got[0, 0, :4, :4] - got[0, 0, 0, 0], x[0, 0, :4, :4])
    clip = IMAGES["arrangement"](CLIP, stream())
    still = IMAGES["arrangement"](CLIP[:, :1].expand_as(CLIP), stream())
    assert torch.equal(still[:, 0], still[:, 5])  # the same order in all frames
    assert clip.shape == CLIP.shape


def test_border_and_centre_touch_only_their_part():
    border, centre = (IMAGES[k](X, stream()) for k in ("border", "centre"))
    assert torch.equal(border[..., 2:-2, 2:-2], X[..., 2:-2, 2:-2])
    assert torch.allclose(border[0, 1, 0], X[0, 1].mean().expand(22))
    assert torch.equal(centre[..., :4, :], X[..., :4, :])
    assert torch.allclose(centre[2, 0, 9, 11], X[2, 0].mean())


def test_frames():
    got = CLIPS["order"](CLIP, stream())
    assert torch.allclose(got.sort(1).values, CLIP.sort(1).values)
    assert torch.equal(CLIPS["motion"](CLIP, stream()), CLIP[:, 3:4].expand_as(CLIP))


def test_the_control_has_the_same_energy_and_no_direction():
    altered = IMAGES["grey"](X, stream())
    got = same_energy(X, altered, stream())
    torch.testing.assert_close((got - X).flatten(1).norm(dim=1), (altered - X).flatten(1).norm(dim=1))
    along = ((got - X) * (altered - X)).flatten(1).sum(1) / (altered - X).flatten(1).square().sum(1)
    assert along.abs().max() < 0.2


def test_what_applies():
    assert "grey" not in changes_for((1, 28, 28))
    assert {"order", "motion"} <= set(changes_for((8, 3, 28, 28)))
    assert changes_for((5,)) == {}
