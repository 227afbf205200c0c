"""Parquet shards with a column of pictures, as Hugging Face writes them: a struct of `bytes` and `path`, or plain binary.

A row group is read as a whole: it is what a process holds, and what the order of training visits once. Names of classes come from the
schema that Hugging Face attaches. Needs pyarrow (unskew[shards]).
"""

import io
import json
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import polars as pl

from unskew.core.errors import UserError
from unskew.core.failures import refusing
from unskew.data.manifest import Look, look_at
from unskew.data.readers.stores import opened

NAMES = ("image", "img", "picture", "jpg", "jpeg", "png", "image_bytes", "bytes")  # of binary columns that hold pictures
LARGEST_GROUP = 2**30  # bytes of a row group's pictures
HELD = 2**28  # bytes of row groups that a process holds; at least one


def library() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise UserError("shards of pictures in Parquet files need pyarrow: pip install 'unskew[shards]'") from None
    return pyarrow.parquet


def picture_column(schema: Any) -> str:
    """The column of pictures of a polars schema; empty if there is none.

    >>> picture_column({"label": pl.Int64(), "image": pl.Struct({"bytes": pl.Binary(), "path": pl.String()})})
    'image'
    """
    structs = [n for n, kind in schema.items() if isinstance(kind, pl.Struct) and pl.Field("bytes", pl.Binary) in kind.fields]
    plain = [n for n, kind in schema.items() if kind == pl.Binary]
    named = [n for n in NAMES if n in (*structs, *plain)]
    return (named or structs or (plain if len(plain) == 1 else []) or [""])[0]


def has_pictures(path: Path) -> bool:
    """Whether a Parquet file of this machine has such a column; a damaged file has none."""
    try:
        return bool(picture_column(pl.read_parquet_schema(path)))
    except (pl.exceptions.PolarsError, OSError):
        return False


def rows(file: IO[bytes], where: str) -> Iterator[tuple[int, int, list[tuple[str, int, Look]], pl.DataFrame]]:
    """Row group by row group: its number, its first row, (name, bytes, look) of its pictures, and its other columns."""
    parquet = library()
    with refusing(f"{where} is no Parquet file, or was cut; write or fetch it again"):
        table = parquet.ParquetFile(file)
        column = _column(table, where)
        names = _class_names(table.schema_arrow.metadata)
        others = [n for n in table.schema_arrow.names if n != column]
        first = 0
        for group in range(table.metadata.num_row_groups):
            _check_group(table, group, column, where)
            pictures = table.read_row_group(group, columns=[column], use_threads=False).column(0)
            looks = [_looked(value, first + k) for k, value in enumerate(pictures)]
            yield group, first, looks, _others(table, group, others, names)
            first += len(looks)


def _column(table: Any, where: str) -> str:
    schema = pl.from_arrow(table.schema_arrow.empty_table())
    assert isinstance(schema, pl.DataFrame)
    column = picture_column(schema.schema)
    if not column:
        raise UserError(f"{where}: no column of pictures (binary, or a struct with bytes); it has {', '.join(schema.columns)}")
    return column


def _others(table: Any, group: int, others: list[str], names: dict[str, list[str]]) -> pl.DataFrame:
    frame = pl.from_arrow(table.read_row_group(group, columns=others, use_threads=False)) if others else pl.DataFrame()
    assert isinstance(frame, pl.DataFrame)
    frame = frame.select([n for n, kind in frame.schema.items() if kind != pl.Binary and not isinstance(kind, pl.Struct)])
    coded = [n for n in names if n in frame.columns and frame[n].dtype.is_integer()]
    texts = [pl.col(n).replace_strict(dict(enumerate(names[n])), default=None, return_dtype=pl.String) for n in coded]
    return frame.with_columns(texts)


def _check_group(table: Any, group: int, column: str, where: str) -> None:
    about = table.metadata.row_group(group)
    parts = [about.column(k) for k in range(about.num_columns)]
    size = sum(p.total_uncompressed_size for p in parts if p.path_in_schema.split(".")[0] == column)
    if size > LARGEST_GROUP:
        raise UserError(
            f"{where}: row group {group} holds {size / 1e9:.1f} GB of pictures, which must fit into memory; write the shard with "
            f"smaller row groups (100 rows), at most {LARGEST_GROUP / 1e9:.1f} GB each"
        )


def _class_names(metadata: dict[bytes, bytes] | None) -> dict[str, list[str]]:
    """Names of the classes by column, from the schema that Hugging Face attaches."""
    try:
        features = json.loads((metadata or {}).get(b"huggingface", b"{}"))["info"]["features"]
        return {str(n): [str(c) for c in f["names"]] for n, f in features.items() if f.get("_type") == "ClassLabel"}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _looked(value: Any, row: int) -> tuple[str, int, Look]:
    content, name = _content(value)
    look = look_at(io.BytesIO(content))
    safe = name.replace("\\", "/").rpartition("/")[2] if name else ""
    return f"{row}{'-' + safe if safe else ''}", len(content), look if content else look._replace(reason="there is no image")


def _content(value: Any) -> tuple[bytes, str]:
    """The bytes of a stored picture and its name; none if they are missing. A path without bytes is not followed."""
    stored = value.as_py()
    if isinstance(stored, dict):
        return stored.get("bytes") or b"", str(stored.get("path") or "")
    return stored or b"", ""


class _Groups:
    """Row groups that were read last, in this process; forgotten by a process that is forked from it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.kept: OrderedDict[tuple[str, int], tuple[Any, int]] = OrderedDict()
        self.files: OrderedDict[str, tuple[ExitStack, Any, str]] = OrderedDict()

    def pictures(self, address: str, group: int) -> Any:
        with self.lock:
            key = address, group
            if key in self.kept:
                self.kept.move_to_end(key)
                return self.kept[key][0]
            table, column = self._table(address)
            with refusing(f"{address} has changed since it was indexed, or is damaged; run the same command again"):
                _check_group(table, group, column, address)
                pictures = table.read_row_group(group, columns=[column], use_threads=False).column(0)
            self.kept[key] = pictures, int(pictures.nbytes)
            while len(self.kept) > 1 and sum(size for _, size in self.kept.values()) > HELD:
                self.kept.popitem(last=False)
            return pictures

    def _table(self, address: str) -> tuple[Any, str]:
        if address not in self.files:
            if len(self.files) >= 32:
                self.files.popitem(last=False)[1][0].close()
            stack = ExitStack()
            with refusing(f"{address} has changed since it was indexed, or is damaged; run the same command again"):
                table = library().ParquetFile(stack.enter_context(opened(address)))
                self.files[address] = stack, table, _column(table, address)
        self.files.move_to_end(address)
        return self.files[address][1:]


_groups = _Groups()


def _forget() -> None:
    global _groups
    _groups = _Groups()


if hasattr(os, "register_at_fork"):  # a lock may be held, and files share their place with the other process
    os.register_at_fork(after_in_child=_forget)


def contents(address: str, group: int, first: int, rows: Sequence[int]) -> list[IO[bytes]]:
    """The pictures of these rows of a shard, all of one row group that begins with row `first`."""
    pictures = _groups.pictures(address, group)
    return [io.BytesIO(_content(pictures[row - first])[0]) for row in rows]
