"""Dogs and cats: bright and dark by their pixels or by lists."""

import pytest
import torch

from unskew.core.errors import UserError
from unskew.data import load


def test_dogs_and_cats_by_brightness_and_by_lists(real_set):
    source, home = real_set("dogs-cats")
    data = load(f"{source},share=0.25")
    dark, bright = data.bias[:, 0] == 1, data.bias[:, 0] == 0
    dog = data.y == 1
    train = data.split != 2
    assert torch.equal(train, (dog & bright) | (~dog & dark))  # TB1: dark cats and bright dogs
    assert int(bright.sum()) == int(dark.sum()) == 6
    other = load(f"{source},share=0.25,set=TB2")
    assert torch.equal(other.split == 2, train)
    (home / "b.txt").write_text("cat.1.jpg\ndog.1.jpg\ncat.2.jpg\n")
    (home / "d.txt").write_text("cat.3.jpg\ndog.3.jpg\ncat.4.jpg\n")
    listed = load(f"{source},bright={home / 'b.txt'},dark={home / 'd.txt'}", holdout=0.0)
    assert len(listed) == 6
    (home / "d.txt").write_text("cat.1.jpg\n")
    with pytest.raises(UserError, match=r"cat.1.jpg is in both lists"):
        load(f"{source},bright={home / 'b.txt'},dark={home / 'd.txt'}")
