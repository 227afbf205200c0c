"""Settings sorted into the parts of a run, and put together again."""

import pytest

from unskew.core.errors import UserError
from unskew.core.settings import Settings


def test_words_are_sorted_into_parts_and_come_back():
    words = {"train.epochs": 3, "data.size": 64, "q": 0.7, "g.model": "mlp", "method.k": 5}
    s = Settings.of(words)
    assert (s["train"], s["data"], s["optim"]) == ({"epochs": 3}, {"size": 64}, {})
    assert s.own == {"q": 0.7, "g.model": "mlp", "k": 5}
    assert Settings.of(s.dotted()) == s


def test_nested_tables_of_a_recipe_are_the_same_as_dotted_words():
    assert Settings.of({"train": {"epochs": 3}, "method": {"q": 1}}) == Settings.of({"train.epochs": 3, "q": 1})
    with pytest.raises(UserError, match=r"is a part, not a setting: write train.NAME=value"):
        Settings.of({"train": 3})


def test_what_others_than_the_training_read_is_not_changed():
    s = Settings.of({"data.size": 64, "data.augment": "flip", "optim.lr": 1, "q": 2})
    assert s.reading().dotted() == {"data.size": 64}
    assert s.only("data").dotted() == {"data.size": 64, "data.augment": "flip"}
    assert s.training().dotted() == {"optim.lr": 1, "q": 2}
    assert s.shared().own == {}


def test_settings_of_what_stands_before_a_method():
    inner, rest = Settings.of({"denoise.factor": 2, "denoise.train.epochs": 1, "train.epochs": 9, "q": 1}).under("denoise")
    assert (inner["train"], inner.own) == ({"epochs": 1}, {"factor": 2})
    assert (rest["train"], rest.own) == ({"epochs": 9}, {"q": 1})
    assert rest.merged({"data.keep": "t.parquet", "train.epochs": 4}).dotted() == {
        "data.keep": "t.parquet",
        "train.epochs": 4,
        "q": 1,
    }
