"""CelebA: attributes and partition, or what is wrong with its lists."""

import pytest

from tests.support.real_sets import celeba, rows
from unskew.core.errors import UserError
from unskew.data import load


def test_celeba_attributes_and_partition(real_set):
    source, home = real_set("celeba")
    data = load(source)
    assert data.classes == ("not Heavy_Makeup", "Heavy_Makeup")
    assert data.y.tolist() == [k % 2 for k in range(30)]
    assert data.bias[:, 0].tolist() == [int(k % 3 == 0) for k in range(30)]
    assert [rows(data, s) for s in ("train", "val", "test")] == [20, 5, 5]
    with pytest.raises(UserError, match="no attribute 'Smilin'"):
        load(f"{source},target=Smilin")
    path = home / "list_attr_celeba.txt"
    path.write_text(path.read_text().replace("000003.jpg  -1 -1", "000003.jpg  -1 7"))
    with pytest.raises(UserError, match=r"list_attr_celeba.txt:5: .* is not a file name and 3 attributes"):
        load(source)
    celeba(home)
    (home / "list_eval_partition.txt").write_text("000001.jpg 0\n")
    with pytest.raises(UserError, match=r"no split for 000002.jpg and 28 more"):
        load(source)
