"""The report of a bench: means, spreads, costs and differences to the published numbers, by hand."""

import pytest

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
