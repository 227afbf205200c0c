"""bFFHQ: age and gender from file names, the training part by folder."""

import pytest

from tests.support.media import picture
from tests.support.real_sets import rows
from unskew.core.errors import UserError
from unskew.data import load


def test_ages_and_genders(real_set):
    source, home = real_set("bffhq")
    data = load(source)
    assert data.classes == ("young", "old")
    assert data.bias_values == (("woman", "man"),)
    train = data.rows("train")
    assert int((data.bias[train, 0] != data.y[train]).sum()) == 1
    assert [rows(data, s) for s in ("train", "val", "test")] == [13, 4, 4]
    assert data.y[data.rows("test")].tolist() == [0, 1, 0, 1]
    assert data.bias[data.rows("test"), 0].tolist() == [0, 0, 1, 1]
    with pytest.raises(UserError, match=r"lacks 2pct/align/, 2pct/conflict/"):
        load(f"{source},part=2pct")
    picture(home / "valid" / "00009_3_1.png")
    with pytest.raises(UserError, match=r"00009_3_1.png: the name must end in age and gender"):
        load(source)
