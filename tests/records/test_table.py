"""A large table is a folder of parts, and reads as the table that it is."""

import polars as pl
import pytest
import torch

from unskew.core.errors import UserError
from unskew.records import Table, table
from unskew.repairs import sampler


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(table, "LARGE", 10)
    monkeypatch.setattr(table, "SHARD", 4)


def made(rows):
    frame = pl.DataFrame(
        {"index": range(rows), "split": ["train", "val"] * (rows // 2), "weight": [float(k % 3) for k in range(rows)]}
    )
    return Table(frame.with_columns(path=pl.lit("a/b.png")), {"name": "repair", "use": "chance"})


def test_parts_are_the_table(tmp_path, small):
    path = tmp_path / "weights.parquet"
    made(14).save(path)
    assert sorted(p.name for p in path.iterdir()) == [f"part-0000{k}.parquet" for k in range(4)]
    assert [len(pl.read_parquet(p)) for p in sorted(path.iterdir())] == [4, 4, 4, 2]
    again = Table.read(path)
    assert again.frame.equals(made(14).frame)
    assert again.made_by == {"name": "repair", "use": "chance"}
    assert pl.scan_parquet(path / "*.parquet").select("weight").collect().equals(made(14).frame.select("weight"))
    assert Table.is_at(path)


def test_a_small_table_takes_the_place_of_a_large_one_and_back(tmp_path, small):
    path = tmp_path / "weights.parquet"
    for rows in (14, 6, 14):
        made(rows).save(path)
        assert len(Table.read(path)) == rows
        assert path.is_dir() is (rows > 10)
    assert list(tmp_path.iterdir()) == [path]


def test_only_the_columns_asked_for_are_read(tmp_path, small):
    for rows in (14, 6):
        made(rows).save(tmp_path / f"{rows}.parquet")
        assert Table.read(tmp_path / f"{rows}.parquet", ("index", "weight")).frame.columns == ["index", "weight"]
        assert len(Table.read(tmp_path / f"{rows}.parquet", ("index", "nosuch")).frame.columns) == 4  # errors name what there is


def test_a_sampler_draws_from_parts_as_from_a_file(tmp_path, small, monkeypatch):
    made(14).save(tmp_path / "parts.parquet")
    monkeypatch.setattr(table, "LARGE", 100)
    made(14).save(tmp_path / "file.parquet")
    parts, file = (sampler(tmp_path / name, num_samples=50) for name in ("parts.parquet", "file.parquet"))
    assert list(parts) == list(file)
    assert torch.tensor(list(parts)).remainder(2).eq(0).all()  # the training rows
    with pytest.raises(UserError, match="no split 'test'; available: train, val"):
        sampler(tmp_path / "parts.parquet", split="test")


def test_a_damaged_part_is_named(tmp_path, small):
    made(14).save(tmp_path / "w.parquet")
    (tmp_path / "w.parquet" / "part-00002.parquet").write_bytes(b"PAR1 cut")
    with pytest.raises(UserError, match=r"part-00002\.parquet cannot be read as a Parquet table"):
        Table.read(tmp_path / "w.parquet")
