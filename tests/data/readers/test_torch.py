"""Torch data sets whose rows are pairs, triples or mappings."""

import pytest
import torch

from unskew.data import load


class Rows(torch.utils.data.Dataset):
    def __init__(self, form):
        self.form = form

    def __len__(self):
        return 30

    def __getitem__(self, k):
        x, y, b = torch.full((3, 4, 4), k / 30), k % 3, k % 2
        return {"pair": (x, y), "triple": (x, y, b), "dict": {"x": x, "label": y, "site": b}}[self.form]


@pytest.mark.parametrize(("form", "bias"), [("pair", ()), ("triple", ("bias",)), ("dict", ("site",))])
def test_any_torch_dataset(form, bias):
    data = load(Rows(form), bias=bias)
    assert data.bias_names == bias
    assert data.y.tolist() == [k % 3 for k in range(30)]
    if bias:
        assert data.bias[:, 0].tolist() == [k % 2 for k in range(30)]
    both = load({"train": Rows(form), "test": Rows(form)}, bias=bias)
    assert [len(both.rows(s)) for s in ("train", "val", "test")] == [27, 3, 30]  # val, one of ten of each class, from train
    whole = load({"train": Rows(form), "test": Rows(form)}, bias=bias, holdout=0)
    assert len(whole.rows("train")) == 30
