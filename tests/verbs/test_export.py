"""`export`: the written network predicts as the run does, cards say what was measured, tables open elsewhere."""

import json
import os
import shutil
import stat
import warnings

import polars as pl
import pytest
import torch

import unskew
from unskew.core.errors import UserError
from unskew.pages.cards import _text
from unskew.training.finished import trained_method
from unskew.verbs.export import export

SOURCE = "colored-mnist:base=digits,digits=3,5,8,ratio=0.9"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return unskew.train(SOURCE, "lff", model="convnet1", out=tmp_path_factory.mktemp("runs") / "run", settings={"train.steps": 4})


@pytest.fixture(scope="module")
def audit(tmp_path_factory):
    return unskew.audit(SOURCE, out=tmp_path_factory.mktemp("audits") / "audit", trial=False, slices=0).page.parent


def test_torchscript_predicts_as_the_run_does(run, tmp_path):
    written = export(run, "torchscript", tmp_path / "out")
    assert written.files == ("README.md", "model.pt", "network.json")
    x = torch.rand(5, *run.config["data"]["shape"])
    with torch.no_grad():
        expected = trained_method(run).predict(x)
    torch.testing.assert_close(torch.jit.load(str(tmp_path / "out" / "model.pt"))(x), expected, rtol=1e-4, atol=1e-5)


def test_onnx_predicts_as_the_run_does_for_any_number_of_rows(run, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    export(run, "onnx", tmp_path / "out")
    session = onnxruntime.InferenceSession(str(tmp_path / "out" / "model.onnx"), providers=["CPUExecutionProvider"])
    for rows in (1, 7):
        x = torch.rand(rows, *run.config["data"]["shape"])
        with torch.no_grad():
            expected = trained_method(run).predict(x)
        torch.testing.assert_close(torch.from_numpy(session.run(None, {"input": x.numpy()})[0]), expected, rtol=1e-3, atol=1e-4)


def test_safetensors_hold_only_the_network_that_predicts(run, tmp_path):
    from safetensors.torch import load_file

    export(run, "safetensors", tmp_path / "out")
    weights, method = load_file(tmp_path / "out" / "model.safetensors"), trained_method(run)
    assert set(weights) == set(method.model.state_dict())  # lff's second network stays behind
    assert len(weights) < len(method.state_dict())
    assert json.loads((tmp_path / "out" / "network.json").read_text())["output"]["logits"] == ["3", "5", "8"]


def test_the_model_card_has_every_group(run, tmp_path):
    export(run, "safetensors", tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    groups = unskew.evaluate(run).json()["groups"]
    assert card.count("\n| 3 |") + card.count("\n| 5 |") + card.count("\n| 8 |") == len([g for g in groups if g["n"]])
    assert "## Limits" in card
    assert "color" in card


def test_a_croissant_file_opens_in_mlcroissant(audit, tmp_path):
    written = export(audit, "croissant", tmp_path / "out")
    assert "croissant.json" in written.files
    described = json.loads((tmp_path / "out" / "croissant.json").read_text())
    rows = pl.read_parquet(tmp_path / "out" / "rows.parquet")
    assert [f["name"] for f in described["recordSet"][0]["field"]] == rows.columns
    assert any("colour" in text for text in described["rai:dataBiases"])
    library = pytest.importorskip("mlcroissant")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = library.Dataset(str(tmp_path / "out" / "croissant.json"))
        first = next(iter(data.records("rows")))
    assert not data.metadata.ctx.issues.errors
    assert first["rows/label"].decode() in ("3", "5", "8")


def test_a_table_for_spotlight_has_splits_and_bias(audit, tmp_path):
    written = export(audit, "spotlight", tmp_path / "out")
    rows = pl.read_parquet(tmp_path / "out" / "rows.parquet")
    data = unskew.load(SOURCE)
    assert rows["split"].to_list() == [data.splits[int(data.split[k])] for k in rows["index"]]
    assert rows["color"].to_list() == [data.bias_values[0][int(data.bias[k, 0])] for k in rows["index"]]
    assert "no file to show" in written.note  # built-in digits lie in no files


def test_names_stay_in_their_cell():
    assert _text("a|b\n<script>`x`") == "a\\|b &lt;script>'x'"


def test_what_cannot_be_written_is_refused_and_leaves_nothing(run, audit, tmp_path):
    for what, form, message in (
        (run, "onx", "did you mean 'onnx'"),
        (audit, "onnx", "needs a run"),
        (run.path, "croissant", "needs the folder of an audit"),
        (tmp_path / "none", "onnx", "is not a run"),
    ):
        with pytest.raises(UserError, match=message):
            export(what, form, tmp_path / "out")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match="not an empty folder"):
        export(run, "safetensors", tmp_path / "full")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["full"]


def test_the_same_command_finds_its_result_and_another_is_refused(run, audit, tmp_path):
    written = export(run, "safetensors", tmp_path / "out")
    before = (tmp_path / "out" / "model.safetensors").stat().st_mtime_ns
    assert export(run.path, "safetensors", tmp_path / "out") == written
    assert (tmp_path / "out" / "model.safetensors").stat().st_mtime_ns == before
    with pytest.raises(UserError, match="form is safetensors there and torchscript here"):
        export(run, "torchscript", tmp_path / "out")
    with pytest.raises(UserError, match="holds another export"):
        export(audit, "spotlight", tmp_path / "out")
    (tmp_path / "out" / "export.json").write_text("{}")
    with pytest.raises(UserError, match=r"export\.json"):
        export(run, "safetensors", tmp_path / "out")


@pytest.mark.parametrize("key", ["verdict", "representations", "rows", "command", "columns"])
def test_an_audit_that_lacks_something_is_refused_and_nothing_is_left(audit, tmp_path, key):
    shutil.copytree(audit, tmp_path / "audit")
    found = json.loads((tmp_path / "audit" / "audit.json").read_text())
    del found[key]
    (tmp_path / "audit" / "audit.json").write_text(json.dumps(found))
    with pytest.raises(UserError, match=r"audit\.json is damaged"):
        export(tmp_path / "audit", "croissant", tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["audit"]


def test_data_that_changed_is_refused(audit, tmp_path):
    with pytest.raises(UserError, match="is not the data"):
        export(audit, "spotlight", tmp_path / "out", source="colored-mnist:base=digits,digits=3,5,8,ratio=0.8")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the administrator may write anywhere")
def test_a_folder_that_cannot_be_written_is_one_line(run, tmp_path):
    tmp_path.chmod(stat.S_IREAD | stat.S_IEXEC)
    with pytest.raises((UserError, OSError)):
        export(run, "safetensors", tmp_path / "out")
