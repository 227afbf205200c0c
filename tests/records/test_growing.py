"""A table that grows is, at the end, the table that all its rows at once would have made."""

from contextlib import suppress

import polars as pl
import pytest
import torch

from unskew.core.errors import UserError
from unskew.records import Growing, Table, TableFile, growing, table
from unskew.training.predict import predictions_frame

ABOUT = {"name": "evaluate", "split": "test"}


@pytest.fixture
def tiny(monkeypatch):
    """Four rows are held, ten are in one file."""
    monkeypatch.setattr(table, "LARGE", 10)
    monkeypatch.setattr(table, "SHARD", 4)
    monkeypatch.setattr(growing, "NUMBERS", 20)


def frames(rows, each=3):
    x = torch.arange(3.0 * rows).view(rows, 3) / 7
    return [predictions_frame(ids, ids % 2, x[ids]) for ids in torch.split(torch.arange(rows), each)]


def grown(path, rows, each=3):
    with Growing(path, ABOUT) as found:
        for frame in frames(rows, each):
            found.add(frame)
        before = found.column("logits")
        found.save()
    return found.table, before


def test_few_rows_are_saved_to_the_byte_as_a_table_of_them_all(tmp_path):
    found, _ = grown(tmp_path / "grown.parquet", 1000)
    Table(pl.concat(frames(1000)), ABOUT).save(tmp_path / "whole.parquet")
    assert (tmp_path / "grown.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert isinstance(found, Table)
    assert found.made_by == ABOUT


@pytest.mark.parametrize(("rows", "parts"), [(9, 0), (10, 0), (14, 4)])
def test_many_rows_are_one_file_or_parts_with_the_same_content(tiny, tmp_path, rows, parts):
    path = tmp_path / "p.parquet"
    found, before = grown(path, rows)
    assert isinstance(found, TableFile)
    assert path.is_dir() is bool(parts)
    assert list(tmp_path.iterdir()) == [path]  # nothing else is left
    if parts:
        assert [len(pl.read_parquet(p)) for p in sorted(path.iterdir())] == [4, 4, 4, 2]
    whole = pl.concat(frames(rows))
    for again in (Table.read(path), found):
        assert again.frame.equals(whole)
        assert again.frame.schema == whole.schema
    assert Table.read(path).made_by == ABOUT
    expected = torch.tensor(whole["logits"].to_list(), dtype=torch.float64)
    for column in (before, found.column("logits"), torch.cat([part.column("logits") for part in found.parts("logits")])):
        assert torch.equal(column, expected)
    assert torch.cat([part.index for part in found.parts()]).tolist() == list(range(rows)) == found.index.tolist()
    assert max(len(part) for part in found.parts("logits")) == 4
    assert len(found) == rows


def test_large_takes_the_place_of_small_and_back(tiny, tmp_path):
    path = tmp_path / "p.parquet"
    for rows in (2, 14, 9, 14, 2):
        grown(path, rows)
        assert len(Table.read(path)) == rows
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_what_was_there(tiny, tmp_path):
    path = tmp_path / "p.parquet"
    grown(path, 2)
    with suppress(RuntimeError), Growing(path, ABOUT) as found:
        for frame in frames(14):
            found.add(frame)
        raise RuntimeError
    assert list(tmp_path.iterdir()) == [path]
    assert len(Table.read(path)) == 2


def test_no_rows_are_a_table_too(tmp_path):
    with Growing(tmp_path / "p.parquet", ABOUT) as found:
        found.add(frames(3)[0].head(0))
        found.save()
    assert Table.read(tmp_path / "p.parquet").frame.columns == ["index", "y", "logits"]


def test_opened_holds_what_is_small_and_rejects_what_is_damaged(tiny, tmp_path, monkeypatch):
    grown(tmp_path / "many.parquet", 14)
    assert isinstance(growing.opened(tmp_path / "many.parquet"), TableFile)
    assert growing.opened(tmp_path / "many.parquet").made_by == ABOUT
    (tmp_path / "bad.parquet").write_bytes(b"PAR1" * 50)
    with pytest.raises(UserError, match="cannot be read as a Parquet table"):
        growing.opened(tmp_path / "bad.parquet")
    monkeypatch.undo()
    assert isinstance(growing.opened(tmp_path / "many.parquet"), Table)
