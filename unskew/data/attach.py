"""A bias column from a table that was made for a source, such as an audit's scores: `--bias audit/scores.parquet:slice`."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import torch

from unskew.core.errors import UserError, suggest
from unskew.data.dataset import DataSet
from unskew.data.readers.columns import codes
from unskew.records import Table


def table_and_column(name: str) -> tuple[Path, str] | None:
    """The table and the column that a bias name stands for; None for a column of the source itself.

    >>> table_and_column("place") is None
    True
    """
    path, colon, column = name.rpartition(":")
    return (Path(path).expanduser().absolute(), column) if colon and path.lower().endswith(".parquet") and column else None


def settled(names: Sequence[str]) -> tuple[str, ...]:
    """Bias names with absolute tables: a run may be judged from another working directory."""
    found = ((name, table_and_column(name)) for name in names)
    return tuple(name if there is None else f"{there[0]}:{there[1]}" for name, there in found)


def attach(data: DataSet, names: Sequence[str]) -> DataSet:
    """The data set with exactly these bias columns, in this order: its own, and columns of tables by sample id.

    Rows that a table does not have are missing a value. Which pairs are aligned is counted, as in any table.
    """
    own = data.only_bias([name for name in names if table_and_column(name) is None])
    columns, titles, values = [], [], []
    for name in names:
        there = table_and_column(name)
        if there is None:
            k = own.bias_index(name)
            columns.append(own.bias[:, k])
            titles.append(name)
            values.append(own.bias_values[k])
            continue
        table = _read(*there, data)
        code, words = codes(table.frame[there[1]], str(there[0]))
        column = torch.full((len(data),), -1)
        column[table.index] = code
        columns.append(column)
        titles.append(there[1])
        values.append(words)
    if len(set(titles)) < len(titles):
        raise UserError(f"--bias: two columns are called {next(t for t in titles if titles.count(t) > 1)!r}; name each once")
    return dataclasses.replace(
        data, bias=torch.stack(columns, 1), bias_names=tuple(titles), bias_values=tuple(values),
        aligned_by_design=None, neither_by_design=None,
    )  # fmt: skip


def _read(path: Path, column: str, data: DataSet) -> Table:
    table = Table.read(path, ("index", column))
    if column not in table.frame.columns:
        raise UserError(f"{path}: no bias column {column!r}{suggest(column, table.frame.columns)}")
    if not data.made(table.made_by):
        raise UserError(
            f"no bias column {column!r} for {data.name}: {path} was made from another source, or it has changed since"
        )
    if len(table) and int(table.index.max()) >= len(data):
        raise UserError(f"{path} has sample id {int(table.index.max())}, but {data.name} has only {len(data)} rows")
    return table
