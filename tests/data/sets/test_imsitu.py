"""imSitu: genders of agents, or what is wrong with its files."""

import pytest

from tests.support.real_sets import rows
from unskew.core.errors import UserError
from unskew.data import load


def test_imsitu_agents(real_set):
    source, home = real_set("imsitu")
    data = load(source)
    assert data.classes == ("cooking", "driving")
    assert [rows(data, s) for s in ("train", "val", "test")] == [4, 4, 4]
    assert data.bias[data.rows("train"), 0].tolist() == [0, 1, 0, 1]
    assert sorted(data.notes) == ["6 images left out: agents of both genders", "6 images left out: agents of no gender"]
    with pytest.raises(UserError, match="no rows left"):
        load(f"{source},least=2")
    (home / "dev.json").write_text('{"a.jpg": {}}')
    with pytest.raises(UserError, match=r"a.jpg has no verb and frames"):
        load(source)
