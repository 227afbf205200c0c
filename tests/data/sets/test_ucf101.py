"""UCF101: official splits, or what is wrong with them."""

import pytest

from tests.support.real_sets import rows
from unskew.core.errors import UserError
from unskew.data import load


def test_ucf101_folds_and_lists(real_set):
    source, home = real_set("ucf101")
    data = load(source, size=24)
    assert data.classes == ("Archery", "Basketball")
    assert rows(data, "train") + rows(data, "val") == 8
    assert [data.paths[k].rpartition("UCF-101/")[2] for k in data.rows("test").tolist()] == [
        f"{action}/v_{action}_g0{k}_c01.avi" for action in ("Archery", "Basketball") for k in (4, 5)
    ]
    lists = home / "ucfTrainTestlist"
    for kind, other in (("train", "test"), ("test", "train")):  # the second fold: the other way round
        (lists / f"{kind}list02.txt").write_text((lists / f"{other}list01.txt").read_text())
    assert rows(load(f"{source},fold=2", size=24), "test") == 8
    with pytest.raises(UserError, match=r"trainlist03\.txt.*cannot be read"):
        load(f"{source},fold=3")
    (lists / "testlist01.txt").write_text("Archery/v_Archery_g04_c01.avi\nArchery\n")
    with pytest.raises(UserError, match=r"testlist01\.txt:2: 'Archery'"):
        load(source)
