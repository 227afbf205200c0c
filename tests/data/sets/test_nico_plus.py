"""NICO++: context and category from folders, contexts held out for the test."""

import pytest

from unskew.core.errors import UserError
from unskew.data import load


def test_contexts_and_categories(real_set):
    source, _ = real_set("nico-plus")
    data = load(source)
    assert data.classes == ("cat", "dog", "hot air balloon")
    assert data.bias_values == (("autumn", "grass", "water"),)
    assert len(data) == 36
    unseen = load(f"{source},test=water,categories=cat,dog")
    assert unseen.classes == ("cat", "dog")
    assert set(unseen.bias[unseen.rows("test"), 0].tolist()) == {2}
    assert set(unseen.bias[unseen.rows("train"), 0].tolist()) == {0, 1}
    with pytest.raises(UserError, match="no context 'watr'; did you mean 'water'"):
        load(f"{source},test=watr")
    with pytest.raises(UserError, match="no category 'frog'"):
        load(f"{source},categories=frog")
