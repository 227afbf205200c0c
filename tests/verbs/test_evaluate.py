"""Judging elsewhere: other sources, other folders, several bias columns, data from Python."""

import json

import numpy as np
import polars as pl
import pytest
import torch

import unskew as package
from unskew.core.errors import UserError
from unskew.core.files import plain
from unskew.pages.text import group_table
from unskew.records import Table, TableFile, growing, table
from unskew.training import answers, predict, trained
from unskew.verbs.evaluate import recall

QUICK = {"train.epochs": 15, "optim.lr": 0.01}


def write(path, n=400, flip=False, classes=("a", "b"), split=None, seed=0, bias=True):
    """x = (weak signal, strong bias); the bias agrees with the class in 90 % of rows, or in 10 % if flipped."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, len(classes), n)
    b = np.where(rng.random(n) < (0.1 if flip else 0.9), y, 1 - y)
    x = np.stack([y + 0.9 * rng.standard_normal(n), 3 * b + 0.1 * rng.standard_normal(n)], 1)
    columns = {"site": np.array(["p", "q"])[b]} if bias else {}
    np.savez(path, x=x, y=np.array(classes)[y], **columns, **({"split": np.array([split] * n)} if split else {}))
    return path


def nearly(content):
    """A JSON document to compare with, whose numbers may be rounded differently."""
    if isinstance(content, dict):
        return {key: nearly(one) for key, one in content.items()}
    if isinstance(content, list):
        return [nearly(one) for one in content]
    return pytest.approx(content, rel=1e-5, abs=1e-6) if isinstance(content, float) else content


@pytest.fixture
def run(tmp_path):
    return package.train(str(write(tmp_path / "d.npz", 2000)), out=tmp_path / "r", settings=QUICK | {"data.bias": "site"})


def test_another_source_is_judged_whole_and_by_the_alignment_of_training(run, tmp_path):
    own = package.evaluate(run).groups
    other = package.evaluate(run, str(write(tmp_path / "o.npz", 300, flip=True, seed=5))).groups
    assert other.plain.n == 300  # no splits of its own: all rows are new to the model
    # In the other set the bias mostly points away; what counts as aligned is still what training taught.
    assert other.aligned.n < 60
    assert other.aligned.value > other.conflicting.value
    assert own.aligned.value == pytest.approx(other.aligned.value, abs=0.1)
    only_test = package.evaluate(run, str(write(tmp_path / "t.npz", 200, split="test", seed=6))).groups
    assert only_test.plain.n == 200


def test_another_source_may_lack_the_bias_and_some_classes_but_not_add_any(run, tmp_path):
    found = package.evaluate(run, str(write(tmp_path / "n.npz", 100, bias=False))).groups
    assert found.bias_names == ()
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "one.npz", x=rng.random((50, 2)), y=np.array(["b"] * 49 + ["a"]))
    assert package.evaluate(run, str(tmp_path / "one.npz")).groups.plain.n == 50
    with pytest.raises(UserError, match="class 'z', which the run does not know"):
        package.evaluate(run, str(write(tmp_path / "z.npz", 100, classes=("b", "z"))))


def test_a_run_can_be_judged_from_another_folder_and_by_a_relative_path(tmp_path, unskew):
    write(tmp_path / "d.npz")
    unskew("train", "d.npz", "--bias", "site", "train.epochs=1", "--out", "r")
    (tmp_path / "sub").mkdir()
    assert json.loads(unskew("evaluate", "../r", "--json", cwd=tmp_path / "sub").stdout)["bias_columns"] == ["site"]
    unskew("train", tmp_path / "d.npz", "--bias", "site", "train.epochs=1", "--out", "../r", cwd=tmp_path / "sub")  # the same run


def test_a_run_folder_does_not_get_in_the_way_of_its_source(tmp_path, unskew, folder):
    unskew("train", "toy", "train.epochs=1", "--out", "toy")
    unskew("evaluate", "toy")
    unskew("train", ".", "train.epochs=1", "--model", "mlp", "--out", "run", cwd=folder)
    unskew("evaluate", "run", cwd=folder)


def test_several_bias_columns_each_get_a_table(tmp_path):
    write(tmp_path / "d.npz", 1500)
    arrays = dict(np.load(tmp_path / "d.npz"))
    np.savez(tmp_path / "d.npz", **arrays, camera=np.random.default_rng(1).integers(0, 3, 1500))
    run = package.train(str(tmp_path / "d.npz"), out=tmp_path / "r", settings=QUICK | {"data.bias": "site,camera"})
    found = package.evaluate(run)
    assert set(found.by_bias) == {"site", "camera"}
    assert found.by_bias["site"].aligned.value > found.by_bias["site"].conflicting.value + 0.1
    page = package.report(run, tmp_path / "p.html").read_text()
    assert page.count('class="heat"') == 2


def test_data_from_python_is_judged_when_given_again(tmp_path):
    class Rows:
        def __len__(self):
            return 60

        def __getitem__(self, k):
            return np.array([k % 2, k / 60], dtype=np.float32), k % 2, k % 3

    run = package.train(Rows(), out=tmp_path / "r", settings={"train.epochs": 2})
    with pytest.raises(UserError, match="trained on data passed from Python"):
        package.evaluate(run)
    assert package.evaluate(run, Rows()).groups.bias_names == ("bias",)
    package.report(run, tmp_path / "p.html", on=Rows())
    data = package.load(str(write(tmp_path / "d.npz")), bias="site")
    kept = package.train(data, out=tmp_path / "k", settings={"train.epochs": 1})
    assert package.evaluate(kept).groups.bias_names == ("site",)


def test_training_rows_are_judged_beside_the_test_rows(run, tmp_path):
    found = package.evaluate(run)
    data = package.load(str(tmp_path / "d.npz"), bias="site")
    train = found.train
    assert train.rows == train.of == len(data.rows("train"))
    # The same as judging the split train, which is a path of its own.
    split = package.evaluate(run, split="train")
    assert train.groups.json() == split.groups.json()
    assert split.json()["train"] == {"reason": "the rows judged are the training rows"}
    said = found.json()
    assert said["train"]["conflicting"] == split.groups.conflicting.value
    assert (said["train"]["predicted_rows"], said["train"]["trained_rows"]) == (train.rows, train.of)
    assert sum(said["predicted"].values()) == found.groups.plain.n
    assert said["verdict"] == {"kind": "takes-shortcut", "sentence": found.verdict.sentence, "kinds": ["takes-shortcut"]}
    assert said["aligned_in_words"]["site"].endswith("common case of their class: a-p, b-q; conflicting: the others")


def test_more_training_rows_than_needed_are_sampled_and_rows_of_weight_zero_left_out(tmp_path, monkeypatch):
    source = str(write(tmp_path / "d.npz", 600))
    data = package.load(source, bias="site")
    kept = data.rows("train")[:100]
    table = Table(pl.DataFrame({"index": kept.numpy(), "weight": np.ones(100)}), {"use": "keep"})
    run = package.train(source, out=tmp_path / "r", weights=table, settings=QUICK | {"data.bias": "site"})
    found = package.evaluate(run)
    assert (found.train.rows, found.train.of) == (100, 100)
    assert Table.read(run.path / "predictions" / "trained.parquet").index.tolist() == kept.tolist()
    (run.path / "predictions" / "trained.parquet").unlink()
    for name in ("MOST", "LEAST"):
        monkeypatch.setattr(trained, name, 40)
    few = package.evaluate(run)
    assert (few.train.rows, few.train.of) == (40, 100)
    assert package.evaluate(run).train == few.train  # the sample is the same each time
    assert "a random sample of 40 of the 100 rows it was trained on" in group_table(few)
    (run.path / "trained.parquet").unlink()  # as a run of version 0.2
    assert "does not say which ones" in package.evaluate(run).train.note


def test_another_source_has_the_training_rows_of_the_run_beside_it(run, tmp_path):
    other = package.evaluate(run, str(write(tmp_path / "o.npz", 300, seed=5)))
    assert other.train.groups == package.evaluate(run).train.groups
    (tmp_path / "d.npz").unlink()
    gone = package.evaluate(run, str(tmp_path / "o.npz"))
    assert gone.train.groups is None
    assert "d.npz" in gone.train.reason
    assert "train: not judged (" in group_table(gone)


def test_error_rates_and_calibration_are_in_the_json_by_bias_value(run):
    found = package.evaluate(run)
    rates = found.json()["rates_by_bias"]["site"]
    # With two classes, the true-positive rate of a class at a value is the accuracy of that group.
    for g in found.json()["groups"]:
        rate = rates["classes"][g["y"]]["true_positive_rate"][g["bias"]]
        assert (rate["value"], rate["low"], rate["high"], rate["n"]) == (g["accuracy"], g["low"], g["high"], g["n"])
    assert set(rates["calibration"]) == {"p", "q"}
    text = group_table(found)
    assert "error rates by site, largest gaps" in text
    assert "calibration error" in text


def test_labels_have_error_rates_too(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.random((400, 4)).astype(np.float32)
    labels = {f"l{k}": (x[:, k] > 0.5).astype(int) for k in range(2)}
    np.savez(tmp_path / "d.npz", x=x, site=np.array(["p", "q"])[rng.integers(0, 2, 400)], **labels)
    run = package.train(
        str(tmp_path / "d.npz"), model="mlp", out=tmp_path / "r", settings=QUICK | {"data.label": "l0,l1", "data.bias": "site"}
    )
    found = package.evaluate(run)
    assert found.verdict.kind == "multi-label"
    per_label = {row["label"]: row["by_bias"]["site"] for row in found.label_figures.per_label}
    for label, rates in found.rates_by_bias["site"].classes.items():
        for value in ("p", "q"):
            assert rates.true_positive_rate[value].value == pytest.approx(per_label[label][value]["recall"])
            assert rates.false_positive_rate[value].value == pytest.approx(per_label[label][value]["false_alarms"])
    assert "Error rates by site" in package.report(run, tmp_path / "p.html").read_text()


def test_a_run_that_knows_its_rows_by_heart_is_called_so(tmp_path):
    """Labels drawn by lot in 60 dimensions: 80 rows can be learnt, and nothing about them holds for others."""
    rng = np.random.default_rng(0)
    split = np.array(["train"] * 80 + ["val"] * 20 + ["test"] * 300)
    np.savez(tmp_path / "d.npz", x=rng.standard_normal((400, 60)), y=np.array(["a", "b"])[rng.integers(0, 2, 400)], split=split)
    settings = {"train.epochs": 100, "optim.lr": 0.01}
    run = package.train(str(tmp_path / "d.npz"), model="mlp", out=tmp_path / "r", settings=settings)
    found = package.evaluate(run)
    assert found.train.groups.plain.value > 0.95
    assert found.verdict.kinds == ("memorised", "no-bias-column")
    assert "worst class: " in found.verdict.sentence
    assert found.verdict.sentence in package.report(run, tmp_path / "p.html").read_text()


def test_a_class_without_an_aligned_pair_is_neither_here_and_elsewhere(tmp_path):
    """Of cats 75 % are indoors, of dogs 85 %: no cat is aligned, and the run remembers it for other data."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 400)
    place = np.concatenate([np.repeat([0, 1], [300, 100]), np.repeat([0, 1], [340, 60])])
    split = np.where(np.arange(800) % 4 < 2, "train", np.where(np.arange(800) % 4 == 2, "val", "test"))
    columns = {"y": np.array(["cat", "dog"])[y], "place": np.array(["in", "out"])[place]}
    np.savez(tmp_path / "d.npz", x=rng.random((800, 3)) + y[:, None], split=split, **columns)
    np.savez(tmp_path / "o.npz", x=rng.random((800, 3)) + y[:, None], **columns)
    run = package.train(str(tmp_path / "d.npz"), out=tmp_path / "r", settings={"train.epochs": 2, "data.bias": "place"})
    assert run.config["alignment"]["pairs"] == {"place": [["dog", "in"]]}
    assert run.config["alignment"]["neither"] == {"place": [["cat", "in"], ["cat", "out"]]}
    for found in (package.evaluate(run), package.evaluate(run, str(tmp_path / "o.npz"))):
        kinds = {(g["y"], g["bias"]): g["aligned"] for g in found.json()["groups"]}
        assert kinds == {("cat", "in"): None, ("cat", "out"): None, ("dog", "in"): True, ("dog", "out"): False}
        assert "neither: all rows of class cat" in found.aligned_in_words["place"]
        assert "common case of their class" in found.aligned_in_words["place"]
        assert "  neither" in group_table(found)
    page = package.report(run, tmp_path / "p.html").read_text()
    assert "<td>neither" in page
    assert "neither: all rows of class cat" in page


