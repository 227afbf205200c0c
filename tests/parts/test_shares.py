"""Shares before and after weighting, against counts written out by hand."""

import dataclasses

import pytest
import torch

from unskew.core import matrix
from unskew.data.dataset import DataSet, NoInputs
from unskew.parts import shares


def data(y, bias, multi=False):
    classes = ("a", "b", "c") if multi else ("a", "b")
    split = torch.zeros(len(bias), dtype=torch.long)
    return DataSet(
        name="t", inputs=NoInputs("none"), y=y, classes=classes, split=split, bias=bias[:, None], bias_names=("place",),
        bias_values=(("x", "y"),),
    )  # fmt: skip


@pytest.mark.parametrize("chunk", [2, 100])
def test_classes_and_pairs_by_hand(monkeypatch, chunk):
    monkeypatch.setattr(shares, "slices", lambda rows: matrix.slices(rows, chunk))
    found = shares.composition(
        data(torch.tensor([0, 0, 0, 1, 1, 1]), torch.tensor([0, 0, 1, 1, 1, -1])), torch.tensor([0, 1, 2, 3, 5]),
        torch.tensor([1.0, 0, 2, 1, 4]),
    )  # fmt: skip
    assert found.before == pytest.approx([3 / 5, 2 / 5])
    assert found.after == pytest.approx([3 / 8, 5 / 8])
    (table,) = found.by_bias
    assert table.columns == ["x", "y"]
    assert table.before == [pytest.approx([2 / 3, 1 / 3]), pytest.approx([0, 1])]  # the row without a value counts nowhere
    assert table.after == [pytest.approx([1 / 3, 2 / 3]), pytest.approx([0, 1])]


def test_label_sets():
    y = torch.tensor([[1.0, 1, 0], [1, 0, 0], [0, 0, 0]])
    found = shares.composition(data(y, torch.tensor([0, 1, 1]), multi=True), torch.arange(3), torch.tensor([1.0, 3, 0]))
    assert found.before == pytest.approx([2 / 3, 1 / 3, 0])
    assert found.after == pytest.approx([1, 1 / 4, 0])
    assert found.by_bias[0].after[0] == pytest.approx([1 / 4, 3 / 4])
    wide = dataclasses.replace(data(y, torch.tensor([0, 1, 1]), multi=True), bias_values=(tuple(map(str, range(41))),))
    assert shares.composition(wide, torch.arange(3), torch.ones(3)).by_bias == []
