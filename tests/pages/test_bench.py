"""The report of a bench: means, spreads, costs and differences to the published numbers, by hand."""

import polars as pl
import pytest

from tests.support.suites import GOOD, TABLE
from unskew.pages.bench import SCHEMA, _blocks, latex, render, summary
from unskew.pages.bench_first import first_of
from unskew.suites.plan import plan
from unskew.suites.reader import read


def test_the_report_adds_up(suite):
    asked = read(str(suite))
    tasks = plan(asked, "smoke")
    results = {}
    for task in tasks:
        figure = {"erm": 0.6, "pgd": 0.8}.get(task.name, 0) + 0.02 * task.seed
        seconds = {"erm": 10.0, "pgd": 12.0}.get(task.name, 8.0) * (1 + 9 * task.seed)  # the second seed on a slow machine
        results[task.id] = {"seconds": seconds, "figures": {"plain": figure}}
    frame = summary(asked, tasks, results, asked.published())
    erm, pgd = frame.to_dicts()
    assert erm["mean"] == pytest.approx(61)
    assert erm["spread"] == pytest.approx(2**0.5)  # of 60 and 62
    assert (erm["published_mean"], erm["published_spread"], erm["difference"]) == (60, 1.5, pytest.approx(1))
    assert pgd["published_spread"] is None
    assert pgd["cost"] == pytest.approx(2)  # (12 + 8) / 10: the shared run counts
    del results["toy-s1-pgd"]
    alone = summary(asked, tasks, results, None).to_dicts()[1]
    assert (alone["runs"], alone["cost"]) == (1, pytest.approx(2))  # against the same seed of the baseline
    assert r"erm & 61.00 $\pm$ 1.41" in latex(frame)


def test_a_mean_over_data_sets_stands_beside_the_published_average(suite):
    text = GOOD.replace("columns =", 'average = "Average"\ncolumns =', 1)
    second = text[text.index("[data.toy]") : text.index("[shared.biased]")].replace("[data.toy]", "[data.two]")
    suite.write_text(text.replace("[shared.biased]", f"{second}[shared.biased]", 1))
    (suite.parent / "table.csv").write_text(TABLE + "Vanilla,Average,only,acc %,50.0,,\n")
    asked = read(str(suite))
    tasks = plan(asked, "smoke", only=["erm"])
    results = {t.id: {"seconds": 1.0, "figures": {"plain": 0.4 if t.data == "toy" else 0.8}} for t in tasks}
    row = summary(asked, tasks, results, asked.published()).to_dicts()[-1]
    assert (row["data"], row["method"], row["published_mean"]) == ("average", "erm", 50)
    assert row["mean"] == pytest.approx(60)


def test_a_data_set_may_have_columns_of_its_own(suite):
    suite.write_text(GOOD.replace('model = "mlp"', 'model = "mlp"\ncolumns = { class_balanced = "acc %" }'))
    asked = read(str(suite))
    tasks = plan(asked, "smoke", seeds=1, only=["erm"])
    (row,) = summary(
        asked, tasks, {tasks[0].id: {"seconds": 1.0, "figures": {"class_balanced": 0.7}}}, asked.published()
    ).to_dicts()
    assert (row["figure"], row["mean"], row["published_mean"]) == ("class_balanced", pytest.approx(70), 60)


def rows(**figures):
    """A table of two methods on one data set: figure to (erm, other)."""
    return [
        {"data": "d", "at": "0.99", "method": name, "figure": figure, "runs": 2, "mean": pair[k], "spread": None, "published_mean": None,
         "published_spread": None, "difference": None, "cost": (1.0, 1.5)[k]}
        for k, name in enumerate(("erm", "other"))
        for figure, pair in figures.items()
    ]  # fmt: skip


def first(table, **more):
    about = {
        "table": table,
        "done": 4,
        "runs": 4,
        "commands": ["unskew bench s --out b"],
        "seconds": 90.0,
        "scale": "small",
        **more,
    }
    return first_of(about, _blocks(pl.DataFrame(table, schema=SCHEMA)), [], "erm")


def test_methods_are_ranked_where_a_shortcut_does_not_help():
    shown = first(rows(aligned=(100.0, 95.0), conflicting=(52.0, 94.0)))
    assert shown.sentence == "other is best on d 0.99: conflicting 94.0; erm has 52.0."
    assert [n.value for n in shown.numbers] == ["94.0", "1.50", "4 of 4"]
    assert shown.gained == ["d 0.99: other conflicting 52.0 to 94.0"]
    assert shown.lost == ["d 0.99: other aligned 100.0 to 95.0", "d 0.99: other costs 1.5 times the training of erm"]
    assert shown.tone == "info"  # nothing published to compare with
    assert "ring" not in shown.chart.title
    assert first(rows(plain=(60.0, 50.0))).sentence == "erm is best on d 0.99: plain 60.0."


def test_of_leakage_less_is_better():
    shown = first(rows(**{"leakage.model": (70.0, 60.0)}))
    assert shown.sentence == "other is best on d 0.99: leakage model 60.0; erm has 70.0."
    assert shown.gained == ["d 0.99: other leakage model 70.0 to 60.0"]


def test_a_column_of_published_numbers_needs_a_number():
    about = {"suite": "s", "title": "t", "scale": "small", "commands": [], "runs": 4, "done": 4, "machine": [], "commits": [],
             "versions": {}, "seconds": 1.0, "resumed": [], "notes": [], "unskew": "0"}  # fmt: skip
    table = rows(plain=(60.0, 50.0))
    assert "<th>difference</th>" not in render(about | {"table": table}, pl.DataFrame(table, schema=SCHEMA), [], "erm")
    table[0] |= {"published_mean": 61.0, "difference": -1.0}
    assert "<th>difference</th>" in render(about | {"table": table}, pl.DataFrame(table, schema=SCHEMA), [], "erm")
