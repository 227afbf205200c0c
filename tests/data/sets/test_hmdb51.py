"""HMDB51: official splits, or what is wrong with them."""

import pytest

from tests.support.real_sets import rows
from unskew.core.errors import UserError
from unskew.data import load


def test_official_splits_of_videos(real_set):
    source, home = real_set("hmdb51")
    data = load(source, size=24)
    assert len(data) == 12  # code 0 is unused
    assert rows(data, "test") == 4
    with pytest.raises(UserError, match="fold=4: must be 1, 2 or 3"):
        load(f"{source},fold=4")
    with pytest.raises(UserError, match=r"no file ACTION_test_split2.txt"):
        load(f"{source},fold=2")
    (home / "testTrainMulti_7030_splits" / "run_test_split1.txt").write_text("run0.avi 5\n")
    with pytest.raises(UserError, match=r"run_test_split1.txt:1: 'run0.avi 5' is not VIDEO.avi and 0, 1 or 2"):
        load(source)
