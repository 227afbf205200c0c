"""What every built-in data set must do, asked of every file in unskew/data; and each protocol's own rules."""

import dataclasses
import math

import pytest
import torch
from scipy.stats import binomtest

from unskew.core import registry
from unskew.core.errors import UserError
from unskew.data import load
from unskew.data.colour import LFF, LNL, REBIAS
from unskew.data.readers.arrays import write_arrays
from unskew.data.sets import _contract as sets
from unskew.data.sets.planted import copy_chance, information

# mnist and fruit are fetched, their builders are tested on the embedded digits; real sets are read from disk: test_real_sets.py
NAMES = [n for n in registry.names("data") if n not in ("mnist", "fruit") and not sets.load(n).on_disk]
DIGITS = "base=digits"


def source(name, extra=""):
    small = {
        "tiles": "base=digits,rows=400",
        "cartoon": "rows=800,size=16",
        "texture-shapes": "rows=800,size=24",
        "moving-digits": "base=digits,rows=600,size=24",
    }
    settings = ",".join(filter(None, [DIGITS if "mnist" in name else small.get(name, ""), extra]))
    return f"{name}:{settings}" if settings else name


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
    write_arrays(data, tmp_path / "d" / "data.npz")
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


def colour_of(x):
    """Colour of a digit: its pixels divided by the brightest, per channel maximum, as REPAIR reads it."""
    return x.float().flatten(2).amax(2) / 255


def test_pgd_ratio_is_bernoulli_and_one_test_set_serves_all_ratios():
    a, b = load(source("colored-mnist", "ratio=0.9")), load(source("colored-mnist", "ratio=0.5"))
    train = a.rows("train")
    aligned = int((a.bias[train, 0] == a.y[train]).sum())
    assert binomtest(aligned, len(train), 0.9).pvalue > 0.001
    test = a.rows("test")
    assert torch.equal(a.inputs.x[test], b.inputs.x[test])
    # On the test rows colour and class are independent: one in ten agrees.
    assert binomtest(int((a.bias[test, 0] == a.y[test]).sum()), len(test), 0.1).pvalue > 0.001


@pytest.mark.parametrize(("protocol", "palette"), [("pgd", torch.tensor(LNL) / 255), ("lff", torch.tensor(LFF))])
def test_a_digit_is_its_grey_image_times_its_colour(protocol, palette):
    data, grey = load(source("colored-mnist", f"protocol={protocol},std=0")), load("digits")
    rows = data.rows("train")[:50]
    expected = grey.inputs.x[rows].double() / 255 * palette[data.bias[rows, 0]].double()[:, :, None, None]
    assert (data.inputs.x[rows].double() / 255 - expected).abs().max() <= 0.5 / 255 + 1e-6


def test_jitter_has_the_asked_deviation():
    # Teal and maroon are far from the limits on some channels; there clamping does not bite.
    data = load(source("colored-mnist", "protocol=lnl,variance=0.0025"))
    rows = data.rows("train")
    rows = rows[data.y[rows] == 1]
    seen = (colour_of(data.inputs.x[rows]) / (colour_of(load("digits").inputs.x[rows]) + 1e-9))[:, 1]
    assert float(seen.std()) == pytest.approx(0.05, rel=0.25)
    assert float(seen.mean()) == pytest.approx(128 / 255, abs=0.02)


def test_repair_has_grey_test_rows_and_one_palette_for_train_and_biased_test():
    data = load(source("colored-mnist", "protocol=repair,std=0"))
    grey = data.inputs.x[data.rows("test")]
    assert torch.equal(grey[:, 0], grey[:, 1])
    assert torch.equal(grey[:, 0], grey[:, 2])
    assert (data.bias[data.rows("test")] == -1).all()
    for split in ("train", "test_biased"):
        rows = data.rows(split)
        assert torch.equal(data.bias[rows, 0], data.y[rows])


