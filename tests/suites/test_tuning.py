"""Grids: one run per combination, one row for the candidate that the validation split prefers."""

import json
from pathlib import Path

import pytest

from tests.support.suites import GOOD, refused
from unskew.core.errors import UserError
from unskew.data.sources import load
from unskew.pages.bench import choices, summary
from unskew.records import Run
from unskew.suites.plan import plan
from unskew.suites.reader import read
from unskew.suites.recipe import recipe
from unskew.training.finished import open_run
from unskew.training.predict import predict
from unskew.training.pseudo import groups_for
from unskew.verbs.bench_worker import work

GRID = GOOD.replace("[settings]\n", 'choose = "val-loss"\n[settings]\n', 1).replace(
    '[method.erm]\npublished = "Vanilla"', '[method.erm]\npublished = "Vanilla"\ngrid = { optim = { lr = [0.1, 0.001] } }'
)


def test_a_row_is_the_candidate_with_the_best_mean_score_over_seeds(suite):
    suite.write_text(GRID)
    asked = read(str(suite))
    tasks = [t for t in plan(asked, "smoke", only=["erm"]) if not t.shared]
    assert [t.id for t in tasks] == [f"toy-s{seed}-erm-lr={lr}" for seed in (0, 1) for lr in ("0.1", "0.001")]
    assert [t.settings["optim.lr"] for t in tasks] == ["0.1", "0.001"] * 2
    scores = {"toy-s0-erm-lr=0.1": -0.2, "toy-s1-erm-lr=0.1": -0.9, "toy-s0-erm-lr=0.001": -0.4, "toy-s1-erm-lr=0.001": -0.5}
    figures = {t.id: 0.9 if "lr=0.1" in t.id else 0.6 + 0.1 * t.seed for t in tasks}  # the test would choose the other one
    results = {t.id: {"seconds": 1.0, "score": scores[t.id], "figures": {"plain": figures[t.id]}} for t in tasks}
    (row,) = summary(asked, tasks, results, asked.published()).to_dicts()
    assert (row["method"], row["runs"]) == ("erm", 2)
    assert row["mean"] == pytest.approx(65)
    assert choices(tasks, results) == ["toy erm: lr=0.001, by val-loss among 2 of 2 candidates: lr=0.001 -0.45, lr=0.1 -0.55"]
    del results["toy-s1-erm-lr=0.001"]  # a candidate counts once all its seeds are done
    assert choices(tasks, results) == ["toy erm: lr=0.1, by val-loss among 1 of 2 candidates: lr=0.1 -0.55"]


def test_the_score_of_a_candidate_is_the_loss_on_the_validation_split(suite, tmp_path):
    suite.write_text(GRID)
    task = next(t for t in plan(read(str(suite)), "smoke", seeds=1, only=["erm"]) if t.tried)
    record = work(json.loads(json.dumps(task.json())), tmp_path / "run", ["plain"], {})
    assert -5 < record["score"] < 0
    assert record["tried"] == {"optim.lr": "0.1"}


def test_a_candidate_may_be_scored_by_groups_that_nobody_named(suite, tmp_path):
    suite.write_text(GRID.replace('choose = "val-loss"', 'choose = "val-pseudo-groups"'))
    task = next(t for t in plan(read(str(suite)), "smoke", seeds=1, only=["erm"]) if t.tried)
    run = tmp_path / "run"
    record = work(json.loads(json.dumps(task.json())), run, ["plain"], {})
    data = load(task.source)
    method, _ = open_run(Run(Path(record["run"])))
    index, logits = predict(method, data, data.rows("val"))
    code = groups_for("val-pseudo-groups", data, 0, 0)[index]
    right = (logits.argmax(1) == data.y[index]).double()
    assert record["score"] == pytest.approx(min(float(right[code == g].mean()) for g in code.unique() if g >= 0))


def test_the_command_line_and_a_scale_switch_a_grid_off(suite):
    suite.write_text(GRID)
    (task,) = plan(read(str(suite)), "smoke", seeds=1, only=["erm"], extra={"optim.lr": "0.5"})
    assert (task.id, task.settings["optim.lr"]) == ("toy-s0-erm", "0.5")
    suite.write_text(GRID.replace("seeds = 2\n", "seeds = 2\ngrid = false\n"))
    (task,) = plan(read(str(suite)), "smoke", seeds=1, only=["erm"])
    assert (task.id, task.settings["optim.lr"]) == ("toy-s0-erm", "0.1")


@pytest.mark.parametrize(
    ("part", "now", "said"),
    [
        (
            'choose = "val-loss"',
            'choose = "test"',
            "toy.toml:5: choose = 'test': must be one of val-loss, val-pseudo-groups, oracle",
        ),
        ('choose = "val-loss"\n', "", "[method.erm] has a grid: add choose, one of val-loss, val-pseudo-groups, oracle"),
        ("lr = [0.1, 0.001]", "lr = 0.1", "grid: optim.lr must be a list of values, got 0.1"),
        ("lr = [0.1, 0.001]", "lrr = [0.1]", "unknown setting 'optim.lrr'"),
        ("seeds = 2\n", "seeds = 2\ngrid = true\n", "grid of a scale can only be false"),
        ('choose = "val-loss"', 'choose = "oracle"', "needs aligned and conflicting rows in val"),
    ],
)
def test_a_wrong_grid_is_refused(suite, tmp_path, part, now, said):
    assert said in refused(suite, tmp_path, GRID.replace(part, now, 1))


def test_a_tuned_row_is_no_recipe(suite, tmp_path, monkeypatch):
    suite.write_text(GRID)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"is chosen from a grid; run it with unskew bench toy, which tunes optim\.lr"):
        recipe("toy.toml/erm@smoke")


JUDGE = GOOD.replace(
    '[method.pgd]\npublished = "Ours"\nsettings = { biased = "{shared.biased}", k = 4, augment = "none" }',
    '[method.judged]\njudge = "biased"',
)


def test_a_row_that_judges_trains_nothing(suite, tmp_path):
    suite.write_text(JUDGE)
    asked = read(str(suite))
    shared, judged = plan(asked, "smoke", seeds=1, only=["judged"])
    assert judged.needs == (shared.id,)
    first = work(json.loads(json.dumps(shared.json())), tmp_path / "base" / "run", [], {})
    record = work(json.loads(json.dumps(judged.json())), tmp_path / "own" / "run", ["plain"], {"biased": first["run"]})
    assert not (tmp_path / "own").exists()
    assert record["run"] == first["run"]
    assert 0 <= record["figures"]["plain"] <= 1
    assert (record["seconds"], record["steps"]) == (0, 0)
    assert "leave out settings" in refused(
        suite, tmp_path, JUDGE.replace('judge = "biased"', 'judge = "biased"\nsettings = { k = 1 }')
    )
    assert "there is no [shared.other]" in refused(suite, tmp_path, JUDGE.replace('judge = "biased"', 'judge = "other"'))
