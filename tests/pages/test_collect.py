"""Names that tell runs apart."""

import unskew as package
from unskew.pages.collect import short_names
from unskew.records import Run


def test_runs_of_the_same_name_can_be_told_apart(tmp_path):
    for name in ("e1", "e2"):
        package.train("toy", out=tmp_path / name / "erm", settings={"train.epochs": 1})
    runs = [Run(tmp_path / name / "erm") for name in ("e1", "e2")]
    assert short_names(runs) == ["e1/erm", "e2/erm"]
    assert short_names(runs[:1]) == ["erm"]
