"""texture-shapes and moving-digits: class and bias are what they are said to be, and nothing else tells the class."""

import pytest
import torch

from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.data import load
from unskew.data.sets import moving_digits, texture_shapes


@pytest.mark.parametrize("name", ["texture-shapes:size=24", "moving-digits:base=digits,size=24"])
def test_training_is_biased_and_the_test_part_is_not_and_stays_the_same(name):
    made = load(f"{name},rows=2000,ratio=0.9,seed=1")
    train, test = made.rows("train"), made.rows("test")
    kinds = len(made.classes)
    share = (made.y == made.bias[:, 0]).double()
    assert abs(share[train].mean() - 0.9) < 4 * (0.09 / 1600) ** 0.5
    assert abs(share[test].mean() - 1 / kinds) < 4 * (0.25 / 200) ** 0.5
    other = load(f"{name},rows=2000,ratio=0.2,seed=1")
    assert torch.equal(other.inputs.rows(test)[0], made.inputs.rows(test)[0])
    assert torch.equal(other.bias[test], made.bias[test])
    with pytest.raises(UserError, match=r"ratio=1.5: the share of aligned rows must lie in \[0, 1\]"):
        load(f"{name},ratio=1.5")


def test_every_order_visits_every_place_once_and_pairs_are_reversals():
    for name, order in moving_digits.ORDERS.items():
        assert sorted(order) == list(range(8))
        if not name.endswith("-back"):
            assert moving_digits.ORDERS[f"{name}-back"] == order[::-1]
    # No order is another one begun elsewhere, or two classes would be one.
    turned = {name: {tuple((p + k) % 8 for p in order) for k in range(8)} for name, order in moving_digits.ORDERS.items()}
    assert len(set().union(*turned.values())) == 8 * len(turned)


def test_frames_without_their_order_tell_nothing_and_reversal_is_reversal():
    digit, colour = torch.randint(0, 256, (1, 28, 28), generator=stream(0, "d")).to(torch.uint8), torch.tensor([2])
    clips = {
        name: moving_digits.draw(digit, digit[:, :0], colour, torch.tensor([k]), 32, 0.0, stream(0, "same"))[0].float()
        for k, name in enumerate(moving_digits.ORDERS)
    }
    for name, clip in clips.items():
        torch.testing.assert_close(clip.mean(0), clips["step"].mean(0))
        frames = {tuple(f.flatten().tolist()) for f in clip}
        assert frames == {tuple(f.flatten().tolist()) for f in clips["step"]}
        assert len(frames) == 8
        if name.endswith("-back"):
            assert torch.equal(clip.flip(0), clips[name.removesuffix("-back")])


def test_test_clips_show_digits_of_the_test_part():
    made = load("moving-digits:base=digits,rows=300,size=28,noise_std=0,distractors=0")
    x = made.inputs.rows(torch.arange(300))[0]
    assert x.shape == (300, 8, 3, 28, 28)
    # Colour by value: yellow has no blue to speak of, blue little red.
    strong = x.float().flatten(3).amax(3).amax(1)
    yellow, blue = made.bias[:, 0] == 3, made.bias[:, 0] == 2
    assert (strong[yellow, 2] < 0.4 * strong[yellow, 0]).all()
    assert (strong[blue, 0] < 0.5 * strong[blue, 2]).all()


def test_a_distractor_is_grey_and_moves_by_itself():
    """Where the digit and a wandering one do not meet, their frames add up; the wandering one's order is not the class's."""
    black = torch.zeros(200, 28, 28, dtype=torch.uint8)
    other = torch.full((200, 1, 28, 28), 255, dtype=torch.uint8)
    colour, order = torch.zeros(200, dtype=torch.long), torch.zeros(200, dtype=torch.long)
    clips = moving_digits.draw(black, other, colour, order, 32, 0.0, stream(0, "d")).float()
    assert torch.equal(clips[:, :, 0], clips[:, :, 1])  # grey
    assert float(clips.max()) == pytest.approx(255 * moving_digits.GREY, abs=1)
    top = clips[:, :, 0].amax(3).argmax(2)  # first row that is not black
    moves = {tuple((t[1:] - t[:-1]).sign().tolist()) for t in top}
    assert len(moves) > 50  # any order, though all clips are of one class


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
