"""Tables for a terminal: figures in their columns, and a sentence for what was asked beside them."""

import pytest

from unskew.pages.text import dependency_table, leakage_line, more_figures
from unskew.records import Dependency, Estimate

FOUND = {
    "source": "s", "phi": "color", "model": "mlp", "method": "erm", "split": "val", "seed": 0, "beta": 0.15, "rates": (0.25, 0.5),
    "random": (0.9, 0.95), "repaired": (0.7, 0.85), "command": "",
}  # fmt: skip


def test_dependency_by_keep_rate():
    lines = dependency_table(Dependency(**FOUND, temporal=None)).splitlines()
    assert [line.split() for line in lines[:3]] == [
        ["kept", "random", "repaired"],
        ["25%", "90.0", "%", "70.0", "%"],
        ["50%", "95.0", "%", "85.0", "%"],
    ]
    assert len({len(line) for line in lines[:3]}) == 1  # columns stand below their names
    assert lines[-1] == "beta for color: 0.150 (accuracy on the kept rows of val)"
    of_clips = {
        kind: {"0.25": Estimate(value, 0, 1, 9), "0.5": Estimate(0.5, 0, 1, 9)}
        for kind, value in (("random", 1.5), ("repaired", 2))
    }
    with_clips = dependency_table(Dependency(**FOUND, temporal=of_clips)).splitlines()
    assert with_clips[1].split()[-2:] == ["1.5", "2"]


def test_leakage_is_said_in_points():
    leak = {
        "model": 0.7, "dataset_at_f1": 0.6, "dataset": 0.65, "f1": 0.5, "chance": 0.5, "amplification": 0.1,
        "intervals": {"amplification": [0.05, 0.15]}, "note": "",
    }  # fmt: skip
    told = leakage_line("site", leak)
    assert told.startswith("leakage of site: 70.0 % from the logits, 60.0 % from labels wrong as often (F1 50.0 %)")
    assert told.endswith("amplification 10.0 points [5.0, 15.0]")
    assert leakage_line("site", {"reason": "site: too rare"}) == "leakage of site: too rare"


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ({}, []),
        (
            {"temporal": {"value": 1.25, "low": 1, "high": 1.5, "n": 9}},
            ["", "temporal structure score: 1.25 [1, 1.5] over 9 clips"],
        ),
        (
            {"cross_dataset": {"by_class": {"a": 1, "b": 0}, "n": 40, "mean": 0.5}},
            ["", "average precision on 2 shared classes, 40 rows: 50.0 %"],
        ),
    ],
)
def test_what_was_asked_beside_the_groups_has_a_line_each(metrics, said):
    assert more_figures(metrics) == said
