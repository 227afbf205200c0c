"""Something-something: templates are the classes, some or all of them, or what is wrong with its files."""

import json

import pytest

from tests.support.real_sets import rows
from unskew.core.errors import UserError
from unskew.data import load


def test_something_v2_templates(real_set):
    source, home = real_set("something-v2")
    data = load(source, size=24)
    assert data.classes == ("Pushing something", "Pulling something")
    assert rows(data, "train") + rows(data, "val") == 8
    assert data.y[data.rows("test")].tolist() == [0, 0, 1, 1]  # the official validation videos
    labels, path = home / "something-something-v2-labels.json", home / "something-something-v2-train.json"
    labels.write_text(json.dumps({"Lifting something": "2"} | json.loads(labels.read_text())))
    path.write_text(json.dumps([*json.loads(path.read_text()), {"id": "99", "template": "Lifting [something]"}]))
    with pytest.raises(UserError, match=r"99\.webm"):  # a third template, whose video is not there
        load(source)
    two = load(f"{source},classes=Pulling something,Pushing something", size=24)
    assert two.classes == ("Pulling something", "Pushing something")
    assert len(two) == len(data)
    with pytest.raises(UserError, match="no template 'Pulling'"):
        load(f"{source},classes=Pulling")
    path.write_text(json.dumps([{"id": "1", "template": "Eating [something]"}]))
    with pytest.raises(UserError, match="'Eating something'"):
        load(source)
    path.write_text(json.dumps([{"id": "1"}]))
    with pytest.raises(UserError, match="no id or template"):
        load(source)
