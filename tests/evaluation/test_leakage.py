"""A multi-label run judged for leakage: noise on the embedding, balanced rows, calibration, page and text; and what is refused."""

import dataclasses
import json
import math

import numpy as np
import pytest
import torch

import unskew as package
from unskew.core.errors import UserError
from unskew.evaluation._contract import embed
from unskew.evaluation.leakage import Options, leakage_of, noisy_logits
from unskew.measure import Attack
from unskew.pages.charts import plane_points
from unskew.pages.text import group_table
from unskew.training.finished import open_run
from unskew.training.predict import predict

QUICK = Attack(rounds=2, hidden=16, lr=2e-3, epochs=4, min_steps=0, batch=128)
SOURCE = "tiles:base=digits,rows=1200,ratio=4"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    home = tmp_path_factory.mktemp("runs")
    common = {"train.batch": "64", "model.dropout": "0", "optim.lr": "0.01"}
    chosen = common | {"train.epochs": "12", "select.rule": "val-f1"}
    plain = package.train(SOURCE, model="convnet1", out=home / "plain", settings=chosen)
    masked = package.train(
        SOURCE,
        "adversarial",
        model="convnet1",
        out=home / "masked",
        settings=common | {"train.epochs": "1", "at": "image", "hidden": "8", "mask_channels": "4,8"},
    )
    return plain, masked


@pytest.fixture(scope="module")
def judged(runs):
    return package.evaluate(runs[0], leakage=True, attack=QUICK, noise=(0.5, 2.0), rba=0.05)


def test_the_embedding_is_what_the_head_sees_and_noise_grows(runs):
    method, data = open_run(runs[0])
    index, logits = predict(method, data, data.rows("test"))
    embedding = embed(method, data, index, logits)
    torch.testing.assert_close(logits, package.evaluate(runs[0]).predictions.column("logits").float())
    assert torch.equal(index, data.rows("test"))
    small, large = (noisy_logits(embedding, level, 0) for level in (1e-6, 3.0))
    torch.testing.assert_close(small, logits, atol=1e-3, rtol=1e-3)
    # Noise s on every feature adds s |w_l| to the deviation of logit l.
    scale = 3 * float(embedding.h.double().var(0).mean().sqrt())
    expected = scale * method.model.head.weight.detach().norm(dim=1)
    torch.testing.assert_close((large - logits).std(0), expected, rtol=0.15, atol=0)


def test_json_text_and_page_have_noise_and_calibration(runs, judged, tmp_path):
    leak = judged.metrics["leakage"]
    assert [r["noise"] for r in leak["randomisation"]] == [0.5, 2.0]
    # Not F1: of a weak network it rises with the share of decisions for a label, which noise raises.
    assert leak["randomisation"][1]["average_precision"] < leak["average_precision"]
    assert leak["rba"]["outside_before"] > 0
    text = group_table(judged)
    assert "with noise 2 on the embedding: F1" in text
    assert "calibrated by each row's true value" in text
    page = package.report(list(runs), tmp_path / "p.html")
    shown = page.read_text()
    for said in (
        "Quality against amplification",
        "RBA, margin 0.05",
        "What the mask leaves",
        "By label and person",
        "amplification of person",
    ):
        assert said in shown
    content = json.loads(page.with_suffix(".json").read_text())
    assert 0.5 < content["runs"][1]["masks"]["open"] < 1
    assert len(plane_points(content["runs"])) == 3


def test_figures_of_several_labels_agree_with_each_other(judged):
    m = judged.metrics
    assert m["f1_macro"] == pytest.approx(m["leakage"]["f1"])
    low, high = m["label_intervals"]["f1_macro"]
    assert low <= m["f1_macro"] <= high
    assert m["f1_macro"] == pytest.approx(np.mean([r["f1"] for r in m["per_label"] if not math.isnan(r["f1"])]))
    test = judged.data.y[judged.rows]
    for k, row in enumerate(m["per_label"]):
        assert sum(c["n"] for c in row["by_bias"]["person"].values()) == test[:, k].sum()


def test_alpha_attacks_balanced_rows_only(runs):
    found = package.evaluate(runs[0], leakage=True, attack=QUICK, alpha=1.5).metrics["leakage"]
    assert found["alpha"] == 1.5
    assert found["rows"] < len(package.load(SOURCE).rows("test"))
    judged = package.evaluate(runs[0])  # without attackers: what they found stays
    assert judged.metrics["leakage"] == json.loads(json.dumps(found))
    assert f"attacked on {found['rows']} rows; no label" in group_table(judged)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"noise": (1.0,)}, "noise, alpha and rba need --leakage"),
        ({"leakage": True, "noise": (-1.0,)}, "every level must be above 0"),
        ({"leakage": True, "alpha": 0.5}, "at least 1"),
        ({"leakage": True, "alpha": math.nan}, "at least 1"),
        ({"leakage": True, "noise": (math.nan,)}, "every level must be above 0"),
        ({"leakage": True, "rba": 2.0}, "margin must lie"),
    ],
)
def test_bad_questions(runs, asked, said):
    with pytest.raises(UserError, match=said):
        package.evaluate(runs[0], attack=QUICK, **asked)


