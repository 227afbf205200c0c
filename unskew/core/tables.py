"""Tables in files, read by polars: whatever is wrong with one is one line that names it."""

import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import polars as pl
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.failures import refusing

T = TypeVar("T")


def read_parquet(path: Path, columns: Sequence[str] = ()) -> tuple[pl.DataFrame, dict[str, str]]:
    """The rows of a Parquet file and the text that its writer attached to it; only `columns`, if it has them all."""

    def read() -> tuple[pl.DataFrame, dict[str, str]]:
        names = list(columns) if columns and set(columns) <= set(pl.read_parquet_schema(path)) else None
        return pl.read_parquet(path, columns=names), pl.read_parquet_metadata(path)

    return _read(path, "a Parquet table", read)


def words_of(words: Sequence[str], code: Tensor) -> pl.Series:
    """Codes as the words they stand for, without a Python object for every row.

    >>> import torch
    >>> words_of(("cat", "dog"), torch.tensor([1, 0])).to_list()
    ['dog', 'cat']
    """
    return pl.Series(list(words), dtype=pl.String).gather(code.numpy())


def column_digest(series: pl.Series) -> str:
    """SHA-256 of a column's values: of its numbers as they are stored, of anything else as text."""
    digest = hashlib.sha256(str(series.dtype).encode())
    for start in range(0, len(series), 1_000_000):
        part = series.slice(start, 1_000_000)
        if part.dtype.is_numeric() or part.dtype == pl.Boolean:
            digest.update(part.is_null().to_numpy().tobytes())
            digest.update(part.fill_null(False if part.dtype == pl.Boolean else 0).to_numpy().tobytes())
        else:
            words = part.to_list() if part.dtype.is_nested() else part.cast(pl.String).to_list()
            digest.update("\0".join("\1" if word is None else str(word) for word in words).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def read_ndjson(path: Path) -> pl.DataFrame:
    return _read(path, "a table", lambda: pl.read_ndjson(path, infer_schema_length=None))


def read_csv(path: Path, separator: str) -> pl.DataFrame:
    return _read(path, "a table", lambda: pl.read_csv(path, separator=separator, infer_schema_length=None))


def _read(path: Path, what: str, reader: Callable[[], T]) -> T:
    if not path.is_file():
        raise UserError(f"no table {str(path)!r}")
    with refusing(f"{path} cannot be read as {what}"), _without_panics():
        return reader()


@contextmanager
def _without_panics() -> Iterator[None]:
    """Inside, nothing reaches standard error: polars prints a panic there itself, beside the error it raises."""
    try:
        sys.stderr.flush()
        kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    except (OSError, ValueError, AttributeError):  # standard error is closed
        yield
        return
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
