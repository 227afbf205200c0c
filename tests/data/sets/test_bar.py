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


def test_versions_with_conflicting_training_rows(real_set):
    source, home = real_set("bar")
    for name, place, number in (("climbing", "align", 5), ("1", "align", 5), ("diving", "conflict", 1), ("racing", "align", 3)):
        for k in range(number):
            picture(home / "train" / "1pct" / place / name / f"{place}{k}.jpg")
    for path in (home / "test").iterdir():
        path.unlink()
    picture(home / "test" / "pole_vaulting" / "0.jpg")
    data = load(f"{source},part=1pct")
    assert data.bias_values == (("usual", "unusual"),)
    train = (data.split != data.splits.index("test")).nonzero().flatten()
    assert data.y[train].bincount(minlength=6).tolist() == [5, 6, 0, 0, 3, 0]
    assert int((data.bias[train, 0] == 1).sum()) == 1
    assert data.y[data.rows("test")].tolist() == [3]
    with pytest.raises(UserError, match=r"part=5pct needs the folder .*5pct"):
        load(f"{source},part=5pct")
    picture(home / "test" / "skiing" / "0.jpg")
    with pytest.raises(UserError, match="the folder must be one of climbing"):
        load(f"{source},part=1pct")
