"""The page of an audit: every finding in the table, twelve in the picture, and names that cannot break out."""

import re
from pathlib import Path

import polars as pl

from unskew.pages.audit import MOST_CLASSES, render_audit
from unskew.records import Audit, Table
from unskew.records.audit import Finding, Gallery, LeftOut, Step

EVIL = "<script>document.title='pwned'</script>"


def audit(findings, classes):
    listed = [
        Finding(
            name=f"look{k}", bias=0.9 - 0.05 * k, low=0.01, high=0.95, chance=0.0, chance_high=0.02, verdict="shortcut", content=False,
            sentence=f"sentence {k}", per_class=dict.fromkeys(classes, 0.25), features=3, solved=0.5, risk=0.1, entropy=0.7, n=100,
            note="",
        )
        for k in range(findings)
    ]  # fmt: skip
    about = {"name": EVIL, "classes": classes, "multi_label": False, "source": "s", "fingerprint": "f" * 64, "notes": []}
    return Audit(
        verdict=f"Look at {EVIL} first", rows=100, findings=listed, columns=[], seed=0, command="", data=about, identity={},
        left_out=LeftOut(classes=[], representations={}, unreadable=0), gallery=Gallery(name="look0", reason="none"),
        next=[Step(why="to see", command="unskew repair s")], table=Table(pl.DataFrame({"index": [0]})), page=Path("audit.html"),
    )  # fmt: skip


def test_all_findings_are_listed_and_twelve_are_drawn_by_class():
    page = render_audit(audit(15, ["a", "b"]))
    assert [n for n in range(15) if f"<td>look{n}<span" in page] == list(range(15))
    assert re.findall(r"<tr><th>(look\d+)</th>", page) == [f"look{n}" for n in range(12)]
    assert page.count("25 %") == 12 * 2
    assert "90.0 %" in page
    assert "unskew repair s" in page


def test_names_are_shown_and_not_obeyed():
    page = render_audit(audit(1, [EVIL]))
    assert page.count("<script") == 1  # the page's own
    assert page.count("&lt;script&gt;") == 4  # the title, the name, the verdict and the class


def test_a_set_of_many_classes_has_a_heat_map_of_some():
    page = render_audit(audit(1, [f"class {k}" for k in range(MOST_CLASSES + 9)]))
    assert page.count("<th>class ") == MOST_CLASSES
    assert render_audit(audit(0, ["a"])).count('class="heat"') == 0
