"""Identity, claim and place: what is ours, what is another's, what is free."""

import pytest

from unskew.core.errors import UserError
from unskew.core.workplace import check_place, claim, difference, digest, identity, with_defaults


def test_an_identity_compares_equal_with_what_is_read_back():
    assert identity(rates=(0.5, float("nan")), names={"b", "a"}) == {"rates": [0.5, None], "names": ["a", "b"]}


def test_a_digest_is_of_the_content_and_of_how_it_is_cut():
    assert digest(b"ab", b"c") == digest("ab", "c")
    assert digest(b"ab", b"c") != digest(b"a", b"bc")
    assert len(digest(b"")) == 64


def test_a_claim_tells_nothing_from_ours_from_another(tmp_path):
    ours = {"config": {"method_name": "erm", "train": {"batch": 32}}, "fingerprint": "a"}
    assert not claim(tmp_path, "run", None, ours)
    assert claim(tmp_path, "run", {**ours, "versions": "whatever else is there"}, ours)
    with pytest.raises(UserError, match=r"holds another run \(config.train.batch is 64 there and 32 here\)"):
        claim(tmp_path, "run", {**ours, "config": {"method_name": "erm", "train": {"batch": 64}}}, ours)
    with pytest.raises(UserError, match="made from another source, or the source has changed"):
        claim(tmp_path, "run", {**ours, "fingerprint": "b"}, ours)


def test_a_name_says_more_than_its_settings():
    there, ours = ({"method": {"q": q}, "method_name": name} for q, name in ((1, "gce"), (2, "lff")))
    assert difference(there, ours, "config") == "config.method_name is gce there and lff here"


def test_a_newer_setting_had_the_effect_of_its_default():
    assert with_defaults({"train": {"batch": 8}}, {"train": {"batch": 1, "clip": 0.0}, "seed": 0}) == {
        "train": {"batch": 8, "clip": 0.0},
        "seed": 0,
    }


def test_a_place_with_something_else_in_it_is_refused(tmp_path):
    check_place(tmp_path / "new", "a run", ("config.json",))
    (tmp_path / "thesis.txt").write_text("x")
    with pytest.raises(UserError, match="exists and is not a run"):
        check_place(tmp_path, "a run", ("config.json",))
    with pytest.raises(UserError, match="is a file and not a run"):
        check_place(tmp_path / "thesis.txt", "a run", ("config.json",))
    (tmp_path / "config.json").write_text("{}")
    check_place(tmp_path, "a run", ("config.json",))
