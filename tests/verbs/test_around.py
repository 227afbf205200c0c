"""What an audit says beside its findings: leaks by the order of files, and where in the picture the class shows."""

import numpy as np
import pytest
import torch
from PIL import Image

import unskew as package
from unskew.verbs.around import apart_of, leaks_of, position_of

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def table(tmp_path):
    """Noise whose lower right corner is bright in one class; files numbered class by class, in one folder."""
    rng = np.random.default_rng(0)
    lines = ["path,label"]
    for k in range(160):
        picture = rng.integers(0, 255, (32, 32, 3), dtype=np.uint8)
        if k >= 80:
            picture[26:, 26:] = 255
        Image.fromarray(picture).save(tmp_path / f"shot_{k:04d}.png")
        lines.append(f"shot_{k:04d}.png,{'ab'[k >= 80]}")
    (tmp_path / "t.csv").write_text("\n".join(lines))
    return tmp_path / "t.csv"


def test_order_is_a_leak_and_the_corner_is_where_the_class_shows(table):
    data = package.load(table)
    index = torch.arange(len(data.y))
    found = leaks_of(data, index, None, 0)
    assert [leak["kind"] for leak in found["findings"]] == ["order"]
    assert found["findings"][0]["auc"] > 0.95
    assert found["findings"][0]["command"] == "data.order=name"
    assert apart_of(data, found) == "data.order=name"
    assert apart_of(data, None) == ""
    assert apart_of(package.load(table, order="name"), found) == ""  # already done
    where = position_of(data, index, 0, 0)
    assert [m["class"] for m in where["maps"]] == ["a", "b"]
    for m in where["maps"]:
        assert m["where"] == "the lower right"
        best = max(range(64), key=lambda t: m["area"][t])
        assert best // 8 >= 6
        assert best % 8 >= 6


def test_rows_without_files_or_pictures_have_neither():
    data = package.load("planted:rows=100,bias=0.5")
    index = torch.arange(len(data.y))
    assert leaks_of(data, index, None, 0) is None
    assert position_of(data, index, 0, 0) is None
