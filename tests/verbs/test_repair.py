"""The verb repair: its table, its folders, its complaints, and the repairs that train a network."""

import json

import polars as pl
import pytest

import unskew as package
from unskew.core.errors import UserError
from unskew.core.files import machine
from unskew.parts.guards import Harm
from unskew.records import Table

SOURCE = "colored-mnist:base=digits,ratio=0.95"


def test_the_verb_writes_a_table_that_training_takes(unskew, tmp_path):
    told = json.loads(
        unskew(
            "repair", SOURCE, "--with", "repair", "lr_estimator=0.05", "strategy=sample", "--out", "w.parquet", "--json"
        ).stdout
    )
    assert told["bias_after"] < told["bias_before"]
    assert 0 < told["kept"] < told["rows"] == 1442  # train and val; the test split is the set's own and unbiased
    table = Table.read(tmp_path / "w.parquet")
    assert table.frame.columns == ["index", "label", "split", "weight", "keep", "score", "noisy"]
    assert table.made_by["fingerprint"] == package.load(SOURCE).fingerprint
    assert table.made_by["bias_before"] == told["bias_before"]
    assert int(table.frame["keep"].sum()) == told["kept"]
    again = unskew("repair", SOURCE, "--with", "repair", "lr_estimator=0.05", "strategy=sample", "--out", "w.parquet")
    assert "nothing to do" in again.stderr
    assert "choose another --out" in unskew("repair", SOURCE, "lr_estimator=0.06", "--out", "w.parquet", expect=2).stderr
    unskew("train", SOURCE, "--weights", "w.parquet", "train.epochs=1", "--out", "run")
    other = unskew("train", SOURCE + ",seed=1", "--weights", "w.parquet", "--out", "other", expect=2).stderr
    assert "made for another source" in other
    assert len(other.splitlines()) == 1
    assert not (tmp_path / "other").exists()
    assert "<svg" in (tmp_path / "w.html").read_text()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run", "w.html", "w.json", "w.parquet"]


def test_kept_images_as_folder_and_csv(unskew, folder, tmp_path):
    done = unskew("repair", folder, "--with", "repair", "epochs=3", "strategy=class_rank", "--as", "folder", "--out", "kept")
    assert "kept" in done.stdout
    links = [p for p in (tmp_path / "kept").rglob("*.png")]
    assert len(links) == 12
    assert all(p.is_symlink() and p.resolve().is_relative_to(folder.resolve()) for p in links)
    assert len(package.load(str(tmp_path / "kept"))) == 12  # a source again
    unskew("repair", folder, "--with", "repair", "epochs=3", "strategy=class_rank", "--as", "folder", "--copy", "--out", "copies")
    assert not any(p.is_symlink() for p in (tmp_path / "copies").rglob("*.png"))
    unskew("repair", folder, "--with", "inverse_frequency", "by=class", "--as", "csv", "--out", "w.csv")
    frame = pl.read_csv(tmp_path / "w.csv")
    assert {"index", "path", "weight", "keep"} <= set(frame.columns)
    assert "end in .csv" in unskew("repair", folder, "--as", "csv", "--out", "w.parquet", expect=2).stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--with", "repare"], "no repair 'repare'; did you mean 'repair'"),
        (["--with", "repair", "keeps=0.3"], "unknown setting 'keeps'"),
        (["--with", "repair", "train.epochs=3"], "trains no network"),
        (["--with", "repair", "strategy=threshold", "threshold=1.5", "epochs=1"], "threshold=1.5 drops all"),
        (["--with", "repair", "strategy=rank", "keep=0.001", "epochs=1"], "leaves no row of class"),
        (["--with", "repair", "phi=colour"], "no representation 'colour'"),
        (["--with", "balance", "alpha=0.5"], "must be at least 1"),
        (["--with", "gradients", "run=nowhere"], "is not a run"),
        (["--with", "gradients", "lambda_=-1"], "must not be negative"),
        (["--with", "aflite", "tau=0", "size=0.001", "slice=1", "phi=color", "models=2"], "leaves no row of class"),
        (["--splits", "holdout"], "no split 'holdout'"),
        (["--out", "weights.txt"], "end in .parquet"),
    ],
)
def test_bad_requests_are_told_in_one_line(unskew, tmp_path, words, told):
    done = unskew("repair", SOURCE, *words, expect=2)
    assert told in done.stderr
    assert len([line for line in done.stderr.splitlines() if line.startswith("unskew:")]) == 1
    assert "Traceback" not in done.stderr
    assert not [p for p in tmp_path.iterdir() if p.suffix in (".parquet", ".html", ".json")]


