"""The first screen of an audit and of a repair, from content written out by hand."""

import pytest

from unskew.pages.audit import first_of
from unskew.pages.charts import NOTHING
from unskew.pages.repair import first_of as first_of_repair


def audit(verdict="shortcut", followed=None, elsewhere=None, **more):
    top = {
        "followed": followed,
        "elsewhere": elsewhere,
        "name": "color",
        "phrase": "the colour",
        "verdict": verdict,
        "bias": 0.79,
        "low": 0.72,
        "high": 0.85,
        "n": 433,
        "contradicting": 21,
    }
    base = {"verdict": "Colour tells it. 1 more below.", "representations": [top], "columns": [], "leaks": None, "trial": None}
    return {**base, "questions": [], "next": [{"why": "train", "command": "unskew train x"}], "gallery": {}, **more}


LEAK = {"name": "site", "leakage": {"dataset": 0.9, "low": 0.8, "high": 1.0, "chance": 0.5}}
NO_LEAK = {"name": "site", "leakage": {"dataset": 0.52, "low": 0.4, "high": 0.6, "chance": 0.5}}


@pytest.mark.parametrize(
    ("content", "tone"),
    [
        (audit("shortcut"), "bad"),
        (audit("question"), "doubt"),
        (audit("question", followed=0.9, elsewhere=0.95), "info"),  # a simple model hardly goes by it
        (audit("question", followed=0.6, elsewhere=0.95), "doubt"),
        (audit("question", followed=0.9, elsewhere=0.95, columns=[LEAK]), "doubt"),
        (audit("readable"), "good"),
        (audit("clean", columns=[NO_LEAK]), "good"),
        (audit("clean", columns=[LEAK]), "doubt"),
        (audit("clean", leaks={"findings": [{"sentence": "Neighbours are alike."}]}), "doubt"),
        (audit(representations=[], columns=[NO_LEAK]), "info"),
    ],
)
def test_the_tone_of_an_audit(content, tone):
    assert first_of(content, [], NOTHING).tone == tone


def test_numbers_and_steps_of_an_audit():
    trial = {key: {"before": 0.604, "after": 0.662} for key in ("independent", "conflicting")}
    trial |= {"class_balanced": {"before": 0.98, "after": 0.96}, "supports": True}
    first = first_of(audit(trial=trial), [], NOTHING)
    assert first.numbers[2].note == "plain training → balanced against it"
    refused = first_of(audit(trial={**trial, "supports": False}), [], NOTHING)
    assert refused.numbers[2].note == "not advised: 98 → 96 % on the rows as they are"
    leaking = first_of(audit(leaks={"findings": [{"sentence": "The order tells the class."}]}), [], NOTHING)
    assert leaking.more[-1] == "But the order tells the class."
    assert [n.value for n in first.numbers] == ["79.0 %", "21", "60 → 66 %"]
    assert (first.sentence, list(first.more)) == ("Colour tells it.", ["1 more below."])
    assert first.lost == ["the rows as they are, mean over classes: 98.0 % to 96.0 % (-2.0 points)"]
    assert len(first.gained) == 2
    assert [t.why for t in first_of(audit("clean"), [], NOTHING).todo] == ["Nothing has to be repaired.", "Train"]
    assert "But the labels give site away: guessed right in 90.0 %, by chance in 50.0 %." in first_of(
        audit("clean", columns=[LEAK]), [], NOTHING
    ).more  # fmt: skip
    undefined = {
        **trial,
        "independent": {"before": None, "after": float("nan")},
        "class_balanced": {"before": None, "after": 0.5},
    }
    assert [n.value for n in first_of(audit(trial=undefined), [], NOTHING).numbers] == ["79.0 %", "21", "1 of 1"]


def repaired(**more):
    reading = {"name": "color", "before": {"bias": 0.8}, "after": {"bias": -0.02}}
    groups = {"classes": ["a", "b"], "before": [0.5, 0.5], "after": [0.4, 0.6]}
    base = {
        "verdict": "Kept.",
        "change": "removed",
        "harms": [],
        "effective": 80.0,
        "kept": 90,
        "rows": 100,
        "next": "unskew train x",
        "data": {"source": "my photos"},
    }
    return {**base, "representations": [reading], "groups": groups, **more}


def test_a_repair_says_what_it_costs():
    first = first_of_repair(repaired(), [], NOTHING)
    assert first.tone == "good"
    assert [n.value for n in first.numbers] == ["80 → 0 %", "90", "80"]
    assert first.gained == ["readable from color: 80.0 % to 0.0 % (-80.0 points)"]
    assert first.lost == [
        "10 of 100 rows get weight 0",
        "the 90 rows kept weigh as much as 80 equal ones",
        "share of a: 50.0 % to 40.0 % (-10.0 points)",
    ]


@pytest.mark.parametrize(
    ("more", "tone"),
    [
        ({"change": "more"}, "bad"),
        ({"change": "hardly less"}, "doubt"),
        ({"change": ""}, "info"),
        ({"effective": 9.0}, "doubt"),  # under a tenth of the rows
        ({"harms": ["x"]}, "bad"),
    ],
)
def test_the_tone_of_a_repair(more, tone):
    first = first_of_repair(repaired(**more), [], NOTHING)
    assert first.tone == tone
    assert bool(first.todo) is ("harms" not in more)


def test_a_repair_that_changes_nothing_gains_nothing_and_is_not_recommended():
    same = {"name": "color:kind=max", "phrase": "the brightest colour", "before": {"bias": 0.9972}, "after": {"bias": 0.9970}}
    shares = {"classes": ["a"], "before": [1.0], "after": [1.0]}
    first = first_of_repair(
        repaired(change="hardly less", representations=[same], groups=shares, kept=100, effective=100.0), [], NOTHING
    )
    assert (list(first.gained), list(first.lost)) == ([], [])
    assert first.numbers[0].label == "of the label can be read from the brightest colour"
    assert [step.command for step in first.todo] == ["", "unskew audit 'my photos' --out audit"]
