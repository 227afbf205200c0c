"""Regret of auto, and the row of a run of auto, by hand."""

import json

import pytest

from docs import auto_runs, field_test


def row(method, seed, worst, data="places", at="0.95"):
    return {
        "data": data,
        "at": at,
        "method": method,
        "seed": str(seed),
        "worst_group": str(worst),
        "class_balanced": "80",
        "conflicting": "",
    }


def test_regret_is_the_best_candidates_figure_minus_that_of_the_choice():
    rows = [row("erm", 0, 40), row("last_layer", 0, 78), row("pgd", 0, 60), row("auto", 0, 70), row("dfr", 0, 99)]
    rows += [row("erm", 1, 50), row("last_layer", 1, 60), row("auto", 1, 62), row("erm", 2, 1)]  # auto has no seed 2
    found = field_test.regrets(rows, "places", "0.95")
    # Seed 0: 78 is best; seed 1: auto's own 62, as no candidate that was run is better. What knows the groups does not count.
    assert found == {"auto": 4.0, "erm": (38 + 12) / 2, "pgd": 18.0, "last_layer": 1.0}
    assert field_test.regrets(rows, "places", "0.99") is None


def test_the_page_lists_both_halves():
    text = field_test.page()
    assert "| reported |" in text
    assert "| tuned | places | 95 % |" in text or "| tuned | not run yet" in text


@pytest.fixture
def folder(tmp_path):
    test = {
        n: {"value": v, "low": 0, "high": 1, "n": 9, "reason": ""}
        for n, v in zip(field_test.FIGURES, (0.5, None, 0.7, 0.61), strict=True)
    }
    final = {"score": 0.4, "balanced": 0.5, "class_balanced": 0.9, "known": None, "test": test, "seconds": 3.0}
    found = {
        "source": "places:ratio=0.99,seed=2", "seed": 2, "recommended": "pgd", "seconds": 61.4, "commit": "abc", "verdict": "pgd.",
        "command": "unskew auto places:ratio=0.99,seed=2 --out somewhere", "missing_labels": "", "cut": [],
        "gate": {"open": True, "reason": "colour"}, "finalists": [{"name": "erm", **final}, {"name": "pgd", **final}],
        "tried": [
            {"name": "erm", "settings": {}, "fate": "dropped", "reason": "low", "rungs": [
                {"share": 0.25, "score": 0.125, "balanced": 0.5, "known": None, "seconds": 7.0}]},
            {"name": "jtt", "settings": {"upweight": 5}, "fate": "refused", "reason": "no errors", "rungs": []},
        ],
    }  # fmt: skip
    (tmp_path / "auto.json").write_text(json.dumps(found))
    return tmp_path


def test_a_run_of_auto_becomes_a_row_of_the_field_test(folder):
    found = field_test.of_auto(folder)
    assert (found["data"], found["at"], found["method"], found["seed"]) == ("places", "0.99", "auto", "2")
    assert (found["worst_group"], found["conflicting"], found["class_balanced"], found["seconds"]) == ("50.00", "", "61.00", "61")
    with pytest.raises(SystemExit):
        field_test.place_of("places:ratio=0.97,seed=2", 2)


def test_the_page_of_runs_says_what_became_of_every_candidate(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(auto_runs, "TABLE", tmp_path / "auto.csv")
    auto_runs.collect(folder)
    auto_runs.collect(folder)  # replaces its own lines
    assert len(auto_runs.read()) == 5
    text = auto_runs.page()
    assert "| erm | 0.25 | 12.5 | 50.0 | – | 7 | dropped: low |" in text
    assert "| jtt upweight=5 | – | – | – | – | – | refused: no errors |" in text
    assert "| pgd (recommended) | 40.0 | 50.0 | 90.0 | – | 61.0 | 50.0 | 70.0 | – | 3 |" in text
    assert "somewhere" not in text
