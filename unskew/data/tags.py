"""Tags: bias columns that `unskew explore` writes into a table beside a source; `--bias TAG` finds them by their plain name."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from unskew.core import registry
from unskew.core.errors import UserError
from unskew.core.failures import refusing
from unskew.core.fetch import cache
from unskew.core.files import safe_name
from unskew.data.readers.folder import is_result

ENDING = ".tags.parquet"
_INSIDE = ("metadata.csv", "metadata.jsonl", "metadata.parquet", "data.npz")  # the file that stands for the folder it lies in
MARKS = ("index", "weight", "relabel")  # columns of the table that are no tags
LONGEST = 40  # characters of a tag's name


def tags_path(source: str) -> Path | None:
    """The table of a source's tags: beside a folder or file; in the cache for a built-in set. None if there is no such source.

    >>> tags_path("colored-mnist:ratio=0.9").name
    'colored-mnist-6c391a44.tags.parquet'
    """
    name = source.partition(":")[0]
    built_in = name.replace("_", "-") in registry.names("data")
    if not source or "\0" in source:
        return None
    try:
        path = Path(source).expanduser().absolute()
        exists = path.exists()
    except (OSError, RuntimeError):  # too long a name, or no such home folder
        return None
    if built_in and (":" in source or not exists or is_result(path)):
        return cache() / "tags" / f"{name}-{hashlib.sha256(source.encode()).hexdigest()[:8]}{ENDING}"
    place = path.parent if path.name in _INSIDE and path.is_file() else path
    return place.with_name(place.name + ENDING) if exists and place.name else None


def tag_names(path: Path) -> tuple[str, ...]:
    """The tags that a table holds; columns with a space in their name belong to the tag before the space."""
    if not path.is_file():
        return ()
    with refusing(f"{path} cannot be read as a table of tags"):
        columns = pl.read_parquet_schema(path)
    return tuple(name for name in columns if name not in MARKS and " " not in name)


def resolved(source: str, names: Sequence[str]) -> tuple[str, ...]:
    """Bias names with each tag of the source replaced by TABLE.parquet:TAG."""
    path = tags_path(source) if names else None
    known = () if path is None else tag_names(path)
    return tuple(f"{path}:{name}" if name in known else name for name in names)


def check_tag(name: str) -> str:
    """The name of a tag; raises if it could not be written after --bias.

    >>> check_tag("water-mark")
    'water-mark'
    """
    plain = all(c.isalnum() or c in "-_" for c in name)
    if not name or not plain or len(name) > LONGEST or name in MARKS or safe_name(name) != name:
        raise UserError(
            f"a tag cannot be called {name[:60]!r}: use up to {LONGEST} letters, digits, - and _, but not {', '.join(MARKS)}"
        )
    return name
