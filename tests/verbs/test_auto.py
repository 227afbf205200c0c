"""The verb auto: a closed gate gives plain training, an open one something better; it resumes, and keeps to its budget."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import unskew as package
from tests.support.planted import TEST, TRAIN, planted_vectors, worst_true_group
from unskew.core.errors import UserError
from unskew.pages.auto import auto_text
from unskew.records import Auto, Table
from unskew.verbs import auto as verb

SHORT = {"train.steps": 60}
TIMES = ("seconds", "training", "run", "command", "audit", "budget")


def without_times(found):
    """A result without what depends on the clock and the place."""
    if isinstance(found, dict):
        return {k: without_times(v) for k, v in found.items() if k not in TIMES}
    return [without_times(v) for v in found] if isinstance(found, list) else found


def read(out):
    return without_times(json.loads((out / "auto.json").read_text()))


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return planted_vectors(tmp_path_factory.mktemp("planted") / "rows.npz")


@pytest.fixture(scope="module")
def whole(source, tmp_path_factory):
    """An uninterrupted run in this process."""
    out = tmp_path_factory.mktemp("whole") / "auto"
    return package.auto(source, out=out, workers=1, settings=SHORT), out


def test_an_open_gate_finds_something_better_than_erm(whole, source):
    found, out = whole
    assert found.gate["open"]
    assert found.gate["named"] == ["column:name=site"]
    assert found.recommended != "erm"
    assert found.run == out / "models" / found.recommended
    worst = {}
    for one in found.finalists:
        table = package.evaluate(one.run).predictions
        worst[one.name] = worst_true_group(source, table.index.tolist(), table.column("logits").argmax(1).tolist())
    assert worst[found.recommended] > worst["erm"] + 0.2
    erm, _, chosen = found.finalists
    assert chosen.score > erm.score
    assert found.gain[0] > found.gain[1] > 0
    assert found.gain[0] == pytest.approx(chosen.balanced - erm.balanced)
    assert found.missing_labels == ""  # there is no bias column
    assert found.cut == []
    assert all(t.reason for t in found.tried)
    assert (out / "auto.html").read_text().count(found.recommended) > 3


def test_half_of_the_candidates_go_on_and_every_score_is_of_rows_held_out(whole):
    found, out = whole
    trained = {t.name: [r.share for r in t.rungs] for t in found.tried if t.rungs}
    for share, most in ((0.25, 7), (0.5, 4), (1.0, 3)):  # the solved one is at full length from the start
        assert 1 <= sum(share in shares for shares in trained.values()) <= most
    choice = Table.read(out / "choice.parquet")
    held = set(choice.index[choice.column("weight") == 0].tolist())
    assert len(held) == pytest.approx(TRAIN / 4, abs=2)
    for path in (out / "results").glob("*-[123].json"):
        assert set(json.loads(path.read_text())["index"]) == held
    judged = json.loads((out / "results" / "final-erm.json").read_text())["index"]
    assert min(judged) == TRAIN  # validation and test rows


def test_figures_are_those_counted_by_hand(whole, source):
    found, out = whole
    arrays = np.load(source)
    result = json.loads((out / "results" / "final-erm.json").read_text())
    said = dict(zip(result["index"], result["said"], strict=True))
    test = np.arange(len(arrays["y"]) - TEST, len(arrays["y"]))
    right = np.array(["ab"[said[i]] == arrays["y"][i] for i in test])
    by_class = np.mean([right[arrays["y"][test] == c].mean() for c in "ab"])
    assert found.finalists[0].test["class_balanced"].value == pytest.approx(by_class)


def test_a_finished_result_is_read_back(whole, source):
    found, out = whole
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*") if p.is_file()}
    again = package.auto(source, out=out, workers=1, settings=SHORT)
    assert {p: p.stat().st_mtime_ns for p in out.rglob("*") if p.is_file()} == before  # nothing is trained or written again
    assert isinstance(again, Auto)
    assert auto_text(again) == auto_text(found)
    with pytest.raises(UserError, match="seed is 0 there and 1 here"):
        package.auto(source, out=out, workers=1, settings=SHORT, seed=1)


def test_killed_and_run_again_it_makes_the_same_choice_and_repeats_nothing(whole, source, tmp_path):
    _, there = whole
    out = tmp_path / "auto"
    words = [sys.executable, "-m", "unskew", "auto", source, "train.steps=60", "--workers", "1", "--out", str(out)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.time() + 240
    while len(list((out / "results").glob("*.json"))) < 3 and time.time() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = {p: p.stat().st_mtime_ns for p in (out / "results").glob("*.json")}
    assert 3 <= len(before) < len(list((there / "results").glob("*.json")))
    assert not (out / "auto.json").exists()
    spent = json.loads((out / "state.json").read_text())["seconds"]
    found = package.auto(source, out=out, workers=1, settings=SHORT)
    assert {p: p.stat().st_mtime_ns for p in before} == before
    assert found.seconds > spent
    assert read(out) == read(there)
    for name in ("erm", found.recommended):
        ours, theirs = ((place / "models" / name / "model.safetensors").read_bytes() for place in (out, there))
        assert ours == theirs


@pytest.mark.slow
def test_side_by_side_the_choice_is_the_same(whole, source, tmp_path):
    package.auto(source, out=tmp_path / "auto", workers=2, settings=SHORT)
    assert read(tmp_path / "auto") == read(whole[1])


def test_a_closed_gate_is_plain_training(tmp_path):
    source = planted_vectors(tmp_path / "rows.npz", aligned=0.5, columns=False)
    found = package.auto(source, out=tmp_path / "auto", settings=SHORT)
    assert not found.gate["open"]
    assert (found.tried, found.gain) == ([], None)
    erm, optimum = found.finalists
    assert (erm.name, optimum.name) == ("erm", "plain")
    torch.set_num_threads(1)
    for one, method, more in ((erm, "erm", {}), (optimum, "last_layer", {"weights": "plain"})):
        alone = package.train(source, method, out=tmp_path / one.name, settings={**SHORT, **more})
        ours, theirs = ((place / "model.safetensors").read_bytes() for place in (one.run, alone.path))
        assert ours == theirs  # no harm: it is the same model
    assert found.recommended == ("plain" if optimum.class_balanced >= erm.class_balanced else "erm")
    assert "closed" not in found.verdict
    assert found.verdict.startswith("Plain training (")


class Faked:
    """Trainings that take a set time and are right about the rows as often as told."""

    def __init__(self, source, skill, seconds, refused=()):
        self.y = np.load(source)["y"]
        self.skill, self.seconds, self.refused, self.jobs, self.spent = skill, seconds, refused, [], 0.0

    def __call__(self, jobs, where):
        found = {}
        for job in jobs:
            self.jobs.append(job.id)
            if job.method in self.refused:
                found[job.id] = {"id": job.id, "refused": "the guards say no", "seconds": 1.0}
                continue
            rng = np.random.default_rng(0)
            right = rng.random(len(job.rows)) < self.skill.get(job.method, 0.6)
            truth = np.array(["ab".index(self.y[i]) for i in job.rows])
            said = np.where(right, truth, 1 - truth).tolist()
            steps = job.settings.get("train.steps", 60)
            took = 0.0 if job.settings.get("weights") == "plain" else self.seconds * steps / 60  # a layer is solved at once
            self.spent += took
            found[job.id] = {"id": job.id, "seconds": took, "training": took, "steps": steps, "index": job.rows, "said": said}
        return found


def faked(monkeypatch, source, tmp_path, seconds, budget, **more):
    work = Faked(source, {"ccdb": 0.9, "jtt": 0.8, "repair": 0.75, "pgd": 0.7, "erm": 0.6}, seconds, **more)
    monkeypatch.setattr(verb, "do", work)
    monkeypatch.setattr(verb._Clock, "spent", property(lambda clock: work.spent))
    found = package.auto(source, out=tmp_path / "auto", workers=1, budget=budget, settings=SHORT)
    return found, work


def test_without_need_the_budget_cuts_nothing(monkeypatch, source, tmp_path):
    found, work = faked(monkeypatch, source, tmp_path, 60.0, "2h", refused=("pgd",))
    assert found.recommended == "ccdb"
    assert found.cut == []
    # Seven in the first rung, then the better four, then two.
    assert [sum(job.endswith(f"-{k}") for job in set(work.jobs)) for k in (1, 2, 3)] == [7, 4, 2]
    assert {t.name: t.fate for t in found.tried} == {
        "erm": "dropped", "last_layer": "dropped", "independence": "dropped", "repair": "dropped", "ccdb": "winner",
        "pgd": "refused", "jtt": "dropped", "neutralise": "left out",
    }  # fmt: skip
    assert next(t for t in found.tried if t.name == "pgd").reason == "the guards say no"


def test_a_short_budget_cuts_candidates_and_rungs_and_says_so(monkeypatch, source, tmp_path):
    # A full training takes 60 s. Until pgd's turn, 15 + 60 + 3 x 15 s are spent: its guess of 45 s, 180 s in full, and erm's 60 s do not
    # fit the 240 s left. jtt's do. Then 3 x 30 s of rung 2 leave 135 s, too few for rung 3 and two last trainings.
    found, work = faked(monkeypatch, source, tmp_path, 60.0, "6min")
    assert found.cut == [
        "not tried for lack of time: pgd",
        "rung 3 was left out for lack of time: the choice is that of rung 2",
    ]
    assert next(t for t in found.tried if t.name == "pgd").fate == "left out"
    assert found.recommended == "ccdb"
    assert work.spent == pytest.approx(345)  # with both of the last trainings, below six minutes
    assert "not tried for lack of time" in auto_text(found)
    again, idle = faked(monkeypatch, source, tmp_path, 60.0, "5min")  # a smaller one has nothing to add
    assert (again.cut, idle.jobs) == (found.cut, [])
    more, _ = faked(monkeypatch, source, tmp_path, 60.0, "2h")  # a larger budget goes on in the same place
    assert more.cut == []
    assert more.recommended == "ccdb"


def test_a_budget_below_plain_training_is_refused_in_one_line(unskew, source, tmp_path, monkeypatch):
    said = unskew("auto", source, "train.steps=60", "--budget", "1s", "--out", tmp_path / "auto", expect=2).stderr
    last = said.strip().splitlines()[-1]
    assert last.startswith("unskew: --budget 1 s is too short: ")
    assert "give at least" in last
    with pytest.raises(UserError, match="plain training needs about 17 min more"):
        faked(monkeypatch, source, tmp_path, 1000.0, "5min")


def test_bias_labels_are_only_used_to_say_what_they_would_have_changed(monkeypatch, source, tmp_path):
    blind = package.auto(source, bias=["site"], out=tmp_path / "blind", workers=1, settings=SHORT)
    assert not blind.gate["open"]  # without the column, nothing says that the second number is not the class itself
    monkeypatch.setattr(verb, "do", Faked(source, {"ccdb": 0.9, "erm": 0.6}, 1.0))
    knows = package.auto(source, bias=["site"], out=tmp_path / "knows", workers=1, rule="val-worst-group", settings=SHORT)
    assert knows.gate["named"] == ["column:name=site"]
    assert knows.missing_labels.startswith("Bias labels would not have changed the choice")
    assert knows.test_bias == ("site",)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"budget": "soon"}, "--budget 'soon': write it as 90s, 30min or 2h"),
        ({"budget": "0s"}, "above 0"),
        ({"rule": "last"}, "--rule last: must be one of val-pseudo-groups"),
        ({"rule": "val-worst-group"}, "needs a bias column"),
        ({"executor": "slurm"}, "--executor slurm: must be local or ray"),
        ({"workers": -1}, "--workers -1: must be at least 1"),
        ({"settings": {"q": 0.7}}, "setting 'q': auto sets those of the methods itself"),
        ({"settings": {"data.keep": "t.parquet"}}, "auto sets data.keep and train.weights itself"),
        ({"settings": {"train.stepz": 3}}, "unknown setting"),
        ({"model": "nosuch"}, "no model 'nosuch'"),
        ({"source": "nosuch"}, "nosuch"),
    ],
)
def test_nonsense_is_refused_before_anything_is_written(wrong, said, source, tmp_path):
    with pytest.raises(UserError, match=said):
        package.auto(**{"source": source, "out": tmp_path / "auto", **wrong})
    assert not (tmp_path / "auto").exists()


def test_rubbish_in_the_folder_is_refused_in_one_line(unskew, source, tmp_path):
    (tmp_path / "file").touch()
    assert "not the result of auto" in unskew("auto", source, "--out", tmp_path / "file", expect=2).stderr
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "auto.json").write_text("{}")
    said = unskew("auto", source, "--out", damaged, expect=2).stderr
    assert len(said.strip().splitlines()) == 1
    assert "damaged" in said


def test_a_row_of_a_suite_is_judged_by_the_model_that_is_recommended(tmp_path):
    source = planted_vectors(tmp_path / "rows.npz", aligned=0.5, columns=False)
    (tmp_path / "own.toml").write_text(
        f'title = "Own"\ncolumns = {{ plain = "" }}\n[scale.smoke]\nseeds = 1\nsettings = {{ train = {{ steps = 20 }} }}\n'
        f'[data.rows]\nsource = "{source}"\n[method.erm]\n[method.auto]\nsettings = {{ budget = "10min" }}\n'
    )
    found = package.bench(str(tmp_path / "own.toml"), out=tmp_path / "bench", workers=1).json()
    assert found["failed"] == []
    figures = {row["method"]: row["mean"] for row in found["table"]}
    result = json.loads((tmp_path / "bench" / "results" / "rows-s0-auto.json").read_text())
    recommended = Path(result["run"])
    assert recommended.parent.name == "models"
    assert figures["auto"] == pytest.approx(100 * package.evaluate(recommended).metrics["plain"])


def test_several_labels_leave_plain_training(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, (300, 2))
    found = package.auto(
        (rng.standard_normal((300, 3)).astype(np.float32), y), out=tmp_path / "auto", settings={"train.steps": 5}
    )
    assert (found.recommended, found.gate["open"], found.finalists[0].test) == ("erm", False, {})
    assert "needs inputs, one class per row" in found.verdict


def test_data_from_python_is_tried_in_this_process(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    x = (rng.standard_normal((400, 4)) + y[:, None]).astype(np.float32)
    found = package.auto((x, y), out=tmp_path / "auto", settings={"train.steps": 5})
    assert found.recommended in ("erm", "plain")
    with pytest.raises(UserError, match="cannot read data passed from Python"):
        package.auto((x, y), out=tmp_path / "ray", executor="ray", settings={"train.steps": 5})
