"""IMDB faces: ages, genders, and what is left out."""

import pytest
import torch

from unskew.core.errors import UserError
from unskew.data import load


def test_imdb_ages_genders_and_what_is_left_out(real_set):
    source, home = real_set("imdb-faces")
    data = load(source)
    train = data.split != 2
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
