"""What every data set must do, asked of every file in unskew/data/sets: those that are made, and real ones on disk."""

import dataclasses

import pytest
import torch

from tests.support.real_sets import MAKE, rows
from tests.support.sets import source, use_small_sources
from unskew.core import registry
from unskew.core.errors import UserError
from unskew.data import load
from unskew.data.sets import _contract as sets
from unskew.data.write import write

# mnist and fruit are fetched, their builders are tested on the embedded digits; places is made of small stand-ins for what it
# fetches; real sets are read from disk: REAL
NAMES = [n for n in registry.names("data") if n not in ("mnist", "fruit") and not sets.load(n).on_disk]
REAL = [n for n in registry.names("data") if sets.load(n).on_disk]


@pytest.fixture(autouse=True)
def small_sources(monkeypatch):
    use_small_sources(monkeypatch)


@pytest.mark.parametrize("name", NAMES)
def test_same_settings_same_rows_other_seed_other_rows(name):
    one, again = load(source(name)), load(source(name))
    assert one.fingerprint == again.fingerprint
    if "seed" in {f.name for f in dataclasses.fields(sets.load(name).config)}:
        other = load(source(name, "seed=1"))
        assert other.fingerprint != one.fingerprint


@pytest.mark.parametrize("name", NAMES)
def test_splits_cover_all_rows_once_and_hold_every_class(name):
    data = load(source(name))
    rows = torch.cat([data.rows(s) for s in data.splits if data.has(s)])
    assert sorted(rows.tolist()) == list(range(len(data)))
    for split in ("train", "test"):
        y = data.y[data.rows(split)]
        assert bool((y.sum(0) > 0).all()) if data.multi_label else set(y.tolist()) == set(range(len(data.classes)))


@pytest.mark.parametrize("name", NAMES)
def test_written_and_read_back_it_is_the_same(name, tmp_path):
    data = load(source(name))
    write(data, tmp_path / "d", "npz")
    back = load(tmp_path / "d")
    for column in ("y", "split", "bias"):
        torch.testing.assert_close(getattr(back, column), getattr(data, column))
    torch.testing.assert_close(back.inputs.x, data.inputs.x)
    assert (back.classes, back.splits, back.bias_names, back.bias_values) == (
        data.classes, data.splits if len(data.splits) > 3 else back.splits, data.bias_names, data.bias_values,
    )  # fmt: skip
    assert back.mean == pytest.approx(data.mean)
    if data.aligned_by_design:
        torch.testing.assert_close(back.aligned_by_design[0], data.aligned_by_design[0])


@pytest.mark.parametrize("name", NAMES)
def test_card_is_complete_and_a_wrong_setting_is_said(name):
    for part in (".. math::", "Source: ", "Differs: "):
        assert part in registry.card("data", name)
    with pytest.raises(UserError, match="unknown setting"):
        load(source(name, "nosuch=1"))


@pytest.mark.parametrize("name", NAMES)
def test_noise_flips_the_asked_share_and_never_the_test_split(name):
    clean = load(source(name))
    if clean.multi_label:
        with pytest.raises(UserError, match="several labels"):
            load(source(name, "noise=0.2"))
        return
    noisy = load(source(name, "noise=0.2"))
    train = clean.rows("train")
    assert int((clean.y[train] != noisy.y[train]).sum()) == round(0.2 * len(train))
    test = clean.rows("test")
    assert torch.equal(clean.y[test], noisy.y[test])
    assert noisy.columns["clean_label"].to_list() == clean.y.tolist()


def test_every_real_set_has_a_maker_here():
    assert sorted(MAKE) == sorted(REAL)


@pytest.mark.parametrize("name", REAL)
def test_it_is_read_and_checked(name, real_set, unskew):
    source, home = real_set(name)
    data = load(source, size=24)
    assert data.name == name
    assert rows(data, "train")
    assert rows(data, "test")
    x, fine = data.inputs.rows(torch.arange(len(data)))
    assert fine.all()
    assert x.shape[-1] == 24
    clips = len(data.shape) == 4
    assert data.shape == ((8, 3, 24, 24) if clips else (3, 24, 24))
    if name != "kinetics10":  # whose classes are limited by a setting here
        said = unskew("data", name, "--root", home, "--check")
        assert f"{name}: complete" in said.stdout


@pytest.mark.parametrize("name", REAL)
def test_a_missing_part_is_named(name, tmp_path, unskew):
    needs = sets.load(name).needs
    with pytest.raises(UserError, match="is read from disk: name its folder"):
        load(name)
    with pytest.raises(UserError, match=rf"{name}: .* lacks {needs[0].path}"):
        load(f"{name}:root={tmp_path}")
    said = unskew("data", name, "--root", tmp_path, "--check", expect=2)
    assert f"{name} is not complete" in said.stderr
    assert said.stdout.count("MISSING") == len(needs)