def test_another_source_is_calibrated_to_the_training_rows_and_must_have_the_same_kind_of_labels(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    site = np.where(rng.random(400) < 0.9, y, 1 - y)  # training: site follows the class
    np.savez(tmp_path / "a.npz", x=(rng.random((400, 4)) + y[:, None]).astype(np.float32), y=y, site=np.array(["u", "v"])[site])
    run = package.train(
        str(tmp_path / "a.npz"),
        model="mlp",
        out=tmp_path / "r",
        settings={"data.bias": "site", "train.epochs": "30", "optim.lr": "0.02"},
    )
    half = rng.integers(0, 2, 400)  # elsewhere it does not
    np.savez(tmp_path / "b.npz", x=(rng.random((400, 4)) + y[:, None]).astype(np.float32), y=y, site=np.array(["u", "v"])[half])
    found = package.evaluate(run, str(tmp_path / "b.npz"), leakage=True, attack=QUICK, rba=0.05).metrics["leakage"]["rba"]
    assert found["outside_before"] == 2  # half and half, where nine tenths are asked for
    np.savez(tmp_path / "c.npz", x=rng.random((400, 4)).astype(np.float32), y=y, site=np.array(["u", "w"])[half])
    with pytest.raises(UserError, match="value 'w' does not occur in the training rows"):
        package.evaluate(run, str(tmp_path / "c.npz"), leakage=True, attack=QUICK, rba=0.05)
    sets = {"0": y, "1": 1 - y}
    np.savez(tmp_path / "d.npz", x=rng.random((400, 4)).astype(np.float32), **sets)
    many = package.train(
        str(tmp_path / "d.npz"), model="mlp", out=tmp_path / "m", settings={"data.label": "0,1", "train.epochs": "1"}
    )
    with pytest.raises(UserError, match=r"has one class per row; .* was trained for several labels per row"):
        package.evaluate(many, package.load(tmp_path / "a.npz"))


def test_a_column_that_cannot_be_attacked_says_why_and_the_others_go_on(tmp_path):
    rng = np.random.default_rng(0)
    y, kit = rng.integers(0, 2, 600), rng.integers(0, 2, 600)
    rare = np.array(["a"] * 590 + ["b"] * 10)
    np.savez(tmp_path / "d.npz", x=(rng.random((600, 4)) + y[:, None]).astype(np.float32), y=y, kit=kit, rare=rare)
    settings = {"data.bias": "rare,kit", "train.epochs": "2", "data.holdout": "0.4"}
    run = package.train(str(tmp_path / "d.npz"), model="mlp", out=tmp_path / "r", settings=settings)
    found = package.evaluate(run, leakage=True, attack=QUICK)
    assert found.metrics["leakage"]["bias"] == "kit"
    assert "too few to attack" in found.metrics["leakage_by_bias"]["rare"]["reason"]
    assert "rare: value 'b' has" in group_table(found)
    assert "too few to attack" in package.report(run, tmp_path / "p.html").read_text()


def test_attackers_fitted_on_the_models_training_rows(runs):
    found = package.evaluate(runs[0], leakage=True, attack=QUICK, fit_on="train")
    leak = found.metrics["leakage"]
    assert leak["fit_on"] == "train"
    assert leak["rows"] == len(found.data)  # train and val beside the judged rows
    assert leak["f1"] == pytest.approx(found.metrics["f1_macro"])  # of the judged rows alone
    assert "attackers fitted on the model's training rows" in group_table(found)
    with pytest.raises(UserError, match="choose another --split than train or val"):
        package.evaluate(runs[0], split="val", leakage=True, attack=QUICK, fit_on="train")
    with pytest.raises(UserError, match="leave out --on"):
        package.evaluate(runs[0], SOURCE, leakage=True, attack=QUICK, fit_on="train")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"fit_on": "train"}, "fit_on and protocol need --leakage"),
        ({"attack": Attack(protocol="code")}, "fit_on and protocol need --leakage"),
        ({"leakage": True, "fit_on": "test"}, "must be one of judged, train"),
        ({"leakage": True, "fit_on": "train", "alpha": 2.0}, "attack the judged rows alone"),
    ],
)
def test_bad_protocols(runs, asked, said):
    with pytest.raises(UserError, match=said):
        package.evaluate(runs[0], **asked)


def test_folded_figures_say_so(runs):
    found = package.evaluate(runs[0], leakage=True, attack=dataclasses.replace(QUICK, protocol="code"))
    assert found.metrics["leakage"]["protocol"] == "code"
    assert found.metrics["leakage"]["model"] >= 0.5
    assert "folded about one half" in group_table(found)


def test_a_label_that_is_the_bias_itself_is_not_shown_to_attackers():
    """The same logits with and without the person's own: the record is the same, and names the label."""
    plain, more = package.load("tiles:base=digits,rows=600"), package.load("tiles:base=digits,rows=600,person_label=true")
    assert more.classes == (*plain.classes, "orange")
    assert torch.equal(more.y[:, -1].long(), more.bias[:, 0])
    assert torch.equal(more.y[:, :-1], plain.y)
    rows = more.rows("test")
    logits = torch.randn(len(rows), len(more.classes), generator=torch.Generator().manual_seed(0)) + 2 * more.y[rows]
    options = Options(leakage=True, attack=QUICK)
    with_person = leakage_of(logits, more, rows, options, 0).by_bias["person"]
    without = leakage_of(logits[:, :-1], plain, rows, options, 0).by_bias["person"]
    assert (with_person.model, with_person.f1, with_person.dataset) == (without.model, without.f1, without.dataset)
    assert (with_person.left_out, without.left_out) == (("orange",), ())
    assert with_person.average_precision == without.average_precision
