"""ImageNet-9: its groups, and its other tests."""

import pytest

from tests.support.media import picture
from tests.support.real_sets import rows
from unskew.core.errors import UserError
from unskew.data import load
from unskew.data.sets.imagenet9 import GROUPS


def test_imagenet_groups_and_its_other_tests(real_set, tmp_path_factory):
    source, home = real_set("imagenet9")
    data = load(source)
    assert rows(data, "test") == sum(map(len, GROUPS.values()))
    assert data.classes[0] == "dog"
    assert data.paths[0].split("/")[-2] == "n00000151"
    hard = tmp_path_factory.mktemp("a")
    picture(hard / "n00000030" / "x.jpg")
    bad = tmp_path_factory.mktemp("c")
    picture(bad / "weather" / "fog" / "3" / "n00000281" / "x.JPEG")
    more = load(f"{source},a={hard},c={bad},corruption=fog")
    assert [data.classes[int(more.y[more.rows(s)][0])] for s in ("imagenet_a", "imagenet_c")] == ["frog", "cat"]
    with pytest.raises(UserError, match="no folder snow under"):
        load(f"{source},c={bad},corruption=snow")
    (home / "LOC_synset_mapping.txt").write_text("n01440764 tench\n")
    with pytest.raises(UserError, match="needs 1000 WordNet ids in sorted order, got 1 ids"):
        load(source)


def test_balanced_groups_have_as_many_images_evenly_over_their_classes(real_set):
    source, _ = real_set("imagenet9")
    data = load(f"{source},balance=true,", holdout=0)
    train = data.rows("train")
    assert data.y[train].bincount().tolist() == [9] * 9  # the frogs' three classes have three images each
    dogs = [data.paths[i].split("/")[-2] for i in train[data.y[train] == 0].tolist()]
    assert sorted(map(dogs.count, set(dogs))) == [1, 2, 2, 2, 2]  # nine of five classes
    assert any("training images left out, so that every group has 9" in note for note in data.notes)
    assert rows(data, "test") == sum(map(len, GROUPS.values()))
