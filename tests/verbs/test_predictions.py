"""A model that was trained elsewhere, judged from a table of its predictions."""

import json

import numpy as np
import polars as pl
import pytest

import unskew as package
from unskew.core.errors import UserError
from unskew.measure import Attack

pytestmark = pytest.mark.usefixtures("own_cache")
SOURCE = "colored-mnist:base=digits,digits=3,5,8,ratio=0.8"
QUICK = Attack(rounds=2, hidden=16, epochs=5, min_steps=50)


@pytest.fixture
def colour_model(tmp_path):
    """Predictions of a model that knows nothing but the colour, on the training rows."""
    data = package.load(SOURCE)
    rows = data.rows("train")
    colour = data.bias[rows, 0].numpy()
    p = np.full((len(rows), 3), 0.05)
    p[np.arange(len(rows)), colour] = 0.9
    frame = {"index": rows.numpy(), **{name: p[:, k] for k, name in enumerate(data.classes)}}
    pl.DataFrame(frame).write_parquet(tmp_path / "model.parquet")
    return tmp_path / "model.parquet"


def test_groups_leakage_slices_and_page(colour_model, tmp_path):
    found = package.evaluate(colour_model, package.load(SOURCE), leakage=True, attack=QUICK)
    assert found.groups.aligned.value == 1
    assert found.groups.conflicting.value == 0
    assert found.verdict.kind == "takes-shortcut"
    told = json.loads((tmp_path / "model-evaluation" / "metrics.json").read_text())
    assert told["leakage"]["model"] > told["leakage"]["chance"] + 0.2
    best = next(iter(told["explained_errors"].values()))
    assert best["value"] > 0.95
    sliced = [s for s in told["slices"]["slices"] if s["kind"] == "conflicting"]
    assert sum(s["n"] for s in sliced) == pytest.approx(found.groups.conflicting.n, rel=0.15)
    assert min(s["error"] for s in sliced) > 0.8
    scores = pl.read_parquet(tmp_path / "model-evaluation" / "scores.parquet")
    assert len(scores) == len(found.rows)
    assert "slice" in scores.columns
    page = (tmp_path / "model-evaluation" / "evaluation.html").read_text()
    for words in ("takes the shortcut", "What explains its errors", "<h2>Slices</h2>", "<h2>Leakage</h2>"):
        assert words in page
    assert "://" not in page.replace("http://www.w3.org", "")


def test_what_needs_the_model_or_the_data_is_refused(colour_model):
    with pytest.raises(UserError, match="reliance needs the model itself"):
        package.evaluate(colour_model, package.load(SOURCE), reliance=True)
    with pytest.raises(UserError, match="name the data that they are about with --source"):
        package.evaluate(colour_model)