def test_what_cannot_be_decoded_is_dropped_and_counted(unskew, folder, tmp_path):
    (folder / "cat" / "3.png").write_bytes(b"no image")
    told = json.loads(
        unskew(
            "repair", folder, "data.max_bad=0.1", "--with", "inverse_frequency", "by=class", "--out", "w.parquet", "--json"
        ).stdout
    )
    assert told["unreadable"] == 1
    frame = Table.read(tmp_path / "w.parquet").frame
    broken = frame.filter(pl.col("path").str.ends_with("cat/3.png"))
    assert broken["weight"].to_list() == [0.0]
    assert frame["keep"].sum() == len(frame) - 1


def test_folders_of_classes_whose_names_collide_are_refused(unskew, folder, tmp_path):
    rows = [{"file_name": str(p), "label": ("a/b", "a_b")[k % 2]} for k, p in enumerate(sorted(folder.rglob("*.png")))]
    pl.DataFrame(rows).write_csv(tmp_path / "t.csv")
    told = unskew("repair", "t.csv", "--with", "inverse_frequency", "by=class", "--as", "folder", "--out", "f", expect=2).stderr
    assert "does not make a unique folder name" in told
    assert not (tmp_path / "f").exists()


def test_a_killed_folder_goes_on_and_leaves_nothing(unskew, folder, tmp_path, monkeypatch):
    words = {"out": tmp_path / "f", "how": "folder", "settings": {"epochs": 4, "strategy": "class_rank"}}
    monkeypatch.setattr("unskew.repairs.repair.SAVE_SECONDS", 0.0)
    monkeypatch.setattr("unskew.verbs.repair.write_images", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        package.repair(str(folder), "repair", **words)
    assert not (tmp_path / "f").exists()
    assert list(tmp_path.glob(".f.*.state"))
    (tmp_path / f".f.{machine()}-{2**22 + 1}.part").mkdir()  # as a killed process leaves it
    monkeypatch.undo()
    package.repair(str(folder), "repair", **words)
    assert {p.name for p in (tmp_path / "f").iterdir()} >= {"weights.parquet", "weights.json", "weights.html", "train"}
    assert not list(tmp_path.glob(".f.*"))


def test_network_repairs_through_the_command_line(unskew, tmp_path):
    source = "colored-mnist:base=digits,ratio=0.95,noise=0.05"
    small = ["train.epochs=3", "train.batch=64"]
    unskew("repair", source, "--with", "gradients", *small, "--out", "g.parquet")
    assert (tmp_path / "g-model" / "done.json").is_file()
    # The same network serves another setting of the scores, and other repairs.
    again = unskew("repair", source, "--with", "gradients", "lambda_=0", "run=g-model", *small, "--out", "g0.parquet")
    assert not (tmp_path / "g0-model").exists()
    assert again.stdout
    words = ["phi=color,texture", "models=4", "slice=0.2"]
    unskew("repair", source, "--with", "aflite", *words, "--out", "a.parquet")
    # So short a training tells little of the labels: with the usual factor some processors are left with an empty class.
    words = ["factor=4", "train.epochs=4", "--force"]
    done = unskew("repair", source, "--with", "denoise", *words, "--out", "d.parquet", "--json")
    assert '"noisy"' in done.stdout
    unskew("train", source, "--weights", "g.parquet", "train.weights=sampler", "train.epochs=1", "--out", "run")


def test_harmful_weights_are_refused_unless_forced(tmp_path, monkeypatch):
    words = {"out": tmp_path / "w.parquet", "settings": {"by": "class"}}
    monkeypatch.setattr("unskew.verbs.repair.harms", lambda *_: [Harm("rows", "9 effective rows are left of 900")])
    with pytest.raises(
        UserError, match=r"inverse_frequency would do harm: 9 effective rows are left of 900; no table was written"
    ):
        package.repair(SOURCE, "inverse_frequency", **words)
    assert not list(tmp_path.iterdir())
    found = package.repair(SOURCE, "inverse_frequency", force=True, **words)
    assert found.harms == ["9 effective rows are left of 900"]
    assert found.effective > 900
    assert "Forced: 9 effective rows are left of 900" in (tmp_path / "w.html").read_text()
    assert package.repair(SOURCE, "inverse_frequency", **words).harms == found.harms  # finished before, and said so
