"""BAR: the class is in the file's name, the folder is the split."""

import pytest

from tests.support.media import picture
from tests.support.real_sets import rows
from unskew.core.errors import UserError
from unskew.data import load


def test_bar_classes_and_splits(real_set):
    source, home = real_set("bar")
    data = load(source)
    assert data.classes == ("climbing", "diving", "fishing", "pole vaulting", "racing", "throwing")
    assert data.bias_names == ()  # the place is not annotated
    test = data.rows("test")
    assert data.y[test].tolist() == [k for k in range(6) for _ in range(2)]
    assert rows(data, "train") + rows(data, "val") == 24
    # Each class was painted in a red of its own.
    x = data.inputs.rows(test)[0].float()
    assert (x[:, 0].mean((1, 2)) - 40 * data.y[test]).abs().max() < 4
    picture(home / "train" / "pole_vaulting_7.jpg")  # both spellings occur
    assert len(load(source)) == 37
    picture(home / "test" / "skiing_1.jpg")
    with pytest.raises(UserError, match=r"skiing_1.jpg: the name must start with one of climbing, diving"):
        load(source)
