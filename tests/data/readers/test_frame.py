"""Frames of pandas and polars and pairs of arrays: the same rows as the same data in a file."""

import numpy as np
import polars as pl
import pytest
import torch
from PIL import Image

import unskew as package
from unskew.core.errors import UserError
from unskew.data import load

N = 60
ROWS = {
    "age": np.arange(N, dtype=float),
    "size": np.arange(N) % 7,
    "label": np.array(["cat", "dog"])[np.arange(N) % 2].tolist(),
    "site": np.array(["north", "south", "east"])[np.arange(N) % 3].tolist(),
}


def frames():
    pandas = pytest.importorskip("pandas")
    return {"polars": pl.DataFrame(ROWS), "pandas": pandas.DataFrame(ROWS)}


@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_a_frame_gives_its_numbers_as_inputs_and_text_as_labels(kind):
    data = package.load(frames()[kind], label="label", bias="site")
    assert data.classes == ("cat", "dog")
    assert data.bias_names == ("site",)
    assert data.bias_values == (("east", "north", "south"),)
    assert data.shape == (2,)  # age and size; label and site are columns, not inputs
    assert data.inputs.x[:, 0].tolist() == list(range(N))
    assert [data.classes[c] for c in data.y.tolist()] == ROWS["label"]


def test_pandas_and_polars_give_the_same_data_set():
    one, two = (package.load(frame, label="label", bias="site") for frame in frames().values())
    assert one.fingerprint == two.fingerprint
    torch.testing.assert_close(one.inputs.x, two.inputs.x)


def test_a_frame_of_paths_reads_the_files(tmp_path, monkeypatch):
    for k in range(12):
        Image.fromarray(np.full((8, 8, 3), 20 * k, dtype=np.uint8)).save(tmp_path / f"{k}.png")
    frame = pl.DataFrame({"path": [f"{k}.png" for k in range(12)], "label": ["a", "b"] * 6})
    monkeypatch.chdir(tmp_path)
    data = package.load(frame)
    assert data.shape == (3, 8, 8)
    assert data.inputs.rows(torch.tensor([3]))[0].unique().tolist() == [60]
    assert data.source == ""  # a frame cannot be read again by its name
    with pytest.raises(UserError, match=r"1 of 2 paths do not exist; the first is 'none.png'"):
        package.load(pl.DataFrame({"path": ["0.png", "none.png"], "label": ["a", "b"]}))


@pytest.mark.parametrize("labels", [ROWS["label"], (np.arange(N) % 2), torch.arange(N) % 2], ids=["text", "numpy", "torch"])
def test_a_pair_of_arrays(labels):
    x = np.random.default_rng(0).random((N, 5))
    data = package.load((x, labels))
    assert (data.shape, len(data.classes)) == ((5,), 2)
    torch.testing.assert_close(data.inputs.x, torch.from_numpy(x).float())
    assert data.has("test")


def test_a_pair_with_several_labels_and_pairs_that_do_not_fit():
    x = np.zeros((N, 3, 8, 8), dtype=np.uint8)
    data = package.load((x, np.eye(4)[np.arange(N) % 4]))
    assert data.multi_label
    assert data.shape == (3, 8, 8)
    with pytest.raises(UserError, match="both need the same number of rows"):
        package.load((x, np.zeros(3)))
    with pytest.raises(UserError, match="no column 'site'"):
        package.load((x, np.arange(N) % 2), bias="site")


def test_frames_that_cannot_be_a_source():
    with pytest.raises(UserError, match="no rows"):
        package.load(pl.DataFrame({"a": [], "label": []}))
    with pytest.raises(UserError, match=r"the frame: no path column; .* can only be audited"):
        load(pl.DataFrame({"label": ["a", "b"], "word": ["x", "y"]}))
    with pytest.raises(UserError, match="no label column"):
        package.load(pl.DataFrame({"a": [1.0, 2.0]}))
    with pytest.raises(UserError, match="a source must be a name, a path, a pandas or polars frame"):
        package.load(3)


def test_a_frame_goes_through_training_and_judgement(tmp_path):
    frame = pl.DataFrame(ROWS)
    run = package.train(
        package.load(frame, label="label", bias="site"), out=tmp_path / "run", settings={"train.steps": 5, "train.batch": 16}
    )
    assert package.evaluate(run, package.load(frame, label="label", bias="site")).groups.bias_names == ("site",)
