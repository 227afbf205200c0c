"""Moving digits: class and bias are what they are said to be, and nothing else tells the class."""

import pytest
import torch

from tests.support.sets import biased_in_training_only
from unskew.core.rng import stream
from unskew.data import load
from unskew.data.sets import moving_digits


def test_training_is_biased_and_the_test_part_is_not_and_stays_the_same():
    biased_in_training_only("moving-digits:base=digits,size=24")


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
