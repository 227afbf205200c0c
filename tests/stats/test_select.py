"""The rows that each strategy keeps, by hand."""

import pytest
import torch

from unskew.core.errors import UserError
from unskew.repairs import select


def test_selection_by_hand():
    w, y = torch.tensor([0.9, 0.5, 0.49, 0.1, 0.8, 0.7]), torch.tensor([0, 0, 0, 1, 1, 1])
    assert select(w, y, "threshold").tolist() == [0, 1, 4, 5]  # 0.5 itself is kept, as in the paper
    assert select(w, y, "rank").tolist() == [0, 4, 5]
    assert select(w, y, "class_rank", keep=0.34).tolist() == [0, 4]
    assert select(w, y, "class_rank", keep=0.1).tolist() == [0, 4]  # a class keeps one row at least
    assert len(select(w, y, "uniform")) == 3
    many = torch.full((20_000,), 0.3)
    share = len(select(many, torch.zeros(20_000), "sample")) / 20_000
    assert abs(share - 0.3) < 4 * (0.21 / 20_000) ** 0.5
    with pytest.raises(UserError, match="must be one of"):
        select(w, y, "best")
