"""IMDB faces: ages, genders, and what is left out."""

import pytest
import torch

from unskew.core.errors import UserError
from unskew.data import load


def test_imdb_ages_genders_and_what_is_left_out(real_set):
    source, home = real_set("imdb-faces")
    data = load(source)
    train = data.split < 2
    woman, young = data.y == 0, data.bias[:, 0] == 0
    assert torch.equal(woman[train], young[train])  # EB1: young women and old men
    assert (woman != young)[data.split == 2].any()
    told = " ".join(data.notes)
    for why in ("score below the limit", "second face", "no gender", "age between the limits"):
        assert f"1 faces left out: {why}" in told
    aged = load(f"{source},target=age,set=EB2")
    assert aged.classes == ("young", "old")
    assert aged.bias_names == ("gender",)
    (home / "imdb_crop" / "imdb.mat").write_bytes(b"cut")
    with pytest.raises(UserError, match="not the table of IMDB-WIKI"):
        load(source)


def test_the_opposite_set_is_a_split_and_ages_can_be_cut_further(real_set):
    source, _ = real_set("imdb-faces")
    data = load(f"{source},target=age")
    opposite, train = data.rows("opposite"), data.rows("train")
    old, man = data.y == 1, data.bias[:, 0] == 1
    assert torch.equal(old[train], man[train])  # EB1: young women and old men
    assert torch.equal(old[opposite], ~man[opposite])  # EB2
    other = load(f"{source},target=age,set=EB2")
    assert {other.paths[i] for i in other.rows("opposite").tolist()} == {
        data.paths[i] for s in ("train", "val") for i in data.rows(s).tolist()
    }
    fine = load(f"{source},bins=25,26,50")
    assert fine.bias_values == (("under 25", "25 to 25", "26 to 49", "50 and over"),)
    assert set(fine.bias[:, 0].tolist()) == {1, 3}  # all are 25 or 50
    with pytest.raises(UserError, match="bins must be ages in rising order"):
        load(f"{source},bins=50,25")
