"""Named columns for samples: a bias score, a weight and a prediction are the same kind of thing."""

import io
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.failures import refusing
from unskew.core.files import replacing, whole_folder
from unskew.core.tables import read_parquet

LARGE = 2_000_000  # rows of a table in one file
SHARD = 1_000_000  # rows of a part of a larger one


def shards(path: Path) -> list[Path]:
    """The parts of a table in a folder, in order; none if the path is something else."""
    return sorted(path.glob("part-*.parquet")) if path.is_dir() else []


@dataclass(frozen=True, slots=True)
class Table:
    """Named columns for samples: a bias score, a weight and a prediction are the same kind of thing."""

    frame: pl.DataFrame  # has the column `index`: sample ids, each once
    made_by: dict[str, Any] = field(default_factory=dict)  # name, settings, fingerprint of the source

    def __post_init__(self) -> None:
        if "index" not in self.frame.columns:
            raise UserError(f"a table needs the column 'index', got {', '.join(self.frame.columns)}")
        if not self.frame["index"].dtype.is_integer():
            raise UserError(f"the column 'index' must hold whole numbers, but holds {self.frame['index'].dtype}")
        if self.frame["index"].null_count() or int(self.frame["index"].min() or 0) < 0:  # type: ignore[arg-type]
            raise UserError("the column 'index' has empty or negative sample ids")
        if int(self.frame["index"].max() or 0) >= 2**63:  # type: ignore[arg-type]
            raise UserError("the column 'index' has sample ids that are too large")
        if self.frame["index"].n_unique() != len(self.frame):
            raise UserError("the column 'index' repeats some sample ids; each must appear once")

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def index(self) -> Tensor:
        return torch.from_numpy(self.frame["index"].to_numpy().astype("int64", copy=True))

    def to_polars(self) -> pl.DataFrame:
        """The table as a polars frame: `frame`."""
        return self.frame

    def to_pandas(self) -> Any:
        """The table as a pandas frame, which needs pandas."""
        return self.frame.to_pandas()

    def __getitem__(self, columns: Any) -> Any:
        """Columns or rows, as of the polars frame."""
        return self.frame[columns]

    def parts(self, *columns: str) -> Iterator["Table"]:
        """The table itself, whole: one that is read from its files (`TableFile`) has several."""
        yield self

    def _repr_html_(self) -> str:
        return self.frame._repr_html_()

    def column(self, name: str) -> Tensor:
        """A numeric column as a tensor; a list column becomes a matrix."""
        if name not in self.frame.columns:
            raise UserError(f"the table has no column {name!r}; it has {', '.join(self.frame.columns)}")
        series = self.frame[name]
        if isinstance(series.dtype, (pl.List, pl.Array)):
            if not series.dtype.inner.is_numeric() or series.null_count():  # type: ignore[union-attr,unused-ignore]
                raise UserError(f"column {name!r} must hold lists of numbers, but holds {series.dtype}")
            width = 0 if series.is_empty() else len(series[0])
            if (series.list.len() if isinstance(series.dtype, pl.List) else series.arr.len()).n_unique() > 1:
                raise UserError(f"column {name!r} holds lists of different lengths")
            return torch.from_numpy(series.explode().to_numpy().copy()).reshape(len(series), width)
        if not (series.dtype.is_numeric() or series.dtype == pl.Boolean):
            raise UserError(f"column {name!r} must hold numbers, but holds {series.dtype}")
        return torch.from_numpy(series.to_numpy().copy())

    def save(self, path: Path) -> None:
        """Write a Parquet file; of more than LARGE rows a folder of this name, with a part for every million of them."""
        if len(self) <= LARGE:
            if path.is_dir() and self.is_at(path):  # a larger result was here
                shutil.rmtree(path)
            with replacing(path) as part:
                self._write(self.frame, part)
            return
        path.unlink(missing_ok=True) if path.is_file() else None
        with whole_folder(path) as folder:
            for number, frame in enumerate(self.frame.iter_slices(SHARD)):
                self._write(frame, folder / f"part-{number:05d}.parquet")

    def write(self, path: Path) -> None:
        """Write all rows into one file, as they are."""
        self._write(self.frame, path)

    def _write(self, frame: pl.DataFrame, path: Path) -> None:
        packed = io.BytesIO()
        frame.write_parquet(packed, metadata={"unskew": json.dumps(self.made_by)})
        path.write_bytes(packed.getbuffer())  # a full disk then raises an ordinary OSError

    @staticmethod
    def is_at(path: Path) -> bool:
        """Whether a table lies there: a file, or a folder of parts."""
        return path.is_file() or bool(shards(path))

    @classmethod
    def read(cls, path: Path, columns: Sequence[str] = ()) -> "Table":
        """The table at a path; of its columns only these, if it has them all: nothing else is then read from the disk."""
        parts = shards(path) or [path]
        read = [read_parquet(part, columns) for part in parts]
        frame, metadata = pl.concat([frame for frame, _ in read]) if len(read) > 1 else read[0][0], read[0][1]
        with refusing(f"{path}: its metadata is not unskew's"):
            made_by = json.loads(metadata.get("unskew", "{}"))
        if not isinstance(made_by, dict):
            raise UserError(f"{path}: its metadata is not unskew's, but {type(made_by).__name__}")
        try:
            return cls(frame, made_by)
        except UserError as error:
            raise UserError(f"{path}: {error}") from None
