"""Names that tell runs apart, and verdicts that claim no more than the rows can show."""

import unskew as package
from unskew.pages.collect import difference, short_names, verdict
from unskew.records import Estimate, Run


def test_runs_of_the_same_name_can_be_told_apart(tmp_path):
    for name in ("e1", "e2"):
        package.train("toy", out=tmp_path / name / "erm", settings={"train.epochs": 1})
    runs = [Run(tmp_path / name / "erm") for name in ("e1", "e2")]
    assert short_names(runs) == ["e1/erm", "e2/erm"]
    assert short_names(runs[:1]) == ["erm"]


def test_the_verdict_does_not_claim_what_few_rows_cannot_show():
    few = Estimate(1.0, 0.34, 1.0, 2), Estimate(1.0, 0.34, 1.0, 2)
    _, low, high = difference(*few)
    assert low < -0.5
    assert high > 0.5
    import torch

    y = torch.tensor([0, 0, 1, 1])
    found = package.measure.groups(y, y, torch.tensor([0, 1, 1, 0]), aligned=[torch.eye(2).bool()])
    assert verdict(found).startswith("Too few rows to tell")
