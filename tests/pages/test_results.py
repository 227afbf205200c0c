"""A page of results: written from the file beside it, the same again at any time, and merged run by run."""

import csv

import pytest

import unskew as package
from tests.support.results import line
from unskew.core.errors import UserError
from unskew.pages.results import add, is_results, read_lines, text
from unskew.verbs.bench import again

ROWS = [line("erm", k, v) for k, v in enumerate((0.50, 0.54, 0.58))] + [line("rebias", k, 0.9, seconds="30.0") for k in range(2)]


def test_the_page_has_means_spreads_seeds_and_published_numbers(tmp_path):
    page = tmp_path / "toy.md"
    add(page, ROWS)
    shown = page.read_text()
    assert "| erm | 3 | 54.00 ± 4.00 | 55.00 | 1.00 |" in shown
    assert "| rebias | 2 | 90.00 ± 0.00 | 89.00 | 3.00 |" in shown
    assert "Fewer than 3 seeds so far: rebias (2)." in shown
    assert "    unskew bench rebias-toy --scale paper\n" in shown
    assert shown == text(tmp_path / "toy.csv")
    assert is_results(tmp_path / "toy.csv")


def test_a_run_that_is_there_is_replaced_and_notes_are_copied(tmp_path):
    page = tmp_path / "toy.md"
    add(page, ROWS)
    (tmp_path / "toy.notes.md").write_text("What this means.\n")
    add(page, [line("rebias", 2, 0.6), line("erm", 0, 0.62)])
    found = read_lines(tmp_path / "toy.csv")
    assert len(found) == 6
    assert [r["value"] for r in found if r["method"] == "erm"] == ["0.62", "0.54", "0.58"]
    assert page.read_text().endswith("What this means.\n")
    assert "Fewer than 3 seeds" not in page.read_text()


def test_what_does_not_belong_together_is_refused(tmp_path):
    add(tmp_path / "toy.md", ROWS)
    with pytest.raises(UserError, match=r"holds another scale than the bench \(paper, small\)"):
        add(tmp_path / "toy.md", [line("erm", 0, 0.5, scale="small")])
    with pytest.raises(UserError, match=r"must end in .md"):
        add(tmp_path / "toy.html", ROWS)
    with pytest.raises(UserError, match="nothing to put on a page"):
        add(tmp_path / "new.md", [])
    (tmp_path / "toy.csv").write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match="is not a file of results"):
        text(tmp_path / "toy.csv")
    with pytest.raises(UserError, match="rebias-toy has no nosuch on toy any more"):
        add(tmp_path / "gone.md", [line("nosuch", 0, 0.5)])


def test_bench_report_writes_the_page_of_a_folder(tmp_path):
    out = tmp_path / "out"
    found = package.bench("rebias-toy", scale="smoke", out=out, only=["erm"], workers=1)
    again(out, tmp_path / "toy.md")
    (row,) = csv.DictReader((tmp_path / "toy.csv").read_text().splitlines())
    assert (row["suite"], row["scale"], row["method"], row["seed"]) == ("rebias-toy", "smoke", "erm", "0")
    assert 100 * float(row["value"]) == pytest.approx(found.table[0].mean, abs=1e-3)
    assert f"| erm | 1 | {found.table[0].mean:.2f} |" in (tmp_path / "toy.md").read_text()
