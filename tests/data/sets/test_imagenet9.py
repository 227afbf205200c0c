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
