"""Arrays, tables and paths that are damaged or absurd: each is one line that says what and where."""

import io
import zipfile

import numpy as np
import polars as pl
import pytest

from unskew.core.errors import UserError
from unskew.data import load

X, Y = np.random.default_rng(0).random((40, 3)), np.array([0, 1] * 20)


def archive(path, **members):
    """An .npz from raw bytes."""
    with zipfile.ZipFile(path, "w") as out:
        for name, raw in members.items():
            out.writestr(f"{name}.npy", raw)
    return path


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def test_an_array_renamed_to_an_archive(tmp_path):
    (tmp_path / "a.npz").write_bytes(npy(X))
    with pytest.raises(UserError, match=r"is not an \.npz archive but a single array; it needs x and y"):
        load(tmp_path / "a.npz")


def test_a_header_that_promises_more_than_there_is_allocates_nothing(tmp_path):
    huge = npy(X).replace(b"(40, 3)", b"(4" + b"0" * 9 + b", 3)").replace(b"          \n", b"\n", 1)
    archive(tmp_path / "a.npz", x=huge, y=npy(Y))
    with pytest.raises(UserError, match=r"x\.npy (says it has shape|is not an array)"):
        load(tmp_path / "a.npz")


@pytest.mark.parametrize("kind", ["c16", "M8[s]", "U3", "V4"])
def test_inputs_that_are_not_numbers(tmp_path, kind):
    np.savez(tmp_path / "a.npz", x=np.zeros((40, 3)).astype(kind), y=Y)
    with pytest.raises(UserError, match=r"a\.npz"):
        load(tmp_path / "a.npz")


@pytest.mark.parametrize("kind", [np.longdouble, np.float16, ">f8", ">i4", np.uint64])
def test_numbers_of_every_kind_are_read(tmp_path, kind):
    whole = np.arange(120).reshape(40, 3)
    np.savez(tmp_path / "a.npz", x=whole.astype(kind), y=Y.astype(kind), site=Y.astype("S2"))
    data = load(tmp_path / "a.npz", bias="site")
    assert data.inputs.x.tolist() == whole.tolist()
    assert data.y.tolist() == Y.tolist()
    assert data.bias_values == (("0", "1"),)


def test_every_cut_and_flip_of_an_archive_is_refused_or_read(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=X, y=Y)
    good = path.read_bytes()
    refused = 0
    for place in range(0, len(good), 41):
        for damaged in (good[:place], good[:place] + bytes([good[place] ^ 0xA5]) + good[place + 1 :]):
            path.write_bytes(damaged)
            refused += str(path) in _refusal(path)
    assert refused > 20


def _refusal(path):
    """What is said of a file; empty if it is read."""
    try:
        load(path)
    except UserError as error:
        return str(error)
    return ""


def table(place, **columns):
    frame = pl.DataFrame({"label": ["a", "b"] * 20, "site": ["x", "y"] * 20, **columns}, strict=False)
    frame.write_ndjson(place) if place.suffix == ".jsonl" else frame.write_parquet(place)
    return place


@pytest.mark.parametrize("value", [float("inf"), 1e300, -1e18])
def test_a_label_that_is_no_category(tmp_path, value):
    with pytest.raises(UserError, match="holds infinity or numbers too large to be categories"):
        load(table(tmp_path / "t.parquet", label=[value, 1.0] * 20), holdout=0)


def test_lists_within_lists(tmp_path):
    path = table(tmp_path / "t.jsonl", label=[[["a"], ["b"]]] * 40)
    with pytest.raises(UserError, match="a list of labels holds text or whole numbers"):
        load(path)


def test_a_column_named_twice(tmp_path):
    path = table(tmp_path / "t.parquet")
    with pytest.raises(UserError, match=r"data\.label: column 'site' is named twice"):
        load(path, label="site,site")
    with pytest.raises(UserError, match=r"data\.bias: column 'site' is named twice"):
        load(path, bias="site,site")


@pytest.mark.parametrize("name", ["a" * 300 + ".png", "a\0b.png", "x/" * 3000 + "y"])
def test_paths_that_cannot_exist_do_not(tmp_path, name):
    path = table(tmp_path / "t.parquet", path=[name] * 40)
    with pytest.raises(UserError, match="40 of 40 paths do not exist"):
        load(path)


@pytest.mark.parametrize("source", ["a" * 300, "b/" * 3000, "a\0b", "x" * 300 + ".csv"])
def test_sources_that_cannot_exist_do_not(source):
    with pytest.raises(UserError, match="unknown source"):
        load(source)


@pytest.mark.parametrize("source", ["toy:rows=1e30", "toy:rows=999999999", "cartoon:size=100000", "planted:extra=99999999999"])
def test_sets_that_no_machine_could_hold(source):
    with pytest.raises(UserError, match=r"must be at most|must be a whole number|must"):
        load(source)


def test_a_folder_whose_name_is_not_text(tmp_path):
    from tests.conftest import write_image

    for k in range(12):
        write_image(tmp_path / "photos" / ("cat\udcff", "dog")[k % 2] / f"{k}.png", (10, 20, 30), side=(8, 8), seed=k)
    with pytest.raises(UserError, match=r"the name 'cat\\udcff.*' is not UTF-8; rename it"):
        load(tmp_path / "photos")
