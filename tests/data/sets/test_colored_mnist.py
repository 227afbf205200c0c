"""Coloured digits: each protocol's colours, counts and test rows."""

import pytest
import torch
from scipy.stats import binomtest

from tests.support.sets import source
from unskew.core.errors import UserError
from unskew.data import load
from unskew.data.colour import LFF, LNL


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


def test_lff_holds_out_rows_at_random():
    whole, held = (
        load("colored-mnist:base=digits,protocol=lff,ratio=0.9"),
        load("colored-mnist:base=digits,protocol=lff,ratio=0.9,val=0.1"),
    )
    assert torch.equal(whole.inputs.x, held.inputs.x)
    assert torch.equal(torch.cat([held.rows("train"), held.rows("val")]).sort().values, whole.rows("train"))
    val = held.rows("val")
    assert len(val) == round(0.1 * len(whole.rows("train")))
    assert float((held.bias[val, 0] == held.y[val]).float().mean()) == pytest.approx(0.9, abs=0.06)  # 144 rows
    with pytest.raises(UserError, match="with protocol=lff"):
        load("colored-mnist:base=digits,val=0.1")


def test_random_colours_are_another_split_and_leave_the_others_as_they_are():
    plain = load("colored-mnist:base=digits")
    more = load("colored-mnist:base=digits,random_test=true")
    for split in ("train", "val", "test"):
        assert torch.equal(plain.inputs.x[plain.rows(split)], more.inputs.x[more.rows(split)])
    rows = more.rows("test_random")
    assert torch.equal(more.y[rows], plain.y[plain.rows("test")])
    colour = more.inputs.x[rows].amax((2, 3)).float() / 255
    assert 0.35 < float(colour.mean()) < 0.65  # U(0, 1), where the digit is nearly white
    assert float(colour.std(0).min()) > 0.2
    with pytest.raises(UserError, match="random_test=true needs protocol=pgd"):
        load("colored-mnist:base=digits,protocol=lnl,random_test=true")
