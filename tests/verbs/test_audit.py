"""The verb audit, as its user meets it: folders with a fault, no bias labels, no configuration."""

import dataclasses
import hashlib
import html
import json
import shlex
import shutil

import numpy as np
import polars as pl
import pytest
from PIL import Image

import unskew as package
from unskew import features
from unskew.core.errors import UserError
from unskew.measure import Attack
from unskew.records import Table

pytestmark = pytest.mark.usefixtures("own_cache")
QUICK = Attack(rounds=2, hidden=32, lr=2e-3, epochs=30, min_steps=300)


def save(root, fault="", n=60):
    """Two classes of noise that nothing tells apart, but for one fault."""
    rng = np.random.default_rng(0)
    for k, name in enumerate(("cat", "dog")):
        (root / name).mkdir(parents=True, exist_ok=True)
        for i in range(n):
            side = (44, 32) if fault == "size" and k else (32, 32)
            picture = rng.integers(0, 255, (*side, 3), dtype=np.uint8)
            if fault == "border" and k:
                picture[:4] = 250
            quality = 60 if fault == "quality" and k else 90
            Image.fromarray(picture).save(root / name / f"{i}.jpg", quality=quality)
    return root


@pytest.mark.parametrize(("fault", "expected"), [("size", "file"), ("quality", "file"), ("border", "crop:where=border")])
def test_the_fault_is_named(fault, expected, tmp_path):
    found = package.audit(save(tmp_path / "photos", fault), out=tmp_path / "out").json()
    called = {r["name"]: r for r in found["representations"] if r["verdict"] in ("shortcut", "question")}
    assert expected in called
    assert called[expected]["low"] > 0.5
    assert "can be read from" in called[expected]["sentence"]


def test_a_clean_set_gets_a_clean_bill(tmp_path):
    found = package.audit(save(tmp_path / "photos", n=150), out=tmp_path / "out").json()
    assert {r["verdict"] for r in found["representations"]} <= {"clean", "trace"}
    assert found["verdict"].startswith("None of the ")
    assert found["questions"] == []


def test_page_json_and_scores_agree(tmp_path):
    found = package.audit(
        "colored-mnist:base=digits,ratio=0.9",
        bias=["color"],
        representations=["color", "column:name=color"],
        out=tmp_path / "o",
        attack=QUICK,
    )
    there = json.loads((tmp_path / "o" / "audit.json").read_text())
    kinds = ["shortcut", "question", "readable", "trace", "clean"]
    order = [kinds.index(r["verdict"]) for r in there["representations"]]
    assert order == sorted(order)
    assert there["representations"][0]["label"] in there["verdict"]  # the headline is the first row
    page = (tmp_path / "o" / "audit.html").read_text()
    assert page.count("<script") == 1  # the page's own
    for r in there["representations"]:
        assert f"{100 * r['bias']:.1f} %" in page
    scores = Table.read(tmp_path / "o" / "scores.parquet")
    top = there["representations"][0]
    mean = float(-scores.column(f"score {top['name']}").mean()) / top["entropy"]
    assert mean == pytest.approx(top["bias"], abs=1e-6)
    column = there["columns"][0]
    assert column["leakage"]["dataset"] > 0.8
    assert column["association"]["share"] > 0.5
    # The rows that the colour misleads are the conflicting ones.
    data = package.load("colored-mnist:base=digits,ratio=0.9")
    worst = scores.frame.sort("score column:name=color", descending=True)["index"].to_list()[:50]
    assert (data.bias[worst, 0] != data.y[worst]).float().mean() > 0.9
    assert found.page.stat().st_size < 2_000_000


def test_given_again_it_says_so_and_other_settings_are_refused(tmp_path):
    source = "planted:bias=0.3,rows=400"
    package.audit(source, out=tmp_path / "o")
    stamp = (tmp_path / "o" / "audit.json").stat().st_mtime_ns
    package.audit(source, out=tmp_path / "o")
    assert (tmp_path / "o" / "audit.json").stat().st_mtime_ns == stamp
    with pytest.raises(UserError, match=r"holds another audit \(seed is 0 there and 1 here\)"):
        package.audit(source, out=tmp_path / "o", seed=1)


