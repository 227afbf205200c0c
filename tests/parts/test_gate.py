"""The gate: open for a shortcut that a simple model follows, closed for what can only be read."""

from pathlib import Path

import polars as pl
import pytest

from unskew.parts.gate import gate
from unskew.records import Audit, Finding, Gallery, LeftOut, Table


def finding(name, verdict, followed=None, **more):
    return Finding(
        name=name, label=name, bias=0.6, low=0.5, high=0.7, chance=0.0, chance_high=0.01, verdict=verdict, content=False,
        sentence="", per_class={}, features=3, solved=0.5, risk=0.1, entropy=0.7, n=100, note="", followed=followed, **more,
    )  # fmt: skip


def audit(findings, trial):
    return Audit(
        verdict="", rows=100, findings=findings, columns=[], left_out=LeftOut(classes=[], representations={}, unreadable=0),
        gallery=Gallery(name=""), next=[], seed=0, command="", data={"classes": ["a", "b", "c"]}, identity={},
        table=Table(pl.DataFrame({"index": [0]}), {}), page=Path("audit.html"), trial=trial,
    )  # fmt: skip


def tried(supports=False, named=()):
    return {"supports": supports, "named": list(named), "reason": "a reason"}


@pytest.mark.parametrize(
    ("findings", "trial", "is_open", "named"),
    [
        ([finding("color", "shortcut", 0.2)], tried(), True, ("color",)),
        ([finding("color", "shortcut", 0.5)], tried(), False, ()),  # above chance, which is a third
        ([finding("column:name=site", "shortcut")], tried(), False, ()),  # cannot be part of the picture, but who follows it?
        ([finding("color", "shortcut", 0.6)], tried(supports=True, named=["color"]), True, ("color",)),
        ([finding("color", "shortcut", 0.6)], tried(named=["color"]), False, ()),  # it may help, but that is not certain
        ([finding("color", "question", 0.2)], tried(named=["color"]), False, ()),
        ([finding("color", "readable", 0.2)], tried(supports=True, named=["texture"]), True, ("texture",)),
        ([finding("border", "shortcut", 0.1, same_as="color"), finding("color", "shortcut", 0.1)], tried(), True, ("color",)),
        ([finding("color", "shortcut", 0.2)], None, True, ("color",)),
        ([], None, False, ()),
    ],
)
def test_the_gate_is_open_for_what_a_simple_model_follows(findings, trial, is_open, named):
    found = gate(audit(findings, trial))
    assert (found.open, found.named) == (is_open, named)
    assert found.reason
    assert found.json() == {"open": is_open, "reason": found.reason, "named": list(named)}


def test_an_open_question_is_passed_on_to_the_user():
    assert "only you can say" in gate(audit([finding("texture", "question")], tried())).reason
