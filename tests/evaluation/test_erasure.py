"""A run judged with its bias erased: linear readers fall to chance, the numbers are those of the layer by hand, and refusals."""

import json

import numpy as np
import pytest

import unskew as package
from unskew.core.errors import UserError
from unskew.evaluation._contract import embed
from unskew.pages.text import group_table
from unskew.training.finished import open_run
from unskew.training.predict import predict

SOURCE = "tiles:base=digits,rows=1500,ratio=4"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    settings = {"train.batch": "64", "model.dropout": "0", "optim.lr": "0.01", "train.epochs": "4"}
    return package.train(
        SOURCE, model="mlp", out=tmp_path_factory.mktemp("runs") / "run", settings=settings | {"model.hidden": "40"}
    )


def test_linear_readers_fall_to_chance_and_splince_keeps_the_task(run):
    found = {kind: package.evaluate(run, erase=kind) for kind in ("leace", "splince")}
    for kind, evaluation in found.items():
        record = evaluation.metrics["erasure"]
        (reading,) = record["readings"]
        assert record["kind"] == kind
        assert record["removed"] == 1
        assert reading["before"][1] > 0.6  # the network knows the person
        assert reading["after"][1] < 0.5  # chance is not below the interval
        assert reading["fresh"][0] < 0.5 * (
            0.5 + reading["before"][0]
        )  # fitted on few rows, the eraser leaves a little elsewhere
        assert f"erased by {kind}" in group_table(evaluation)
    page = package.report([run.path], run.path.with_name("page.html")).read_text()
    assert "linear readers of person" in page
    leace, splince = (found[k].metrics["erasure"] for k in ("leace", "splince"))
    assert splince["kept"] == 8
    assert splince["f1"] >= leace["f1"] - 0.01
    assert json.loads((run.path / "metrics-test.json").read_text())["erasure"]["kind"] == "splince"


def test_the_figures_by_hand(run):
    # One binary concept: subtract the regression of h on the direction S = mean(h | 1) - mean(h | 0), in the metric of the covariance.
    record = package.evaluate(run, erase="leace").metrics["erasure"]
    method, data = open_run(run)
    rows = data.rows("train")
    index, logits = predict(method, data, rows)
    h = embed(method, data, index, logits).h.double().numpy()
    person = data.bias[index, 0].numpy()
    s = h[person == 1].mean(0) - h[person == 0].mean(0)
    inverse = np.linalg.pinv(np.cov(h.T, bias=True), rcond=1e-8, hermitian=True)
    test, test_logits = predict(method, data, data.rows("test"))
    t = embed(method, data, test, test_logits).h.double().numpy()
    erased = t - np.outer((t - h.mean(0)) @ inverse @ s, s) / (s @ inverse @ s)
    w, b = (p.detach().double().numpy() for p in (method.model.output.weight, method.model.output.bias))
    right = ((erased @ w.T + b > 0) == (data.y[test].numpy() > 0)).mean()
    assert record["accuracy"] == pytest.approx(right, abs=2e-3)
    assert record["rows"] == len(index)


def test_refusals(run, tmp_path):
    with pytest.raises(UserError, match="must be one of leace, splince"):
        package.evaluate(run, erase="lease")
    plain = package.train("digits", model="mlp", out=tmp_path / "plain", settings={"train.steps": 2})
    with pytest.raises(UserError, match="--erase needs a bias column"):
        package.evaluate(plain, erase="leace")