@pytest.mark.parametrize("several", [False, True])
def test_rows_that_are_not_held_are_judged_as_those_that_are(several, tmp_path, monkeypatch):
    source, settings = write(tmp_path / "d.npz", 2000), QUICK | {"data.bias": "site"}
    if several:
        columns = dict(np.load(source))
        labels = np.stack([columns["y"] == "a", columns["x"][:, 0] > 1], 1).astype(int)
        np.savez(source, x=columns["x"], y=labels, site=columns["site"])
    run = package.train(str(source), out=tmp_path / "r", settings=settings)
    held = package.evaluate(run)
    monkeypatch.setattr(table, "LARGE", 100)
    monkeypatch.setattr(table, "SHARD", 70)
    monkeypatch.setattr(growing, "NUMBERS", 400)
    monkeypatch.setattr(answers, "HELD", 100)
    monkeypatch.setattr(predict, "BATCH", 16)
    monkeypatch.setattr(predict, "TOGETHER", 2)
    streamed = package.evaluate(run)
    assert isinstance(streamed.predictions, TableFile)
    assert len(list((run.path / "predictions" / "test.parquet").glob("part-*"))) > 2
    assert streamed.predictions.frame.drop("logits").equals(held.predictions.frame.drop("logits"))
    # In batches of another size, some processors add up in another order.
    logits = [predictions.column("logits") for predictions in (streamed.predictions, held.predictions)]
    torch.testing.assert_close(*logits, rtol=1e-5, atol=1e-6)
    assert plain(streamed.json()) == nearly(plain(held.json()))
    assert plain(recall(run).json()) == plain(streamed.json())
    package.report(run, tmp_path / "page.html")
    assert run.predictions.filter(split="test").height == len(held.predictions)
    monkeypatch.undo()
    assert package.evaluate(run).json()["plain"] == held.json()["plain"]
    assert (run.path / "predictions" / "test.parquet").is_file()  # takes the place of the parts
