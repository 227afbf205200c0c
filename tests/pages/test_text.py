"""Tables for a terminal: figures in their columns, and a sentence for what was asked beside them."""

import pytest
import torch

from unskew.measure import calibration_by_bias, error_rates
from unskew.pages.text import dependency_table, leakage_line, more_figures, rates_lines
from unskew.records import BiasRates, Dependency, Estimate

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


def test_the_largest_gaps_have_a_line_each():
    """At p all 40 dogs are found, at q 20 of 40; cats are always right. Logits of 4 say 98 %."""
    y = torch.tensor([1] * 40 + [0] * 40 + [1] * 40 + [0] * 40)
    guess = torch.tensor([1] * 40 + [0] * 40 + [1] * 20 + [0] * 20 + [0] * 40)
    bias = torch.tensor([0] * 80 + [1] * 80)
    logits = 4.0 * torch.nn.functional.one_hot(guess, 2)
    names = {"values": ["p", "q"], "name": "site"}
    rates = BiasRates(
        "site", error_rates(logits, y, bias, classes=["cat", "dog"], **names), *calibration_by_bias(logits, y, bias, **names)
    )
    first, found, alarms, sure = rates_lines(rates)
    assert first == "error rates by site, largest gaps between values of at least 30 rows:"
    assert found.startswith("  true-positive rate   50.0 points [")
    assert found.endswith(" for dog: p 100.0 % (n 40), q 50.0 % (n 40)")
    assert alarms.endswith(" for cat: q 50.0 % (n 40), p 0.0 % (n 40)")
    assert sure.endswith("q 23.2 % (n 80), p 1.8 % (n 80)")  # 98.2 % sure of 75 %, and of 100 %
    few = BiasRates(
        "site", error_rates(logits[:9], y[:9], bias[:9], **names), *calibration_by_bias(logits[:9], y[:9], bias[:9], **names)
    )
    assert [line.split("–")[1].strip() for line in rates_lines(few)[1:]] == [
        "fewer than two values have 30 rows to judge it by, in any class",
        "fewer than two values have 30 rows to judge it by, in any class",
        "fewer than two values of site have 30 rows",
    ]
