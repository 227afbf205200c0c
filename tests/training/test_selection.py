"""Selection: the rules' scores by hand, and the labels that they are said to use."""

import pytest
import torch

import unskew as package
from unskew.core.errors import UserError
from unskew.training.selection import score

SMALL = {"train.epochs": 2, "train.batch": 64}


@pytest.mark.parametrize("rule", ["last", "val-accuracy", "val-worst-class", "val-worst-group", "oracle"])
def test_selection_rules_are_recorded_with_the_labels_they_use(rule, tmp_path):
    source = "colored-mnist:base=digits,ratio=0.9" if rule == "oracle" else "toy"
    network = {"model": "linear"} if rule == "oracle" else {}
    run = package.train(source, out=tmp_path / "r", settings=SMALL | {"select.rule": rule}, **network)
    assert run.outcome["selection"]["rule"] == rule
    assert run.outcome["selection"]["labels"] == {"last": [], "oracle": ["y", "bias"], "val-worst-group": ["y", "bias"]}.get(
        rule, ["y"]
    )
    looked = {row["kind"] for row in run.log()} - {"train"}
    assert looked == {"val"}  # the test split is touched by no rule


def test_the_oracle_needs_rows_of_both_kinds(tmp_path):
    with pytest.raises(UserError, match="needs aligned and conflicting rows in val; toy has no conflicting ones"):
        package.train("toy", out=tmp_path / "r", settings=SMALL | {"select.rule": "oracle"})


def test_scores_of_the_rules_by_hand():
    data = package.load("toy")
    index = torch.tensor([0, 1, 2, 3])
    object.__setattr__(data, "y", torch.tensor([0, 0, 0, 1, *[2] * (len(data) - 4)]))
    object.__setattr__(data, "bias", torch.tensor([[0], [0], [1], [1], *[[2]] * (len(data) - 4)]))
    logits = torch.eye(3)[torch.tensor([0, 0, 1, 1])]  # right, right, wrong, right
    assert score("val-accuracy", logits, data, index) == 0.75
    assert score("val-worst-class", logits, data, index) == pytest.approx(2 / 3)
    assert score("val-worst-group", logits, data, index) == 0.0
    # Aligned are equal codes: rows 0, 1 and 3, all right; row 2 is conflicting, and wrong.
    assert score("oracle", logits, data, index) == pytest.approx((1 + 0) / 2)
