"""defects: exact shares, a defect only darkens its own area, brightness hints at the class, and order=class leaks it."""

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.data import load
from unskew.data.sets import defects

SMALL = "rows=400,test=200,size=48"


def test_share_of_defects_is_exact_in_every_split():
    data = load(f"defects:{SMALL}")
    assert data.bias_names == ()
    assert [len(data.rows(s)) for s in data.splits] == [400, 40, 200]
    assert [int(data.y[data.rows(s)].sum()) for s in data.splits] == [120, 12, 60]


def test_a_defect_darkens_one_area_and_nothing_else():
    n = 60
    clean, broken = (
        defects.draw(torch.full((n,), c), 96, stream(0, "a test of defects")).numpy().astype(int).mean(1) for c in (0, 1)
    )
    assert (broken <= clean).all()
    part = (broken < clean - 5).mean((1, 2))
    # An area of radius 0.06 to 0.18 of the side has 1 to 10 % of the picture; waves and the soft edge change it by less than half.
    assert part.min() > 0.005
    assert part.max() < 0.15
    marked = clean > 60
    loss = np.array([(1 - broken[i] / np.maximum(clean[i], 1))[marked[i]].max() for i in range(n)])
    assert ((loss > 0.1) & (loss < 0.65)).all()


def test_brightness_goes_with_the_class_but_does_not_give_it_away():
    data = load("defects:rows=2000,test=10,size=32")
    train = data.rows("train")
    dark = -data.inputs.x[train].float().mean((1, 2, 3))
    assert 0.52 < roc_auc_score(data.y[train], dark) < 0.75


def test_order_class_is_the_same_rows_with_a_telling_number():
    mixed, sorted_ = load(f"defects:{SMALL}"), load(f"defects:{SMALL},order=class")
    for split in mixed.splits:
        rows = mixed.rows(split)
        assert torch.equal(rows, sorted_.rows(split))
        one, other = (sorted((int(d.y[i]), d.inputs.x[i].numpy().tobytes()) for i in rows) for d in (mixed, sorted_))
        assert one == other
    train = mixed.rows("train")
    assert roc_auc_score(sorted_.y[train], train) > 0.95
    assert abs(roc_auc_score(mixed.y[train], train) - 0.5) < 4 * 0.0315  # the AUC's deviation with 120 and 280 rows
    assert 0 < int(sorted_.y[train[:280]].sum()) < 30  # slight mixing


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ("share=0", "share=0.0: the share of defects must lie between 0 and 1"),
        ("order=name", "order"),
        ("size=8", "size at least 32"),
    ],
)
def test_bad_settings_are_one_line(setting, line):
    with pytest.raises(UserError, match=line) as caught:
        load(f"defects:{setting}")
    assert "\n" not in str(caught.value)
