"""Where tags lie, and what their plain names stand for."""

import numpy as np
import polars as pl
import pytest

from unskew.core.errors import UserError
from unskew.data.sources import load
from unskew.data.tags import check_tag, resolved, tags_path
from unskew.records import Table


def write_tags(source, data, values, **more):
    path = tags_path(str(source))
    Table(
        pl.DataFrame({"index": np.arange(len(data)), "mark": values}),
        {"name": "explore", "fingerprint": data.fingerprint, **more},
    ).save(path)
    return path


def test_a_table_lies_beside_its_source(tmp_path, folder, own_cache):
    assert tags_path(str(folder)) == tmp_path / "photos.tags.parquet"
    (folder / "metadata.csv").write_text("file_name,label\n")
    assert tags_path(str(folder / "metadata.csv")) == tmp_path / "photos.tags.parquet"  # read through the folder
    (tmp_path / "rows.csv").write_text("label\na\n")
    assert tags_path(str(tmp_path / "rows.csv")) == tmp_path / "rows.csv.tags.parquet"
    assert tags_path("toy").parent == tmp_path / "cache" / "tags"
    assert tags_path("toy:rows=7") != tags_path("toy:rows=8")
    assert tags_path(str(tmp_path / "nowhere")) is None
    assert tags_path("") is None


def test_only_tags_are_resolved(folder, own_cache):
    data = load(str(folder))
    path = write_tags(folder, data, ["yes", "no"] * 12)
    assert resolved(str(folder), ["mark", "other"]) == (f"{path}:mark", "other")
    assert resolved(str(folder), []) == ()


def test_a_tag_that_hides_a_column_is_refused(tmp_path, own_cache):
    (tmp_path / "rows.csv").write_text("label,mark\n" + "a,0\nb,1\n" * 20)
    data = load(str(tmp_path / "rows.csv"), without_inputs=True)
    path = write_tags(tmp_path / "rows.csv", data, ["yes", "no"] * 20)
    with pytest.raises(UserError, match="a column and a tag"):
        load(str(tmp_path / "rows.csv"), without_inputs=True, bias="mark")
    assert load(str(tmp_path / "rows.csv"), without_inputs=True, bias=f"{path}:mark").bias_values == (("no", "yes"),)


def test_tags_of_other_rows_are_refused(folder, own_cache):
    data = load(str(folder))
    write_tags(folder, data, ["yes", "no"] * 12)
    with pytest.raises(UserError, match="another source"):
        load(str(folder), bias="mark", size=16)  # without the names of files, only the fingerprint can tell
    write_tags(folder, data, ["yes", "no"] * 12, files=data.files_digest)
    assert load(str(folder), bias="mark", size=16).bias_names == ("mark",)
    (folder / "cat" / "0.png").rename(folder / "cat" / "zz.png")
    with pytest.raises(UserError, match="another source"):
        load(str(folder), bias="mark")


def test_files_are_the_same_wherever_their_folder_lies(folder, tmp_path, own_cache):
    before = load(str(folder)).files_digest
    folder.rename(tmp_path / "moved")
    assert load(str(tmp_path / "moved")).files_digest == before != ""


@pytest.mark.parametrize("name", ["", "a b", "a,b", "a:b", "a/b", "..", "index", "weight", "x" * 41])
def test_names_that_cannot_follow_bias(name):
    with pytest.raises(UserError, match="cannot be called"):
        check_tag(name)