def test_streamed_and_in_memory_give_the_same(tmp_path):
    save(tmp_path / "photos", "border")
    both = [
        package.audit(
            tmp_path / "photos", out=tmp_path / mode, settings={"data.mode": mode}, representations=["color", "texture"]
        ).json()
        for mode in ("memory", "stream")
    ]
    assert both[0]["representations"] == both[1]["representations"]


def test_multi_label_rows_can_be_audited(tmp_path):
    root = save(tmp_path / "photos", "border")
    paths = [f"{c}/{k}.jpg" for c in ("cat", "dog") for k in range(60)]
    pl.DataFrame({"path": paths, "a": [0] * 60 + [1] * 60, "b": [0, 1] * 60}).write_csv(root / "t.csv")
    found = package.audit(root / "t.csv", settings={"label": "a,b"}, out=tmp_path / "o").json()
    border = next(r for r in found["representations"] if r["name"] == "crop:where=border")
    assert 0.3 < border["bias"] < 0.6  # all of one label, nothing of the other


def test_command_line(unskew, tmp_path):
    save(tmp_path / "photos", "size")
    done = unskew("audit", "photos", "--out", "o")
    assert done.stdout.startswith("Shortcut: the class shows in the picture's size in pixels and its aspect:")
    assert "page: " in done.stdout
    assert json.loads(unskew("audit", "photos", "--out", "o", "--json").stdout)["representations"][0]["verdict"] == "shortcut"
    shutil.rmtree(tmp_path / "o")


@pytest.mark.parametrize(
    ("prepare", "words", "expected"),
    [
        (lambda r: np.savez(r / "a.npz", x=np.full((40, 2), np.nan), y=[0, 1] * 20), ["a.npz"], "NaN or infinity"),
        (
            lambda r: np.savez(r / "a.npz", x=np.random.rand(6, 2), y=np.arange(6)),
            ["a.npz"],
            "fewer than two classes have at least 5 rows",
        ),
        (lambda r: np.savez(r / "a.npz", x=np.random.rand(40, 2), y=[1] * 40), ["a.npz"], "only one class"),
        (lambda r: None, ["planted", "--representation", "colour"], "no representation 'colour'; did you mean 'color'"),
        (lambda r: None, ["planted", "--representation", "color"], "are not images"),
        (lambda r: None, ["planted", "--bias", "nosuch"], "no bias column 'nosuch'"),
    ],
)
def test_bad_input(prepare, words, expected, unskew, tmp_path):
    prepare(tmp_path)
    done = unskew("audit", *words, "--out", "o", expect=2)
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "o").exists()


def test_columns_that_cannot_be_measured_say_why(tmp_path):
    y = np.array([0, 1] * 40)
    np.savez(tmp_path / "a.npz", x=np.random.rand(80, 2), y=y, same=np.zeros(80, int), rare=np.array([1] * 3 + [0] * 77))
    found = package.audit(tmp_path / "a.npz", bias=["same", "rare"], out=tmp_path / "o", attack=QUICK).json()
    reasons = {c["name"]: c["leakage_reason"] for c in found["columns"]}
    assert "has only one value" in reasons["same"]
    assert "too few to balance" in reasons["rare"]


def test_a_folder_with_the_same_names_and_sizes_is_another_folder(tmp_path):
    rng = np.random.default_rng(0)
    for root in ("told", "noise"):
        for k, name in enumerate(("a", "b")):
            (tmp_path / root / name).mkdir(parents=True)
            for i in range(20):
                level = 100 + 100 * k if root == "told" else rng.integers(0, 255, (16, 16, 3))
                Image.fromarray(np.full((16, 16, 3), level, np.uint8)).save(tmp_path / root / name / f"{i}.bmp")
    told, noise = (
        package.audit(tmp_path / r, representations=["color:kind=mean"], out=tmp_path / f"o-{r}").json()
        for r in ("told", "noise")
    )
    assert told["representations"][0]["bias"] > 0.9
    assert noise["representations"][0]["bias"] < 0.3


def test_a_changed_column_is_read_again(tmp_path):
    save(tmp_path / "photos", n=20)
    paths, label = [f"{c}/{k}.jpg" for c in ("cat", "dog") for k in range(20)], ["cat"] * 20 + ["dog"] * 20
    found = []
    for k, site in enumerate((label, ["x", "y"] * 20)):
        pl.DataFrame({"path": paths, "label": label, "site": site}).write_csv(tmp_path / "photos" / "t.csv")
        found.append(
            package.audit(tmp_path / "photos" / "t.csv", representations=["column:name=site"], out=tmp_path / f"o{k}").json()
        )
    assert found[0]["representations"][0]["bias"] > 0.9
    assert found[1]["representations"][0]["bias"] < 0.1


