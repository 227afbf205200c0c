"""Vectors in Parquet parts: read once into a file, the same rows in every form, and audited without holding them."""

import os

import numpy as np
import polars as pl
import pytest
import torch

import unskew as package
from unskew import features
from unskew.core.errors import UserError
from unskew.core.matrix import Matrix
from unskew.data import load
from unskew.data.stored import Stored
from unskew.features import compute_many, spec

pytestmark = pytest.mark.usefixtures("own_cache")


def parts(folder, x, y, form="array", cut=150):
    folder.mkdir(exist_ok=True)
    for number, rows in enumerate((slice(0, cut), slice(cut, None))):
        frame = pl.DataFrame({"label": y[rows], "place": y[rows] % 2})
        if form == "columns":
            frame = frame.with_columns(pl.Series(f"f{k}", x[rows, k]) for k in reversed(range(x.shape[1])))
        else:
            column = pl.Series("features", x[rows], dtype=pl.Array(pl.Float64, x.shape[1]))
            frame = frame.with_columns(column if form == "array" else column.cast(pl.List(pl.Float32)))
        frame.write_parquet(folder / f"part-{number}.parquet")
    return folder


def some(n=400, width=11, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return rng.normal(size=(n, width)) + y[:, None], y


@pytest.mark.parametrize("form", ["array", "list", "columns"])
def test_rows_are_those_of_the_parts(tmp_path, form):
    x, y = some()
    data = load(parts(tmp_path / "v", x, y, form), bias="place")
    assert isinstance(data.inputs, Stored)
    assert data.shape == (11,)
    assert data.classes == ("0", "1", "2")
    assert data.y.tolist() == y.tolist()
    picked = torch.tensor([399, 0, 151, 149])
    torch.testing.assert_close(data.inputs.rows(picked)[0], torch.from_numpy(x[picked.numpy()]).float(), rtol=0, atol=0)


def test_a_changed_part_is_noticed(tmp_path):
    x, y = some()
    first = load(parts(tmp_path / "v", x, y)).fingerprint
    assert load(tmp_path / "v").fingerprint == first
    part = tmp_path / "v" / "part-1.parquet"
    os.utime(part, ns=(1, 1))  # written again with the same numbers: the same data
    assert load(tmp_path / "v").fingerprint == first
    x[399] += 1
    parts(tmp_path / "v", x, y)
    assert load(tmp_path / "v").fingerprint != first


def test_what_is_wrong_is_one_line(tmp_path):
    x, y = some()
    x[200, 3] = np.nan
    with pytest.raises(UserError, match=r"part-1\.parquet: NaN, infinity or nothing in 1 rows, first in 50"):
        load(parts(tmp_path / "nan", x, y))
    pl.DataFrame({"label": [0, 1], "place": [0, 1], "features": [[1.0, 2.0], [1.0]]}).write_parquet(
        parts(tmp_path / "v", *some()) / "part-2.parquet"
    )
    with pytest.raises(UserError, match="vectors of different lengths"):
        load(tmp_path / "v")
    (tmp_path / "v" / "part-2.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(UserError, match="cannot be read"):
        load(tmp_path / "v")
    assert not list((tmp_path / "cache" / "vectors").glob("*.json"))  # nothing half-written counts as read


def test_an_audit_and_a_repair_of_a_file_are_those_of_memory(tmp_path, monkeypatch):
    x, y = some(1200)
    np.savez(tmp_path / "v.npz", x=x.astype(np.float32), y=y, place=y % 2)
    stored = package.audit(parts(tmp_path / "v", x, y), out=tmp_path / "stored", trial=False, slices=0)
    held = package.audit(tmp_path / "v.npz", out=tmp_path / "held", trial=False, slices=0)
    one, other = ({f.name: f for f in found.findings}["input"] for found in (stored, held))
    assert one.bias == pytest.approx(other.bias, abs=0.01)
    weights = [
        package.repair(
            source, out=tmp_path / f"{name}.parquet", settings={"phi": "input", "epochs": 30}, force=True
        ).table.column("weight")
        for name, source in (("a", tmp_path / "v"), ("b", tmp_path / "v.npz"))
    ]
    torch.testing.assert_close(*weights, rtol=1e-3, atol=1e-4)


def test_features_that_are_many_go_to_a_file(tmp_path, monkeypatch):
    x, y = some(300)
    np.savez(tmp_path / "v.npz", x=x.astype(np.float32), y=y)
    data, rows = load(tmp_path / "v.npz"), torch.arange(300)
    monkeypatch.setattr(features, "CHUNK", 64)
    monkeypatch.setattr(features, "FEW", 10)
    held = compute_many(data, [spec("input")], rows)[1]["input"]
    monkeypatch.setattr(features, "HELD", 1000)
    index, found = compute_many(data, [spec("input")], rows)
    assert isinstance(held, torch.Tensor)
    assert isinstance(found["input"], Matrix)
    assert torch.equal(found["input"][slice(0, 300)], held)
    assert torch.equal(index, rows)