def test_lff_counts_are_exact_and_in_row_order():
    data = load(source("colored-mnist", "protocol=lff,ratio=0.9"))
    train = data.rows("train")
    for c in range(10):
        colours = data.bias[train][data.y[train] == c, 0]
        assert int((colours == c).sum()) == pytest.approx(0.9 * len(colours), abs=1)
        assert torch.equal(colours, colours.sort().values)
    assert float((data.bias[data.rows("test"), 0] == data.y[data.rows("test")]).float().mean()) == pytest.approx(0.1, abs=0.02)


def test_biased_mnist_counts_binary_digits_and_palette():
    data = load(source("biased-mnist", "ratio=0.9"))
    train = data.rows("train")
    for c in range(10):
        colours = data.bias[train][data.y[train] == c, 0]
        assert int((colours == c).sum()) == int(len(colours) * 0.9)
        rest = len(colours) - int(len(colours) * 0.9)
        others = colours[colours != c].bincount(minlength=10)
        assert int(others.max()) == math.ceil(rest / 9)
    x, grey = data.inputs.x[train[:40]], load("digits").inputs.x[:40, 0]
    for k in range(40):
        background = torch.tensor(REBIAS[int(data.bias[train[k], 0])], dtype=torch.uint8)
        assert (x[k][:, grey[k] == 0] == background[:, None]).all()
        assert (x[k][:, grey[k] > 0] == 255).all()
    assert (data.bias[data.rows("test_biased"), 0] == data.y[data.rows("test_biased")]).all()
    assert (data.bias[data.rows("test_rho0"), 0] != data.y[data.rows("test_rho0")]).all()


def test_planted_information_against_a_hand_computed_channel():
    # Two equal classes, z copies y with q = 0.6, else guesses: z = y with 0.8. Capacity of that binary channel: 1 - h(0.2) bits.
    h = -(0.2 * math.log2(0.2) + 0.8 * math.log2(0.8))
    assert information(0.6, torch.tensor([0.5, 0.5], dtype=torch.float64)) == pytest.approx((1 - h) * math.log(2), rel=1e-12)
    assert copy_chance(1 - h, torch.tensor([0.5, 0.5], dtype=torch.float64)) == pytest.approx(0.6, abs=1e-9)


def test_planted_rows_show_the_planted_information():
    data = load("planted:bias=0.3,shares=0.7,0.2,0.1,rows=200000")
    joint = torch.zeros(3, 3, dtype=torch.float64)
    joint.view(-1).index_add_(0, data.y * 3 + data.bias[:, 0], torch.ones(len(data)).double())
    joint /= joint.sum()
    p, z = joint.sum(1, keepdim=True), joint.sum(0, keepdim=True)
    found = float((joint * (joint / (p * z)).log()).sum() / -(p * p.log()).sum())
    assert found == pytest.approx(0.3, abs=0.01)


def test_watermarked_digits_are_whole_where_the_mark_is_not():
    import torch.nn.functional as F

    data, grey = load("watermarked-mnist:base=digits,ratio=0.9,offset=16"), load("digits")
    large = F.interpolate(grey.inputs.x.float(), size=56, mode="bilinear", align_corners=False).round().to(torch.uint8)
    x = data.inputs.x
    assert bool((x >= large).all())
    assert torch.equal(x[:, :, 44:], large[:, :, 44:])  # 16 + 28: the mark never comes so far
    assert torch.equal(x[:, :, :, 44:], large[:, :, :, 44:])
    assert float((x != large).flatten(1).any(1).float().mean()) > 0.99
    train, test = data.rows("train"), data.rows("test")
    agrees = data.y == data.bias[:, 0]
    assert binomtest(int(agrees[train].sum()), len(train), 0.9).pvalue > 1e-3
    assert binomtest(int(agrees[test].sum()), len(test), 0.1).pvalue > 1e-3
    other = load("watermarked-mnist:base=digits,ratio=0.5,offset=16")
    assert torch.equal(other.bias[test], data.bias[test])  # one test set for all ratios
    with pytest.raises(UserError, match=r"must lie in 0\.\.28"):
        load("watermarked-mnist:base=digits,offset=40")
