"""The page of auto: every candidate with its cost and the reason, what the budget cut, and nothing that a name could smuggle in."""

import dataclasses
import json
import math
import re
from pathlib import Path

import pytest

from unskew.core.files import dumps, plain
from unskew.pages.auto import auto_text, first_of, render_auto
from unskew.records import Auto, Estimate, Finalist, Trained, Tried


def trained(share, score, seconds, known=None):
    return Trained(share=share, score=score, balanced=score + 0.1, known=known, seconds=seconds, training=seconds / 2, steps=10)


def model(name, score, **test):
    estimates = {key: Estimate(value, value - 0.05, value + 0.05, 100) for key, value in test.items()}
    return Finalist(
        name=name, run=Path("out/models") / name, seconds=30.0, rows=300, score=score, balanced=score + 0.1,
        class_balanced=0.95 - score / 10, known=None, test=estimates,
    )  # fmt: skip


RESULT = Auto(
    verdict="pgd is recommended. On 300 rows it is better.", recommended="pgd", run=Path("out/models/pgd"),
    gate={"open": True, "reason": "a simple model lives on the mean colour", "named": ["color:kind=mean"]}, rule="val-pseudo-groups",
    tried=[
        Tried(name="erm", settings={}, fate="dropped", reason="30.0 % at a quarter", rungs=[trained(0.25, 0.3, 61.0, 0.28)]),
        Tried(
            name="pgd", settings={"augment": "none"}, fate="winner", reason="the best of the last rung",
            rungs=[trained(0.25, 0.5, 100.0, 0.4), trained(0.5, 0.6, 300.0, 0.45)],
        ),
        Tried(name="jtt", settings={}, fate="refused", reason="the first training makes no errors"),
        Tried(name="repair", settings={"phi": "<script>alert(1)</script>"}, fate="left out", reason="the budget left no time for it"),
    ],
    finalists=[
        model("erm", 0.25, class_balanced=0.7, worst_group=math.nan),
        model("pgd", 0.55, class_balanced=0.8, worst_group=math.nan),
    ],
    gain=(0.21, 0.04), missing_labels="Missing labels cost 2.0 points there.", cut=["not tried for lack of time: repair"],
    budget=1800.0, seconds=700.0, rows={"trained": 900, "choice": 300, "val": 300}, source="photos <b>", seed=3,
    command="unskew auto photos", identity={}, page=Path("out/auto.html"), audit=Path("out/audit/audit.html"),
)  # fmt: skip


def test_the_page_has_every_candidate_its_cost_and_the_reason():
    page = render_auto(RESULT)
    for words in (
        "30.0 %",
        "50.0 %",
        "60.0 %",
        "61 s",
        "7 min",
        "augment=none",
        "the first training makes no errors",
        "Missing labels cost",
    ):
        assert words in page
    for tried in RESULT.tried:
        assert tried.name in page
    assert "The budget cut something" in page
    assert "+21.0 points (standard error 4.0)" in page
    assert "-3.0 points" in page  # 92.5 to 89.5 on rows as they are: what giving the shortcut up costs
    assert "worst known group" in page
    assert 'href="audit/audit.html"' in page
    assert "<script>alert" not in page
    assert "photos <b>" not in page
    assert not re.search(r"https?://(?!www\.w3\.org)", page)


def test_figures_that_no_model_has_are_not_shown():
    page = render_auto(RESULT)
    assert "class balanced" in page
    assert 'worst group<span class="soft">test' not in page


def test_a_closed_gate_says_that_nothing_was_tried():
    closed = dataclasses.replace(
        RESULT, gate={"open": False, "reason": "nothing", "named": []}, tried=[], finalists=RESULT.finalists[:1], gain=None,
        recommended="erm", cut=[], missing_labels="", verdict="Plain training (erm) is recommended: nothing.",
    )  # fmt: skip
    page = render_auto(closed)
    assert "So no remedy was tried" in page
    assert "What was tried" not in page
    assert first_of(closed).tone == "good"
    assert [n.value for n in first_of(closed).numbers] == ["70.0 %", "92.5 %", "12 min"]  # test, validation, time
    assert [(r["rows"], round(r["accuracy"], 3)) for r in first_of(closed).chart.rows] == [("validation", 0.925), ("test", 0.7)]
    assert "nothing was cut" in auto_text(closed)
    assert first_of(dataclasses.replace(RESULT, recommended="erm")).tone == "doubt"


def test_the_record_is_read_back_as_it_was():
    again = Auto.of_json(json.loads(dumps(RESULT.json())), RESULT.page)
    assert plain(again.json()) == plain(RESULT.json())
    assert math.isnan(again.finalists[0].test["worst_group"].value)
    assert again.tried[1].seconds == pytest.approx(400)
    assert render_auto(again) == render_auto(RESULT)
    assert "pgd" in RESULT._repr_html_()
    assert "recommends pgd" in repr(RESULT)


def test_the_text_says_the_same():
    text = auto_text(RESULT)
    lines = {line.split()[0]: line for line in text.splitlines() if line}
    assert lines["erm"].endswith("test: class_balanced 70.0 %")  # of the final models, the last such line
    assert "budget: not tried for lack of time: repair" in text
    assert "12 min of 30 min spent; recommended: out/models/pgd" in text
