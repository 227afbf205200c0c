"""The report of a bench: means, spreads, costs and differences to the published numbers, by hand."""

import pytest

from tests.support.suites import GOOD, TABLE
from unskew.pages.bench import latex, summary
from unskew.suites.plan import plan
from unskew.suites.reader import read


def test_the_report_adds_up(suite):
    asked = read(str(suite))
    tasks = plan(asked, "smoke")
    results = {}
    for task in tasks:
        figure = {"erm": 0.6, "pgd": 0.8}.get(task.name, 0) + 0.02 * task.seed
        results[task.id] = {"seconds": {"erm": 10.0, "pgd": 12.0}.get(task.name, 8.0), "figures": {"plain": figure}}
    frame = summary(asked, tasks, results, asked.published())
    erm, pgd = frame.to_dicts()
    assert erm["mean"] == pytest.approx(61)
    assert erm["spread"] == pytest.approx(2**0.5)  # of 60 and 62
    assert (erm["published_mean"], erm["published_spread"], erm["difference"]) == (60, 1.5, pytest.approx(1))
    assert pgd["published_spread"] is None
    assert pgd["cost"] == pytest.approx(2)  # (12 + 8) / 10: the shared run counts
    del results["toy-s1-pgd"]
    assert summary(asked, tasks, results, None).to_dicts()[1]["runs"] == 1
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
