"""Suites: every wrong one is refused with its line before anything starts; a bench goes on where it was killed; the report adds up."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

import unskew as package
from unskew.core import registry
from unskew.core.errors import UserError
from unskew.core.settings import Settings
from unskew.data import load
from unskew.pages.bench import latex, summary
from unskew.pages.board import Board
from unskew.suites.plan import plan
from unskew.suites.reader import read
from unskew.training.make import make_method
from unskew.training.settings import check_method, run_config
from unskew.verbs.bench import again

GOOD = """# A suite for tests.
title = "Toy"
published = "table.csv"
columns = { plain = "acc %" }
[settings]
train = { batch = 64 }
[scale.smoke]
seeds = 2
vars = { rows = 300 }
settings = { train = { steps = 10 } }
[data.toy]
published = "Toy set"
source = "toy:rows={rows},seed={seed}"
model = "mlp"
at = { "" = "only" }
[shared.biased]
method = "gce"
[method.erm]
published = "Vanilla"
[method.pgd]
published = "Ours"
settings = { biased = "{shared.biased}", k = 4, augment = "none" }
"""
TABLE = "method,dataset,bias_setting,metric,mean,std,note\nVanilla,Toy set,only,acc %,60.0,1.5,\nOurs,Toy set,only,acc %,70.0,,\n"


@pytest.fixture
def suite(tmp_path):
    (tmp_path / "table.csv").write_text(TABLE)
    path = tmp_path / "toy.toml"
    path.write_text(GOOD)
    return path


def test_the_plan_has_every_run_with_its_settings(suite):
    tasks = plan(read(str(suite)), "smoke")
    assert [t.id for t in tasks] == [
        "toy-s0-shared-biased", "toy-s0-erm", "toy-s0-pgd", "toy-s1-shared-biased", "toy-s1-erm", "toy-s1-pgd",
    ]  # fmt: skip
    pgd = tasks[2]
    assert pgd.needs == ("toy-s0-shared-biased",)
    assert pgd.settings["train.steps"] == "10"
    assert pgd.settings["train.batch"] == "64"
    assert tasks[4].source == "toy:rows=300,seed=1"
    assert [t.id for t in plan(read(str(suite)), "smoke", seeds=1, only=["erm"])] == ["toy-s0-erm"]


def test_a_method_asked_for_leaves_the_scales_data_sets_as_they_are():
    assert [t.id for t in plan(read("pgd-table1"), "smoke", only=["erm"])] == ["colored-mnist-0.99-s0-erm"]
    assert [t.id for t in plan(read("pgd-table1"), "smoke", only=["erm", "0.95"])] == ["colored-mnist-0.95-s0-erm"]
    with pytest.raises(UserError, match="--only erv: pgd-table1 has no such method"):
        plan(read("pgd-table1"), "smoke", only=["erv"])


WRONG = {
    "[method.erm]": ("[method.erv]", "toy.toml:18: no method 'erv'; did you mean 'erm'"),
    "steps = 10": ("log_every = 10", "has no budget: give train.epochs or train.steps"),
    "rows={rows}": ("rows={rowz}", "no value for 'rowz'"),
    "toy:rows": ("toy:share=2,rows", "toy.toml:11: toy:share=2,rows=300,seed=0: unknown setting 'share'"),
    "k = 4": ("kk = 4", "unknown setting 'method.kk'"),
    "model =": ("modle =", "toy.toml:14: [data.toy] has an unknown entry 'modle'; did you mean 'model'"),
    "table.csv": ("tabel.csv", "no published table 'tabel.csv'"),
    'title = "Toy"': ('titel = "Toy"', "unknown entry 'titel'"),
    "batch = 64": ("batch = no", "is not TOML"),
    "seeds = 2": ("seeds = 2\nevaluate = { tempral = true }", "toy.toml:9: evaluate has an unknown entry 'tempral'"),
    "[method.pgd]": ("[method.dependency]", "toy.toml:20: method dependency needs the setting phi"),
    'method = "gce"': ('method = "balance+gce"\nsettings = { balance = { alfa = 1 } }', "unknown setting 'balance.alfa'"),
    "seeds =": ("evaluate = { attack = { round = 1 } }\nseeds =", "toy.toml:8: unknown setting 'attack.round'"),
}


WRONG |= {
    "seeds = 2\n": ("seeds = 0\n", "toy.toml:8: seeds must be at least 1, got 0"),
    'columns = { plain = "acc %" }': ('columns = ["plain"]', "toy.toml:4: columns must be a table, got ['plain']"),
    "vars = { rows = 300 }": ('vars = "x"', "toy.toml:9: vars must be a table, got 'x'"),
    'source = "toy': ('source = ""\n# "toy', "[data.toy] has no source"),
    "[settings]\n": (
        'baseline = "erv"\n[settings]\n',
        "toy.toml:5: baseline 'erv' is no method of the suite; did you mean 'erm'",
    ),
    'model = "mlp"': ('model = "mlp"\nsettings = { model = { hiden = 3 } }', "unknown setting 'model.hiden'"),
    'title = "Toy"\n': ('title = "Toy"\nevaluate = true\n', "toy.toml:3: evaluate must be a table, got True"),
    "# A suite for tests.\n": ('evaluate = { temporal = "x" }\n', "evaluate.temporal must be true or false, got 'x'"),
    "# A suite": ('evaluate = { textures = "nosuch" }\n# A suite', "no representation 'nosuch'"),
    'plain = "acc %"': ('plian = "acc %"', "toy.toml:4: column 'plian' is no figure of evaluate; did you mean 'plain'"),
    "columns = { plain": (
        'columns = { "temporal.value" = "", plain',
        "toy.toml:4: column 'temporal.value' needs evaluate = { temporal",
    ),
    "seeds = 2\nvars": ('seeds = 2\nonly = ["erv"]\nvars', "toy.toml:9: only erv: toy has no such method"),
    "rows = 300": ('rows = 300, a = "{b}", b = "{a}"', "toy.toml:9: a names vars that name others in turn, or each other"),
    "# A": ("evaluate = { shared_classes = true }\n# A", "shared_classes is for another source"),
}


WRONG |= {
    "{shared.biased}": ("{shared.biasd}", "toy.toml:22: there is no [shared.biasd]; did you mean 'biased'"),
    'at = { "" = "only" }': (
        'at = { 0.99 = "only" }',
        "toy.toml:15: [data.toy] at: 0 = {'99': 'only'} must be text; write numbers in quotes",
    ),
    '"" = "only"': ('"../x" = "only"', "toy.toml:15: [data.toy] at '../x': a name may have letters, digits and . _ + = -"),
    '[method.erm]\npublished = "Vanilla"': (
        '[method."a/b"]\nmethod = "erm"',
        "toy.toml:18: method 'a/b': a name may have letters, digits",
    ),
    'published = "Vanilla"': (
        'published = "Vanilla"\npublished_at = "{foo}"',
        "toy.toml:20: published_at = '{foo}': may hold {at}",
    ),
    'published = "Vanilla"\n': (
        "[method.erm.scale.smok]\nsettings = {}\n",
        "[method.erm.scale.smok]: the suite has no such scale; did you mean 'smoke'",
    ),
    'published = "Ours"': (
        "scale = { smoke = { setings = {} } }",
        "toy.toml:21: [method.pgd.scale.smoke] must be a table with the entry settings",
    ),
    'published = "Ours"\n': (
        "scale = { smoke = 3 }\n",
        "[method.pgd.scale.smoke] must be a table with the entry settings alone, got 3",
    ),
    'published = "Toy set"': (
        "scale = { smoke = { settings = 3 } }",
        "[data.toy.scale.smoke] must be a table with the entry settings",
    ),
    "[method.erm]\n": ('[method.shared-biased]\nmethod = "erm"\n', "two runs would be called toy-s0-shared-biased"),
    'columns = { plain = "acc %" }\n': (
        "columns = { plain = 5 }\n",
        "toy.toml:4: columns: the published name of 'plain' must be text, got 5",
    ),
    "columns = {": (
        'evaluate = { leakage = true }\ncolumns = { "leakage.foo" = "",',
        "toy.toml:5: column 'leakage.foo' is no figure of leakage",
    ),
    "{ plain": ('{ ".plain" = "", plain', "toy.toml:4: column '.plain' names no split"),
    "title =": ('split = ""\ntitle =', "toy.toml:2: split must name a split"),
    'augment = "none"': ('augment = "nosuch"', "data.augment=nosuch: must be one of none, flip"),
    "[settings]": ('[settings]\nselect = { every = "3 weeks" }', "toy.toml:6: select.every='3 weeks': write it as '3 epochs'"),
    "vars =": ("evaluate = { attack = { rounds = 0 } }\nvars =", "attack: rounds, hidden, batch and epochs must be at least 1"),
}


WRONG |= {
    "[method.pgd]\n": ("[method.pgd]\nmethod = { a = 1 }\n", "toy.toml:20: method must be text, got {'a': 1}"),
    'seed={seed}"': ('seed={seed[a]}"', "braces name a value, such as {seed}"),
    '"toy:rows={rows},seed={seed}"': (
        '"toy:seed={seed},rowz={rows}"',
        "toy.toml:11: toy:seed=0,rowz=300: unknown setting 'rowz'",
    ),
    'published = "Vanilla"\n[': (
        'published = "Vanilla"\npublished_at = "{at.foo}"\n[',
        "toy.toml:20: published_at = '{at.foo}': may hold {at}",
    ),
    'method = "gce"\n': (
        'method = "gce"\nsettings = { init = "{shared.biased}" }\n',
        "toy.toml:18: a shared run cannot use another",
    ),
    "# A suite for tests": (
        'evaluate = { on = "toy:rowz=1" }\n# A',
        "toy.toml:1: evaluate: on = 'toy:rowz=1': unknown setting 'rowz'",
    ),
    "vars = { rows = 300 }\n": (
        "vars = { rows = 300, seed = 7 }\n",
        "toy.toml:9: vars: seed has a value of its own in every run",
    ),
    'at = { "" = "only" }\n': ("at = {}\n", "toy.toml:15: [data.toy] at has no values"),
    "toy:rows=": ("toy:noise=7,rows=", "data.noise=7.0: must lie in [0, 1)"),
    'source = "toy:rows={rows},seed={seed}"': ('source = "nosuch.csv"', "toy.toml:11: nosuch.csv: there is no such file"),
}


@pytest.mark.parametrize("part", WRONG)
def test_a_wrong_suite_is_refused_before_anything_starts(suite, tmp_path, part):
    now, said = WRONG[part]
    suite.write_text(GOOD.replace(part, now, 1))
    with pytest.raises(UserError) as error:
        package.bench(str(suite), out=tmp_path / "out")
    assert said in str(error.value)
    assert not (tmp_path / "out").exists()


def refused(suite, tmp_path, text, **asked):
    suite.write_text(text)
    with pytest.raises(UserError) as error:
        package.bench(str(suite), out=tmp_path / "out", **asked)
    assert not (tmp_path / "out").exists()
    return str(error.value)


def test_the_line_told_is_that_of_the_setting(suite, tmp_path):
    assert "toy.toml:10: train.epochs must be above 0" in refused(suite, tmp_path, GOOD.replace("steps = 10", "steps = 0"))
    assert "toy.toml:6: train.batch" in refused(suite, tmp_path, GOOD.replace("batch = 64", "batch = 0"))
    assert "toy.toml:14: no model 'mpl'" in refused(suite, tmp_path, GOOD.replace('"mlp"', '"mpl"'))
    only_data = GOOD.partition("[method.erm]")[0]
    assert "toy.toml:1: method must be a table, got 'erm'" in refused(suite, tmp_path, f'method = "erm"\n{only_data}')
    told = refused(suite, tmp_path, GOOD, settings={"train.batch": "0"})  # of the command line
    assert told.startswith("train.batch, train.accumulate")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("", "mean in numbers: "),
        ("method,mean\nVanilla,3\n", "must have the columns method, dataset, bias_setting, metric, mean"),
        (TABLE.replace("60.0", "12:26"), "12:26"),
    ],
)
def test_a_wrong_published_table_is_told_before_the_runs(suite, tmp_path, table, said):
    (tmp_path / "table.csv").write_text(table)
    told = refused(suite, tmp_path, GOOD)
    assert "toy.toml:3: published table 'table.csv'" in told
    assert said in told


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"on": "foo"}, "--executor foo"),
        ({"workers": -1}, "--workers -1"),
        ({"seeds": "²"}, "--seeds ²"),
        ({"only": ["erv"]}, "--only erv"),
    ],
)
def test_wrong_words_leave_no_folder(suite, tmp_path, asked, said):
    assert said in refused(suite, tmp_path, GOOD, **asked)


def test_an_impossible_ratio_is_refused_with_its_line(tmp_path):
    (tmp_path / "x.toml").write_text(
        GOOD.replace("toy:rows={rows}", "colored-mnist:base=digits,ratio=1.5").replace('published = "table.csv"\n', "")
    )
    with pytest.raises(UserError, match=r"x.toml:10: colored-mnist.*ratio=1.5: the share of aligned rows must lie in \[0, 1\]"):
        package.bench(str(tmp_path / "x.toml"), out=tmp_path / "out")


@pytest.mark.parametrize("name", registry.names("suites"))
def test_suites_of_the_package_plan_at_every_scale(name):
    suite = read(name)
    published = suite.published()
    for scale in suite.part("scale"):
        tasks = plan(suite, scale)
        assert tasks
        if published is None:
            continue
        found = summary(suite, tasks, {}, published).to_dicts()  # no name in the suite misses its row of the table
        named = {kind: {n for n, e in suite.part(kind).items() if e.get("published")} for kind in ("method", "data")}
        lost = [r for r in found if r["published_mean"] is None and r["method"] in named["method"] and r["data"] in named["data"]]
        assert not lost, lost


@pytest.mark.parametrize("name", registry.names("suites"))
def test_methods_of_the_packages_suites_can_be_built(name):
    """Settings that fit one another only with the network and the data in hand, such as the layer that a head sits on."""
    suite, built, sets = read(name), set(), {}
    methods = list(suite.part("method"))
    for task in plan(suite, "smoke", seeds=1, only=methods):
        settings = {k: v for k, v in task.settings.items() if "{shared." not in v}
        kind = task.method.rpartition("+")[2]
        key = (kind, task.model, str(settings))
        if kind not in registry.names("methods") or check_method(kind).staged or key in built:
            continue
        built.add(key)
        if task.source not in sets:
            sets[task.source] = load(task.source)
        known = run_config(Settings.of({k: v for k, v in settings.items() if not k.startswith(("denoise.", "balance."))}))
        make_method(kind, known.method, task.model, known.model, sets[task.source], 0)


def test_real_sets_are_looked_for_before_anything_starts(tmp_path):
    with pytest.raises(UserError, match="bar is read from disk: name its folder"):
        package.bench("pgd-table3", scale="paper", out=tmp_path / "out")
    with pytest.raises(UserError, match=rf"bar: {tmp_path} lacks train/, test/"):
        package.bench("pgd-table3", scale="paper", out=tmp_path / "out", roots={"bar": str(tmp_path)})
    with pytest.raises(UserError, match=r"--root baar=...: pgd-table3 at scale paper has faces, size, bar, celeba, weights"):
        package.bench("pgd-table3", scale="paper", out=tmp_path / "out", roots={"baar": "x"})
    assert not (tmp_path / "out").exists()


def test_seeds_are_how_many_or_which(suite):
    asked = read(str(suite))
    assert [t.seed for t in plan(asked, "smoke", seeds=3, only=["erm"])] == [0, 1, 2]
    assert [t.seed for t in plan(asked, "smoke", seeds="2..3", only=["erm"])] == [2, 3]
    for wrong in ("x", "3..1", "-1", "1.."):
        with pytest.raises(UserError, match=r"--seeds .*must be how many \(3\) or which \(1\.\.2\)"):
            plan(asked, "smoke", seeds=wrong)


def test_a_suite_that_grew_keeps_its_results_and_one_that_changed_does_not(suite, tmp_path):
    out = tmp_path / "out"
    package.bench(str(suite), out=out, seeds=1, only=["erm"])
    stamp = (out / "results" / "toy-s0-erm.json").stat().st_mtime_ns
    suite.write_text(GOOD + "[method.reweight]\nsettings = { train = { steps = 5 } }\n")
    assert package.bench(str(suite), out=out, seeds=1, only=["erm"]).json()["done"] == 1
    assert (out / "results" / "toy-s0-erm.json").stat().st_mtime_ns == stamp
    suite.write_text(GOOD.replace('plain = "acc %"', 'plain = "acc %", class_balanced = ""'))  # judged again, not trained again
    log = (out / "runs" / "toy-s0-erm" / "run" / "log.jsonl").stat().st_mtime_ns
    table = package.bench(str(suite), out=out, seeds=1, only=["erm"]).json()["table"]
    assert all(row["mean"] is not None for row in table)
    assert (out / "runs" / "toy-s0-erm" / "run" / "log.jsonl").stat().st_mtime_ns == log
    suite.write_text(GOOD.replace("rows = 300", "rows = 200"))
    with pytest.raises(UserError, match=r"toy-s0-erm.json was made with another source; choose another --out"):
        package.bench(str(suite), out=out, seeds=1, only=["erm"])
    suite.write_text('split = "val"\n' + GOOD)
    with pytest.raises(UserError, match=r"toy-s0-erm.json was made with another split"):
        package.bench(str(suite), out=out, seeds=1, only=["erm"])


def test_the_board_tells_the_time_left(suite, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("unskew.pages.board.time.monotonic", lambda: clock[0])
    tasks = plan(read(str(suite)), "smoke", only=["erm"], seeds=5)
    board = Board(tasks, workers=2)
    assert board.seconds_left() is None
    board.started(tasks[0])
    board.started(tasks[1])
    clock[0] = 100.0
    board.finished(tasks[0], {"figures": {"plain": 0.5}})
    board.finished(tasks[1], {})
    board.started(tasks[2])
    clock[0] = 140.0
    assert board.seconds_left() == pytest.approx((60 + 100 + 100) / 2)  # one run 40 s old, two to come
    assert board.headline() == "2 of 5 runs, 2 min left"


def test_the_board_is_a_table_on_a_terminal(suite):
    from rich.console import Console

    tasks = plan(read(str(suite)), "smoke", only=["erm"], seeds=40)
    board = Board(tasks, workers=1)
    for task in tasks[:20]:
        board.started(task)
        board.finished(task, {"figures": {"plain": 0.5}})
    board.started(tasks[20])
    board.failed(tasks[20], "out of memory")
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(board)
    lines = console.export_text().splitlines()
    assert lines[0].startswith("21 of 40 runs")
    assert len(lines) == 32  # the headline, the names of the columns, and thirty runs
    assert any("failed: out of memory" in line for line in lines)
    assert any("plain 50.0" in line for line in lines)
    assert any("waiting" in line for line in lines)


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


def test_a_killed_bench_goes_on_and_repeats_nothing(suite, tmp_path):
    out = tmp_path / "out"
    words = [sys.executable, "-m", "unskew", "bench", str(suite), "--out", str(out), "--workers", "1", "train.steps=60"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    deadline = time.time() + 120
    while not list((out / "results").glob("*.json")) and time.time() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = {p.name: p.stat().st_mtime_ns for p in (out / "results").glob("*.json")}
    assert 0 < len(before) < 6
    done = subprocess.run([*words, "--json"], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert (found["done"], found["runs"], found["failed"]) == (4, 4, [])
    after = {p.name: p.stat().st_mtime_ns for p in (out / "results").glob("*.json")}
    assert len(after) == 6
    assert all(after[name] == stamp for name, stamp in before.items())
    assert pl.read_parquet(out / "results.parquet").equals(
        pl.read_csv(out / "results.csv", schema=pl.read_parquet(out / "results.parquet").schema)
    )
    assert "Toy" in (out / "report.html").read_text()
    again = subprocess.run(
        [sys.executable, "-m", "unskew", "bench", "report", "--out", str(out), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(again.stdout)["table"] == found["table"]
    with pytest.raises(UserError, match="holds other settings"):
        package.bench(str(suite), out=out)
    with pytest.raises(UserError, match="holds no bench"):
        package.bench(str(suite), out=tmp_path / "none", resume=True)


def test_a_worker_ends_with_its_bench(suite, tmp_path):
    """Killed alone, not with its group: what it started must not train on beside the next bench."""
    out = tmp_path / "out"
    words = [sys.executable, "-m", "unskew", "bench", str(suite), "--out", str(out), "--workers", "1", "--only", "erm"]
    process = subprocess.Popen([*words, "train.steps=100000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    log = out / "runs" / "toy-s0-erm" / "run" / "log.jsonl"
    deadline = time.time() + 120
    while not log.is_file() and time.time() < deadline:
        time.sleep(0.05)
    with pytest.raises(UserError, match="another bench is at work in"):
        package.bench(str(suite), out=out, only=["erm"], settings={"train.steps": "100000"})
    workers = [int(p.name) for p in Path("/proc").glob("[0-9]*") if f"{out}/tasks".encode() in words_of(p)]
    assert len(workers) == 1
    process.kill()
    process.wait()
    while Path(f"/proc/{workers[0]}").exists() and time.time() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{workers[0]}").exists()


def words_of(process):
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


def test_the_report_has_everything_in_the_folder(suite, tmp_path):
    out = tmp_path / "out"
    package.bench(str(suite), out=out, seeds=1, only=["pgd"], command="unskew bench first")
    found = package.bench(str(suite), out=out, seeds=1, only=["erm"], command="unskew bench second").json()
    assert [r["method"] for r in found["table"]] == ["erm", "pgd"]  # in the order of the suite
    assert (found["runs"], found["done"]) == (2, 2)
    assert found["commands"] == ["unskew bench first", "unskew bench second"]
    assert found["table"][1]["cost"] > 1
    (out / "results" / "toy-s0-pgd.json").write_text("")  # as good as none
    (tmp_path / "table.csv").unlink()
    seen = again(out).json()
    assert (seen["runs"], seen["done"]) == (2, 1)
    assert seen["table"][0] == found["table"][0]  # the published table is kept, too
    assert seen["commands"] == found["commands"]
    (tmp_path / "table.csv").write_text(TABLE)
    suite.write_text(GOOD.replace("rows = 300", "rows = 200").replace('"Toy"', '"Other"'))
    with pytest.raises(UserError, match=r"made with another source; choose another --out, or remove that file and .*toy-s0-erm"):
        package.bench(str(suite), out=out, seeds=1, only=["erm"])
    assert again(out).json()["title"] == "Toy"  # a refused change leaves the record as it was
    suite.write_text(GOOD.partition("[method.erm]")[0] + "[method.pgd]" + GOOD.partition("[method.pgd]")[2])
    assert [r["method"] for r in package.bench(str(suite), out=out, seeds=1).json()["table"]] == ["pgd"]
    (out / "bench.json").write_text("{}")
    with pytest.raises(UserError, match=r"bench.json is not the record of a bench"):
        again(out)


def test_one_table_holds_one_budget_and_keeps_the_suites_order(suite, tmp_path):
    out = tmp_path / "out"
    package.bench(str(suite), out=out, seeds=1, only=["pgd"])
    found = package.bench(str(suite), out=out, seeds="1..1", only=["erm"]).json()
    assert [r["method"] for r in found["table"]] == ["erm", "pgd"]
    suite.write_text(GOOD.replace("steps = 10", "steps = 20"))
    with pytest.raises(UserError, match=r"holds a result of toy-s0-shared-biased with another settings; choose another --out"):
        package.bench(str(suite), out=out, seeds="2..2", only=["erm"])
    suite.write_text(GOOD)
    with pytest.raises(UserError, match=r"holds a result of toy-s0-shared-biased with another source"):
        package.bench(str(suite), out=out, seeds="2..2", only=["erm"], roots={"rows": "60"})
    record = json.loads((out / "bench.json").read_text())  # as an earlier version wrote it, its suite elsewhere by now
    old = {key: record[key] for key in ("suite", "text", "scale", "settings")} | {"path": str(tmp_path / "gone" / "toy.toml")}
    (out / "bench.json").write_text(json.dumps(old))
    assert again(out).json()["done"] == 2
    assert package.bench(str(suite), out=out, seeds="1..1", only=["erm"]).json()["done"] == 2
    (out / "bench.json").write_text(json.dumps(record | {"tasks": [{}]}))
    with pytest.raises(UserError, match="is not the record of a bench"):
        again(out)


def test_runs_that_were_interrupted_have_no_cost(suite, tmp_path):
    out = tmp_path / "out"
    before = package.bench(str(suite), out=out, seeds=1).json()
    assert before["resumed"] == []
    assert all(r["cost"] is not None for r in before["table"])
    (out / "results" / "toy-s0-pgd.json").unlink()  # killed after its training, before its result was written
    found = package.bench(str(suite), out=out, seeds=1).json()
    assert found["resumed"] == ["toy-s0-pgd"]
    assert [r["cost"] for r in found["table"]] == [pytest.approx(1), None]
    assert [r["mean"] for r in found["table"]] == [r["mean"] for r in before["table"]]
    assert "toy-s0-pgd" in (out / "report.html").read_text()
    told = json.loads((out / "results" / "toy-s0-erm.json").read_text())
    suite.write_text(GOOD.replace('plain = "acc %"', 'plain = "acc %", class_balanced = ""'))  # judged again, not trained again
    package.bench(str(suite), out=out, seeds=1)
    same = json.loads((out / "results" / "toy-s0-erm.json").read_text())
    assert "class_balanced" in same["figures"]
    assert (same["seconds"], same["resumed"]) == (told["seconds"], False)


def test_a_run_that_fails_is_told_and_the_others_go_on(suite, tmp_path):
    suite.write_text(
        GOOD.replace("rows={rows}", "rows={rows}").replace("settings = { biased", 'model = "lenet5"\nsettings = { biased')
    )
    found = package.bench(str(suite), out=tmp_path / "out", seeds=1).json()
    assert found["failed"] == ["toy-s0-pgd"]
    assert found["done"] == 1
    assert "takes images" in (tmp_path / "out" / "tasks" / "toy-s0-pgd.log").read_text()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ('split = "tset"', "has no split 'tset'; did you mean 'test'"),
        ("evaluate = { temporal = true }", "--temporal is for clips"),
    ],
)
def test_what_the_data_cannot_answer_is_told_before_the_training(suite, tmp_path, asked, said):
    suite.write_text(f"{asked}\n{GOOD}")
    found = package.bench(str(suite), out=tmp_path / "out", seeds=1, only=["erm"]).json()
    assert found["failed"] == ["toy-s0-erm"]
    assert said in (tmp_path / "out" / "tasks" / "toy-s0-erm.log").read_text()
    assert not (tmp_path / "out" / "runs" / "toy-s0-erm" / "run").exists()


def test_a_suite_asks_evaluate_for_more_and_may_hold_dependencies(tmp_path):
    """The clips' scores of two runs, and REPAIR's beta, as figures of one table each."""
    common = "[settings]\ntrain = { steps = 2, batch = 32 }\nmodel = { width = 4 }\n[scale.smoke]\nseeds = 1\n"
    common += 'vars = { other = "moving-digits:ratio=0.2,{set}", set = "base=digits,rows=300,size=24,seed={seed}" }\n'
    common += '[data.clips]\nsource = "moving-digits:ratio=0.5,{set}"\nmodel = "resnet"\n'
    (tmp_path / "scores.toml").write_text(
        'title = "Scores"\ncolumns = { "temporal.value" = "", "cross_dataset.mean" = "" }\n'
        'evaluate = { temporal = true, on = "{other}", shared_classes = true }\n'
        + common + '[method.flat]\nmethod = "erm"\nsettings = { model = { kind = "2d" } }\n'
        '[method.deep]\nmethod = "balance+erm"\nsettings = { model = { kind = "3d" }, balance = { alpha = 20 } }\n'
    )  # fmt: skip
    found = package.bench(str(tmp_path / "scores.toml"), out=tmp_path / "scores").json()
    assert found["failed"] == []
    scores = {r["method"]: r["mean"] for r in found["table"] if r["figure"] == "temporal.value"}
    assert scores["flat"] == pytest.approx(0, abs=1e-5)
    assert scores["deep"] > 1e-3
    assert (tmp_path / "scores" / "runs" / "clips-s0-deep" / "run-balanced.parquet").is_file()
    asked = '{ model = { kind = "2d" }, phi = "frame", rates = "0.5", repair = { epochs = 3 } }'
    (tmp_path / "beta.toml").write_text(
        f'title = "Beta"\ncolumns = {{ beta = "" }}\n{common}[method.flat]\nmethod = "dependency"\nsettings = {asked}\n'
    )
    found = package.bench(str(tmp_path / "beta.toml"), out=tmp_path / "beta").json()
    told = json.loads((tmp_path / "beta" / "runs" / "clips-s0-flat" / "run" / "dependency.json").read_text())
    assert [r["mean"] for r in found["table"]] == [pytest.approx(told["beta"])]


def test_the_smoke_scale_of_pgds_table_runs_all_its_methods(tmp_path):
    found = package.bench("pgd-table1", scale="smoke", out=tmp_path / "out").json()
    assert found["failed"] == []
    assert found["done"] == 9  # eight, and pgd with patience
    assert all(r["mean"] is not None and r["published_mean"] is not None for r in found["table"])
