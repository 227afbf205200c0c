"""Hugging Face data sets on disk."""

import io
import shutil

import numpy as np
import pytest
import torch
from PIL import Image

from unskew.core.errors import UserError
from unskew.data import load
from unskew.data.loader import stream_rows


def test_hugging_face_on_disk(tmp_path):
    datasets = pytest.importorskip("datasets")
    rows = {
        "image": [Image.fromarray(np.full((8, 8, 3), 10 * k, np.uint8)) for k in range(20)],
        "label": [0, 1] * 10, "site": ["x", "y"] * 10,
    }  # fmt: skip
    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=["no", "yes"]), "site": datasets.Value("string")}
    )
    made = datasets.Dataset.from_dict(rows, features=features)
    made.save_to_disk(str(tmp_path / "one"))
    data = load(tmp_path / "one", bias="site")
    assert data.classes == ("no", "yes")
    assert data.shape == (3, 8, 8)
    assert data.inputs.x[:, 0, 0, 0].tolist() == [10 * k for k in range(20)]
    datasets.DatasetDict({"train": made, "test": made}).save_to_disk(str(tmp_path / "two"))
    two = load(tmp_path / "two")
    assert [len(two.rows(s)) for s in ("train", "val", "test")] == [18, 2, 20]
    datasets.DatasetDict({"train": made, "validation": made, "val": made}).save_to_disk(str(tmp_path / "three"))
    three = load(tmp_path / "three", holdout=0)
    assert [len(three.rows(s)) for s in ("train", "val")] == [20, 40]  # neither name loses the rows of the other


def saved(place, **columns):
    datasets = pytest.importorskip("datasets")
    kinds = {"image": datasets.Image(), "label": datasets.Value("string")}
    features = datasets.Features({name: kinds[name] for name in columns}) if "image" in columns else None
    datasets.disable_progress_bars()
    datasets.Dataset.from_dict(columns, features=features).save_to_disk(str(place))
    return place


def png(value):
    out = io.BytesIO()
    Image.fromarray(np.full((8, 8, 3), value, np.uint8)).save(out, "PNG")
    return {"bytes": out.getvalue(), "path": None}


def test_a_broken_image_counts_like_any_other(tmp_path):
    images = [png(10 * k) for k in range(20)]
    images[3] = {"bytes": b"no picture", "path": None}
    place = saved(tmp_path / "set", image=images, label=["a", "b"] * 10)
    with pytest.raises(
        UserError, match=r"1 of 20 images cannot be decoded, more than data\.max_bad=0\.01 allows; the first is row 3"
    ):
        load(place)
    data = load(place, max_bad=0.05)
    assert [k for k, _ in data.unreadable] == [3]
    assert data.inputs.rows(torch.tensor([2, 3]))[1].tolist() == [True, False]
    assert data.inputs.x[:, 0, 0, 0].tolist() == [0 if k == 3 else 10 * k for k in range(20)]


def test_ragged_vectors_are_refused(tmp_path):
    place = saved(tmp_path / "set", x=[[0.5] * (3 + k % 2) for k in range(20)], label=["a", "b"] * 10)
    with pytest.raises(UserError, match=r"'x' has rows of different shapes"):
        load(place)


@pytest.mark.parametrize("file", ["state.json", "dataset_info.json", "data-00000-of-00001.arrow"])
@pytest.mark.parametrize("damage", ["empty", "cut", "list", "missing"])
def test_a_damaged_file_is_refused_by_the_name_of_the_folder(tmp_path, file, damage):
    place = saved(tmp_path / "set", x=[[0.5, float(k)] for k in range(20)], label=["a", "b"] * 10)
    path = place / file
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes({"empty": b"", "cut": path.read_bytes()[: path.stat().st_size // 3], "list": b"[1]"}[damage])
    with pytest.raises(UserError, match=str(place)):
        load(place)


def test_a_split_that_is_missing(tmp_path):
    datasets = pytest.importorskip("datasets")
    part = datasets.Dataset.from_dict({"x": [[0.5, float(k)] for k in range(20)], "label": ["a", "b"] * 10})
    datasets.disable_progress_bars()
    datasets.DatasetDict({"train": part, "test": part}).save_to_disk(str(tmp_path / "set"))
    shutil.rmtree(tmp_path / "set" / "test")
    with pytest.raises(UserError, match="damaged Hugging Face data set"):
        load(tmp_path / "set")


def test_a_set_that_does_not_fit_into_memory_is_mapped(tmp_path):
    """The same rows, splits and near-duplicates as in memory, also from worker processes; a broken picture counts in both."""
    images = [png((k * 37) % 251) for k in range(40)]
    images[7] = {"bytes": b"no picture", "path": None}
    noisy = np.random.default_rng(0)
    for k in (3, 4, 11, 12):  # pictures with structure, two of them twins
        out = io.BytesIO()
        Image.fromarray(noisy.integers(0, 255, (8, 8, 3), dtype=np.uint8)).resize((9, 10)).save(out, "PNG")
        images[k] = {"bytes": out.getvalue(), "path": None}
    images[20] = images[3]
    place = saved(tmp_path / "set", image=images, label=["a", "b"] * 20)
    memory, mapped = load(place, max_bad=0.1), load(place, max_bad=0.1, memory=1e-6)
    assert not mapped.inputs.in_memory
    assert memory.inputs.in_memory
    x, fine = mapped.inputs.rows(torch.arange(40))
    assert torch.equal(fine, memory.inputs.readable)
    assert torch.equal(x, memory.inputs.x)
    assert torch.equal(memory.split, mapped.split)
    assert torch.equal(memory.duplicate_of, mapped.duplicate_of)
    assert int((mapped.duplicate_of >= 0).sum()) == 2
    assert [k for k, _ in mapped.unreadable] == [k for k, _ in memory.unreadable] == [7]
    for index, got, _ in stream_rows(mapped.inputs, list(torch.split(torch.arange(40), 16)), 2):
        assert torch.equal(got, memory.inputs.x[index])
    assert load(place, max_bad=0.1, mode="stream").fingerprint == mapped.fingerprint != memory.fingerprint
    other = saved(tmp_path / "other", image=[png(k) for k in range(40)], label=["a", "b"] * 20)
    assert load(other, mode="stream").fingerprint != mapped.fingerprint


def test_an_offset_that_points_outside_is_refused(tmp_path):
    """Arrow would end the process, without a Python exception, as soon as the rows behind it are read."""
    pa, datasets = pytest.importorskip("pyarrow"), pytest.importorskip("datasets")
    datasets.Dataset.from_dict({"x": [[0.0, 1.0]] * 20, "label": [0, 1] * 10}).save_to_disk(str(tmp_path / "saved"))
    (file,) = (tmp_path / "saved").glob("*.arrow")
    with pa.memory_map(str(file)) as source, pa.ipc.open_stream(source) as stream:
        table = stream.read_all()
    lists = table.column("x").combine_chunks()
    offsets = np.frombuffer(lists.buffers()[1], dtype=np.int32)[:21].copy()
    offsets[7] = 16_777_255
    damaged = pa.Array.from_buffers(lists.type, 20, [None, pa.py_buffer(offsets)], children=[lists.values])
    table = table.set_column(table.column_names.index("x"), table.schema.field("x"), damaged)
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    with pytest.raises(UserError, match="damaged Hugging Face data set"):
        load(str(tmp_path / "saved"))
