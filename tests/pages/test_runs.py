"""The first screen of a report, from figures written out by hand: what it means, what was gained, what was lost."""

import math

import pytest

from unskew.pages.first import BAD, DOUBT, GOOD, INFO, TONES, spread
from unskew.pages.runs import first_of, gains
from unskew.pages.samples import sample

NAN = math.nan


def run(name, kind, *, seconds=10.0, gallery=None, **figures):
    """A run as collect gives it, with the figures that the first screen uses."""
    known = {
        "aligned": NAN,
        "conflicting": NAN,
        "worst_group": NAN,
        "group_mean": NAN,
        "plain": 0.5,
        "class_balanced": 0.5,
        **figures,
    }
    metrics = {
        **known,
        "intervals": {key: [0.1, 0.9] for key in known},
        "rows": dict.fromkeys(known, 100),
        "verdict": {"kind": kind},
    }
    shown = gallery or {"reason": "inputs are not images", "kind": "all", "wrong": [], "right": [], "aligned": []}
    return {
        "name": name, "verdict": f"Said of {name}. And more.", "metrics": metrics, "seconds": seconds, "gallery": shown,
        "data": {"source": "my photos", "multi_label": False},
    }  # fmt: skip


def test_every_verdict_has_a_meaning():
    from unskew.pages import verdict

    words = [line.split()[0] for line in verdict.__doc__.splitlines() if line[:1].isalpha() and "  " in line]
    assert set(TONES) == set(words)
    assert {TONES["takes-shortcut"], TONES["leans"], TONES["no-shortcut"], TONES["multi-label"]} == {BAD, DOUBT, GOOD, INFO}


def test_one_run_is_told_by_its_own_verdict():
    first = first_of([run("erm", "takes-shortcut", aligned=0.99, conflicting=0.44, worst_group=0.1)])
    assert (first.tone, first.sentence, list(first.more)) == (BAD, "Said of erm.", ["And more."])
    assert [n.value for n in first.numbers] == ["44.0 %", "99.0 %", "10.0 %"]
    assert first.numbers[0].note == "95 % interval 10.0 % to 90.0 %, n 100"
    assert first.todo[0].command == "unskew train 'my photos' --method advised --out robust"
    assert not first.gained
    assert first.chart  # no pictures, so bars


def test_of_several_runs_the_gain_stands_beside_the_loss():
    erm = run("erm", "takes-shortcut", aligned=0.99, conflicting=0.44, worst_group=0.10)
    robust = run("robust", "no-shortcut", seconds=25.0, aligned=0.95, conflicting=0.90, worst_group=0.80)
    first = first_of([erm, robust])
    assert first.tone == GOOD
    assert first.sentence == (
        "robust gets 90.0 % of the rows that contradict the shortcut right, erm 44.0 %; where the shortcut holds, it loses 4.0 points."
    )
    assert [n.value for n in first.numbers] == ["+46.0", "-4.0", "+70.0"]
    assert first.gained == [
        "rows that contradict the shortcut: 44.0 % to 90.0 % (+46.0 points)",
        "the worst group: 10.0 % to 80.0 % (+70.0 points)",
    ]
    assert first.lost == [
        "rows where the shortcut holds: 99.0 % to 95.0 % (-4.0 points)",
        "time: training took 2.5 times as long (25 s)",
    ]
    assert gains(erm, erm) == ([], [])
    kept = first_of([robust, erm])
    assert kept.sentence == (
        "None of the others is better than robust, which gets 90.0 % of the rows that contradict the shortcut right."
    )
    assert [n.value for n in kept.numbers] == ["90.0 %", "95.0 %", "80.0 %"]  # its own figures: a gain over itself says nothing


def test_without_a_bias_column_runs_are_compared_by_class():
    erm, other = run("erm", "no-bias-column"), run("other", "no-bias-column", class_balanced=0.75)
    first = first_of([erm, other])
    assert first.sentence == "other gets 75.0 % right (mean over classes), erm 50.0 %."
    assert first.todo[-1].command == "unskew audit 'my photos' --out audit"
    assert first_of([erm, other], audited=True).todo[-1].command == "unskew explore 'my photos' --write"


def test_a_model_that_amplifies_the_bias_is_not_good():
    good = run("r", "no-shortcut", aligned=0.9, conflicting=0.9)
    assert first_of([good]).tone == GOOD
    good["metrics"]["leakage"] = {"amplification": 0.05, "intervals": {"amplification": [0.01, 0.09]}}
    assert first_of([good]).tone == BAD


@pytest.mark.parametrize(
    ("kind", "word"), [("under-trained", "Train longer"), ("memorised", "by heart"), ("no-bias-column", "bias label")]
)
def test_what_to_do_fits_the_verdict(kind, word):
    assert any(word in step.why for step in first_of([run("r", kind)]).todo)


def test_samples_of_both_kinds_stand_side_by_side():
    def some(kind, said, n):
        return [
            sample(k, c, "data:,", path=f"/photos/{c}/{k}.jpg", said=said or c, kind=kind)
            for k in range(n)
            for c in ("cat", "dog")
        ]

    shown = {"reason": "", "kind": "conflicting", "wrong": some("conflicting", "fox", 5), "right": some("conflicting", "", 5)}
    shown["aligned"] = some("aligned", "", 9)
    left, right = first_of([run("r", "takes-shortcut", gallery=shown)]).sides
    assert [s["kind"] for s in left.samples] == ["aligned"] * 6
    assert [s["result"] for s in right.samples] == ["wrong"] * 4 + ["right"] * 2
    assert [s["label"] for s in left.samples[:4]] == ["cat", "dog", "cat", "dog"]
    assert (left.samples[0]["name"], left.samples[0]["alt"]) == ("0.jpg", "cat, predicted cat, aligned, 0.jpg")


def test_a_class_does_not_fill_a_side_alone():
    rows = [sample(k, label, "") for k, label in enumerate("aaaab")]
    assert [s["index"] for s in spread(rows, 3)] == [0, 4, 1]
