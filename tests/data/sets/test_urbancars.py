"""UrbanCars: class and both biases from folder names."""

import pytest

from tests.support.media import picture
from tests.support.real_sets import rows
from unskew.core.errors import UserError
from unskew.data import load


def test_class_and_both_biases(real_set):
    source, home = real_set("urbancars")
    data = load(source)
    assert data.classes == ("urban", "country")
    assert data.bias_names == ("background", "object")
    assert [rows(data, s) for s in ("train", "val", "test")] == [8, 8, 8]
    assert bool((data.bias[:, 1] == data.y).all())  # the object was always the class's own
    assert int((data.bias[:, 0] == data.y).sum()) == 12
    picture(home / "bg-0.5_co_occur_obj-0.5" / "val" / "obj-urban" / "0.jpg")
    with pytest.raises(UserError, match="the folder must be named obj-CLASS"):
        load(source)