def test_undecodable_rows_and_a_partly_filled_cache(tmp_path):
    root = save(tmp_path / "photos", n=30)
    whole = (root / "cat" / "3.jpg").read_bytes()
    (root / "cat" / "3.jpg").write_bytes(whole[: len(whole) // 2])
    for k, names in enumerate((["file"], ["file", "color", "color", "color:kind=max"])):
        found = package.audit(root, settings={"data.max_bad": 0.1}, representations=names, out=tmp_path / f"o{k}").json()
    assert len(found["representations"]) == 2  # named twice, measured once
    assert found["rows"] == 59
    assert found["left_out"]["unreadable"] == 1


def test_the_next_commands_read_what_was_read(unskew, tmp_path):
    """A table needs its columns named, and a path its quotes; a rare class is not a bad file."""
    root = save(tmp_path / "my photos", "border", n=30)
    (root / "owl").mkdir()
    shutil.copy(root / "cat" / "0.jpg", root / "owl" / "0.jpg")
    rows = [
        (str(p.relative_to(root)), p.parent.name, "day" if i % 3 else "night") for i, p in enumerate(sorted(root.rglob("*.jpg")))
    ]
    pl.DataFrame(rows, schema=["path", "species", "time"], orient="row").write_csv(root / "list.csv")
    words = ("--label", "species", "--bias", "time", "--representation", "crop:where=border", "data.size=16")
    told = unskew("audit", root / "list.csv", *words, "--out", "o").stdout
    found = json.loads((tmp_path / "o" / "audit.json").read_text())
    assert found["left_out"]["classes"] == ["owl"]
    assert found["left_out"]["unreadable"] == 0
    assert "left out: classes with fewer than five rows: owl" in told
    reading = ["--label", "species", "--bias", "time", "data.size=16"]
    trained = [shlex.split(n["command"]) for n in found["next"] if n["command"].startswith("unskew train")]
    assert len(trained) == 2  # plain and balanced: with this few rows no trial supports a remedy
    assert all(line[2:8] == [str(root / "list.csv"), *reading] for line in trained)
    named = [*reading, "--with", "repair", "phi=crop:where=border", "epochs=2", "strategy=class_rank"]
    unskew("repair", root / "list.csv", *named, "--force", "--out", "weights.parquet")
    after = json.loads((tmp_path / "weights.json").read_text())["next"]
    assert shlex.split(after)[2:] == [str(root / "list.csv"), *reading, "--weights", "weights.parquet", "--out", "repaired"]
    assert after in html.unescape((tmp_path / "weights.html").read_text())
    unskew(*shlex.split(after)[1:], "train.steps=2")


def test_near_duplicates_are_listed_with_their_labels(tmp_path):
    root = save(tmp_path / "photos", n=30)
    rng = np.random.default_rng(1)
    for k in range(3):  # one pair of equal labels, two that disagree
        picture = Image.fromarray(np.kron(rng.integers(0, 255, (8, 8, 3), dtype=np.uint8), np.ones((8, 8, 1), np.uint8)))
        picture.save(root / "cat" / f"twin{k}.png")
        picture.save(root / ("cat" if k == 0 else "dog") / f"again{k}.jpg", quality=85)
    found = package.audit(root, representations=["color"], out=tmp_path / "out")
    assert found.json()["duplicates"] == {"sets": 3, "rows": 6, "disagreeing": 2, "crossing": 0}
    there = pl.read_parquet(tmp_path / "out" / "scores.parquet").with_columns(
        pl.col("path").str.extract(r"(\w+\.\w+)$").alias("file")
    )
    mine = {r["file"]: r for r in there.to_dicts() if r["duplicate_of"] is not None}
    assert set(mine) == {f"{name}{k}.{end}" for k in range(3) for name, end in (("twin", "png"), ("again", "jpg"))}
    assert {name: r["duplicate_disagrees"] for name, r in mine.items()} == {name: "0" not in name for name in mine}
    for k in range(3):
        pair = [mine[f"twin{k}.png"], mine[f"again{k}.jpg"]]
        assert {r["duplicate_of"] for r in pair} == {min(r["index"] for r in pair)}
    said = "6 rows in 3 sets of near-duplicate images, 2 with labels that disagree"
    assert said in (tmp_path / "out" / "audit.html").read_text()
    again = package.audit(root, representations=["color"], out=tmp_path / "out")
    assert again.duplicates == found.duplicates
    old = json.loads((tmp_path / "out" / "audit.json").read_text())
    del old["duplicates"]  # as version 0.2 wrote it
    (tmp_path / "out" / "audit.json").write_text(json.dumps(old))
    assert package.audit(root, representations=["color"], out=tmp_path / "out").duplicates is None


def labels_alone(root, **columns):
    """300 of 400 women and 100 of 400 men have y = 1."""
    y = [1] * 300 + [0] * 100 + [1] * 100 + [0] * 300
    path = root / "table.csv"
    pl.DataFrame({"y": y, "gender": ["w"] * 400 + ["m"] * 400, **columns}).write_csv(path)
    return path


def test_a_table_without_inputs_is_audited_and_nothing_else(unskew, tmp_path):
    labels_alone(tmp_path)
    told = unskew("audit", "table.csv", "--label", "y", "--bias", "gender", "--out", "o")
    found = json.loads((tmp_path / "o" / "audit.json").read_text())
    column = found["columns"][0]
    assert column["leakage"]["attacker"] == "table"
    assert column["leakage"]["dataset"] == pytest.approx(0.75, abs=0.01)
    # 1 - H(1/4) / H(1/2) of the label, in bits: 1 - 0.8113.
    assert column["association"]["share"] == pytest.approx(0.1887, abs=0.01)
    assert [r["name"] for r in found["representations"]] == ["column:name=gender"]
    assert found["next"] == []
    assert "leakage 75.0 %" in told.stdout
    assert "next:" not in told.stdout
    page = (tmp_path / "o" / "audit.html").read_text()
    assert "the table has no inputs" in page
    assert "from the counts" in page
    assert "What to do" not in page
    for verb, out in (("train", "x"), ("repair", "x.parquet")):
        done = unskew(verb, "table.csv", "--label", "y", "--bias", "gender", "--out", out, expect=2)
        assert "no path column" in done.stderr
        assert "can only be audited" in done.stderr
        assert done.stderr.count("\n") == 1


def test_leakage_between_the_tables_own_splits_and_folded(unskew, tmp_path):
    # Train and val as above; in the test split women and men have changed places: the look-up is right in a quarter of its rows.
    path = labels_alone(tmp_path)
    frame = pl.read_csv(path).with_columns(split=pl.Series(["train", "val", "train", "train"] * 200))
    swapped = frame.with_columns(
        gender=pl.when(pl.col("gender") == "w").then(pl.lit("m")).otherwise(pl.lit("w")), split=pl.lit("test")
    )
    pl.concat([frame, swapped]).write_csv(path)
    words = ("audit", "table.csv", "--label", "y", "--bias", "gender", "--fit-on", "train", "--json")
    leak = json.loads(unskew(*words, "--out", "a").stdout)["columns"][0]["leakage"]
    assert leak["dataset"] == pytest.approx(0.25, abs=1e-6)
    assert leak["fit_on"] == "train"
    assert "fit_on is train there and judged here" in unskew(*words[:-3], "--out", "a", expect=2).stderr
    assert "folded" in unskew(*words, "--protocol", "folded", "--out", "b", expect=2).stderr
    quick = dataclasses.replace(QUICK, protocol="code")
    found = package.audit(path, bias=["gender"], settings={"label": "y"}, attack=quick, fit_on="train", out=tmp_path / "c")
    assert found.columns[0].leakage.protocol == "code"
    assert found.columns[0].leakage.dataset == pytest.approx(0.75, abs=0.03)  # 0.5 + |0.25 - 0.5|, by networks
    assert "folded about one half" in found.page.read_text()


def test_labels_alone_with_no_column_to_look_at(tmp_path):
    pl.DataFrame({"y": [0, 1] * 40}).write_csv(tmp_path / "t.csv")
    with pytest.raises(UserError, match="labels alone; name a column with --bias"):
        package.audit(tmp_path / "t.csv", out=tmp_path / "o")
    frame = pl.DataFrame({"y": ["a", "b"] * 40, "site": ["u", "u", "v", "v"] * 20})
    assert not package.load(frame).has_inputs
    found = package.audit(frame, bias=["site"], out=tmp_path / "f")
    assert found.columns[0].leakage.dataset == 0.5


def test_what_is_expected_is_no_question_and_is_remembered(unskew, tmp_path):
    """Class and brightness go together: asked about, answered, and not asked again, by any later audit of the same pictures."""
    rng = np.random.default_rng(0)
    for k, name in enumerate(("day", "night")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(60):
            picture = np.clip(rng.normal(150 - 60 * k, 25, (24, 24, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(picture).save(tmp_path / "photos" / name / f"{i}.png")
    words = ("audit", "photos", "--representation", "color:kind=mean", "--no-trial")
    asked = unskew(*words, "--out", "o").stdout
    assert asked.startswith("Shortcut or signal? The class shows in the mean colour")
    assert "--expect color:kind=mean" in asked
    assert "--expect rotation: no such representation" in unskew(*words, "--expect", "rotation", "--out", "o", expect=2).stderr
    answered = json.loads(unskew(*words, "--expect", "mean colour", "--out", "o", "--json").stdout)
    assert answered["representations"][0]["verdict"] == "readable"
    assert answered["questions"] == []
    assert answered["verdict"].startswith("The only probe found no shortcut")
    again = json.loads(unskew(*words, "--out", "elsewhere", "--json").stdout)
    assert again["expected"] == ["color:kind=mean"]
    assert again["questions"] == []


def test_at_full_alignment_weighting_is_not_offered(tmp_path):
    found = package.audit(save(tmp_path / "photos", "size"), representations=["dimensions"], out=tmp_path / "o")
    assert found.findings[0].contradicting == 0
    assert "No row lacks it, so no weighting of the rows can help" in found.verdict


def test_a_finished_audit_of_an_earlier_version_is_recognised_by_its_columns(tmp_path):
    frame = pl.DataFrame({"label": ["a", "b"] * 60, "place": ["x", "y", "y"] * 40})
    frame.write_csv(tmp_path / "rows.csv")
    asked = {"bias": ["place"], "out": tmp_path / "out", "attack": QUICK}
    first = package.audit(tmp_path / "rows.csv", **asked).json()
    there = json.loads((tmp_path / "out" / "audit.json").read_text())
    # As version 0.3 wrote it: the Python representation of the column that is read, then of the codes of the bias.
    text = repr(frame["place"].to_list()) + repr([[{"x": 0, "y": 1}[v]] for v in frame["place"]])
    there["identity"]["columns"] = hashlib.sha256(text.encode()).hexdigest()[:16]
    assert there["identity"]["columns"] != first["identity"]["columns"]
    (tmp_path / "out" / "audit.json").write_text(json.dumps(there))
    page = (tmp_path / "out" / "audit.html").stat().st_mtime_ns
    assert package.audit(tmp_path / "rows.csv", **asked).json()["verdict"] == first["verdict"]
    assert (tmp_path / "out" / "audit.html").stat().st_mtime_ns == page  # nothing was done again
    there["identity"]["columns"] = "0" * 16
    (tmp_path / "out" / "audit.json").write_text(json.dumps(there))
    with pytest.raises(UserError, match="holds another audit"):
        package.audit(tmp_path / "rows.csv", **asked)


def test_probes_that_compare_rows_run_at_any_size_and_say_what_they_learnt_from(tmp_path, monkeypatch):
    g = np.random.default_rng(0)
    y = np.arange(240) % 2
    x = np.full((240, 70, 70, 3), 90, dtype=np.uint8) + g.integers(0, 3, (240, 70, 70, 3), dtype=np.uint8)
    x[y == 1, 20, 30] = 255  # a hot pixel in every picture of one class
    name = "sensor:kind=pixels"
    whole = package.audit((x, y), out=tmp_path / "whole", representations=[name], slices=0, trial=False).findings[0]
    assert "learnt" not in whole.note
    monkeypatch.setattr(features, "SAMPLED", 120)
    some = package.audit((x, y), out=tmp_path / "some", representations=[name], slices=0, trial=False).findings[0]
    assert "learnt from 120 of" in some.note
    assert some.bias == whole.bias > 0.9  # the pixel is found in the sample as in all rows
