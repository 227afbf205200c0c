"""Tables in files, read by polars: whatever is wrong with one is one line that names it."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import polars as pl

from unskew.core.errors import UserError
from unskew.core.failures import refusing

T = TypeVar("T")


def read_parquet(path: Path) -> tuple[pl.DataFrame, dict[str, str]]:
    """The rows of a Parquet file and the text that its writer attached to it."""
    return _read(path, "a Parquet table", lambda: (pl.read_parquet(path), pl.read_parquet_metadata(path)))


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
