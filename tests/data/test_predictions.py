import dataclasses
from pathlib import Path

import polars as pl
import pytest
import torch

import unskew
from unskew.core.errors import UserError
from unskew.data.predictions import is_predictions, read_predictions

P = [[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]


@pytest.fixture
def data():
    found = unskew.load("planted:rows=100,bias=0.5")
    paths = tuple(f"{found.classes[int(c)]}/{k}.jpg" for k, c in enumerate(found.y))
    assert len(found.classes) == 2
    return dataclasses.replace(found, paths=paths)


def save(frame, path):
    pl.DataFrame(frame).write_parquet(path)
    return path


def test_by_id_with_a_list(data, tmp_path):
    index, logits = read_predictions(save({"index": [7, 2, 5], "probabilities": P}, tmp_path / "p.parquet"), data)
    assert index.tolist() == [2, 5, 7]
    torch.testing.assert_close(logits.softmax(1), torch.tensor([P[1], P[2], P[0]]))


def test_by_any_ending_of_a_path_with_a_column_per_class(data, tmp_path):
    a, b = data.classes
    paths = [f"/elsewhere/photos/{data.paths[3]}", data.paths[0], Path(data.paths[9]).name]
    frame = {"path": paths, a: [p[0] for p in P], f"p_{b}": [p[1] for p in P]}
    index, logits = read_predictions(save(frame, tmp_path / "p.parquet"), data)
    assert index.tolist() == [0, 3, 9]
    assert logits.softmax(1)[0].tolist() == pytest.approx(P[1])


def test_logits_stay_as_they_are(data, tmp_path):
    frame = {"id": [1], "logits": [[-3.0, 4.0]]}
    assert read_predictions(save(frame, tmp_path / "p.parquet"), data)[1].tolist() == [[-3.0, 4.0]]


def test_several_labels(data, tmp_path):
    many = dataclasses.replace(data, y=torch.eye(2)[data.y], fingerprint="x")
    logits = read_predictions(save({"index": [1], "probabilities": [[0.9, 0.8]]}, tmp_path / "p.parquet"), many)[1]
    assert logits.sigmoid().tolist()[0] == pytest.approx([0.9, 0.8])


@pytest.mark.parametrize(
    ("frame", "what"),
    [
        ({"index": [1, 1], "probabilities": P[:2]}, "sample 1 is predicted more than once"),
        ({"index": [100], "probabilities": P[:1]}, "rows 0 to 99"),
        ({"index": [1], "probabilities": [[0.9, 0.3]]}, "sum to 1"),
        ({"index": [1], "probabilities": [[1.9, -0.9]]}, r"in \[0, 1\]"),
        ({"index": [1], "probabilities": [[0.9, 0.05, 0.05]]}, "must have 2 numbers"),
        ({"index": [1], "x": [0.5]}, "no probability of class"),
        ({"probabilities": P[:1]}, "cannot be matched"),
        ({"path": ["no/such.jpg"], "probabilities": P[:1]}, "is not a file of"),
        ({"index": [1], "logits": [[float("nan"), 0.0]]}, "row 1 has a prediction that is not a number"),
    ],
)
def test_what_is_wrong_is_said(data, tmp_path, frame, what):
    with pytest.raises(UserError, match=what):
        read_predictions(save(frame, tmp_path / "p.parquet"), data)


def test_an_ending_that_fits_several(data, tmp_path):
    twice = dataclasses.replace(data, paths=tuple(f"{k}/same.jpg" for k in range(100)))
    with pytest.raises(UserError, match="fits several files"):
        read_predictions(save({"path": ["same.jpg"], "probabilities": P[:1]}, tmp_path / "p.parquet"), twice)


def test_what_is_a_table():
    assert is_predictions("p.parquet")
    assert is_predictions(Path("p.CSV"))
    assert not is_predictions("runs/erm")
