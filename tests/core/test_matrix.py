"""Rows in a file are those that were written, whichever way they are asked for; a temporary file goes with its last matrix."""

import gc
import subprocess
import sys

import pytest
import torch

from unskew.core import matrix
from unskew.core.matrix import Column, Matrix, Spill, beside, only, slices, spilled, writing

X = torch.arange(60.0).view(20, 3)


def test_slices_positions_and_masks(tmp_path):
    with writing(tmp_path / "x.f32", 3) as add:
        add(X[:7])
        add(X[7:])
    stored = Matrix(((tmp_path / "x.f32", 3),), 20)
    assert (tmp_path / "x.f32").stat().st_size == 4 * 60
    assert stored.shape == (20, 3)
    order = torch.tensor([19, 0, 5, 5])
    for rows in (slice(3, 9), slice(15, 99), slice(4, 4), order, X[:, 0] > 30, torch.arange(20)):
        assert torch.equal(stored[rows], X[rows])
    picked = stored.only(order)
    assert torch.equal(picked[slice(1, 3)], X[order[1:3]])
    assert torch.equal(picked.only(torch.tensor([True, False, False, True]))[slice(0, 9)], X[[19, 5]])
    assert torch.equal(only(stored, order)[torch.tensor([2])], X[[5]])
    assert torch.equal(only(X, order), X[order])


@pytest.mark.parametrize("dense", [1, 100])
def test_scattered_rows_one_by_one_and_together(tmp_path, monkeypatch, dense):
    monkeypatch.setattr(matrix, "TOGETHER", 3)
    monkeypatch.setattr(matrix, "DENSE", dense)
    order = torch.tensor([19, 0, 5, 5, 12, 7, 1, 18])
    stored = spilled(X, tmp_path)
    assert torch.equal(stored[order], X[order])
    with open(stored.files[0][0], "ab") as file:
        file.truncate(4 * 3 * 19)  # a file that was cut is an error, not other numbers
    with pytest.raises(ValueError, match="reshape"):
        stored[order]


SCATTERED = """
import resource, sys
from pathlib import Path
import torch
from unskew.core.matrix import Column, Matrix
large, rows = Path(sys.argv[1]), 2_000_000
with open(large, "wb") as file:
    file.truncate(256 * rows)
stored = Matrix(((large, 64),), rows)
stored[torch.arange(0, 4000, 2)]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
stored[torch.arange(0, rows, 20)]
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3)
"""


def test_scattered_rows_do_not_bring_the_file_into_memory(tmp_path):
    # 100,000 rows, 25.6 MB, from every page of a file of 512 MB.
    done = subprocess.run([sys.executable, "-c", SCATTERED, str(tmp_path / "x.f32")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 200


def test_a_file_that_was_not_finished_is_not_there(tmp_path):
    with pytest.raises(AssertionError), writing(tmp_path / "x.f32", 3) as add:
        add(X[:, :2])  # too narrow
    assert list(tmp_path.iterdir()) == []


def test_columns_stand_side_by_side(tmp_path):
    one, two = spilled(X, tmp_path), X[:, :1] + 0.5
    both = beside([one, two, one.only(torch.arange(20).flip(0))])
    assert torch.equal(both[slice(0, 20)], torch.cat([X, two, X.flip(0)], 1))
    assert torch.equal(beside([X, two]), torch.cat([X, two], 1))


def test_temporary_files_go_with_the_last_matrix(tmp_path):
    spill = Spill(tmp_path)
    spill.add(X[:5])
    spill.add(X[:0])
    spill.add(X[5:])
    whole = spill.matrix()
    part = whole.only(torch.tensor([3]))
    del whole
    gc.collect()
    assert torch.equal(part[slice(0, 1)], X[[3]])
    assert len(list(tmp_path.iterdir())) == 1
    del part
    gc.collect()
    assert list(tmp_path.iterdir()) == []
    gone = Spill(tmp_path)
    gone.add(X)
    gone.drop()
    assert list(tmp_path.iterdir()) == []


def test_slices_cover_every_row_once():
    assert [k for part in slices(10, 4) for k in range(10)[part]] == list(range(10))
    assert list(slices(0)) == []


@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
def test_a_column_is_its_parts_one_after_another(shape):
    g = torch.Generator().manual_seed(0)
    parts = [torch.rand(rows, *shape, generator=g, dtype=torch.float64) for rows in (0, 1, 4, 0, 7, 300, 2)]
    column = Column()
    for part in parts:
        column.add(part)
    assert len(column) == 314
    torch.testing.assert_close(column.whole(), torch.cat(parts), rtol=0, atol=0)
    assert column.whole().dtype == torch.float64


def test_a_column_without_rows_keeps_its_width_and_kind():
    column = Column()
    column.add(torch.zeros(0, 5, dtype=torch.long))
    assert (column.whole().shape, column.whole().dtype) == ((0, 5), torch.long)
