"""A bench goes on where it was killed, keeps what is comparable, and reports everything in its folder."""

import json
import os
import signal
import subprocess
import sys
import time

import polars as pl
import pytest

import unskew as package
from tests.support.suites import GOOD, TABLE, refused
from unskew.core.errors import UserError
from unskew.verbs.bench import again


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
    with pytest.raises(
        UserError, match=r"toy-s0-erm.json was made by another request \(different: source\); choose another --out"
    ):
        package.bench(str(suite), out=out, seeds=1, only=["erm"])
    suite.write_text('split = "val"\n' + GOOD)
    with pytest.raises(UserError, match=r"toy-s0-erm.json was made by another request \(different: split\)"):
        package.bench(str(suite), out=out, seeds=1, only=["erm"])


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


def test_a_data_set_that_the_scale_leaves_out_need_not_suit_it(suite, tmp_path):
    own = 'only = ["toy"]\nsettings = { model = { dropout = 0.1 }, train = { steps = 10 } }'
    other = '[data.other]\nsource = "toy:rows={rows},seed={seed}"\nmodel = "linear"\n'  # which has no dropout
    suite.write_text(
        GOOD.replace("settings = { train = { steps = 10 } }", own).replace("[shared.biased]", other + "[shared.biased]")
    )
    for _ in range(2):
        assert package.bench(str(suite), out=tmp_path / "out", seeds=1, only=["erm"]).json()["done"] == 1


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
    with pytest.raises(
        UserError,
        match=r"made by another request \(different: source\); choose another --out, or remove that file and .*toy-s0-erm",
    ):
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
    with pytest.raises(
        UserError,
        match=r"holds a result of toy-s0-shared-biased by another request \(different: settings\); choose another --out",
    ):
        package.bench(str(suite), out=out, seeds="2..2", only=["erm"])
    suite.write_text(GOOD)
    with pytest.raises(UserError, match=r"holds a result of toy-s0-shared-biased by another request \(different: source\)"):
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


@pytest.mark.slow
def test_the_smoke_scale_of_pgds_table_runs_all_its_methods(tmp_path):
    found = package.bench("pgd-table1", scale="smoke", out=tmp_path / "out").json()
    assert found["failed"] == []
    assert found["done"] == 9  # eight, and pgd with patience
    assert all(r["mean"] is not None and r["published_mean"] is not None for r in found["table"])
