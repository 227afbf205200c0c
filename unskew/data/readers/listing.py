"""Real data sets in their official layout on disk: the files they need, which of them exist, and their rows.

Nothing here imports torch: `unskew data NAME --check` answers at once.
"""

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unskew.core.errors import UserError

if TYPE_CHECKING:
    import polars as pl

EXTENSIONS = {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}


@dataclass(frozen=True, slots=True)
class Need:
    """A file or folder (its name ends in /) of a set, relative to its root, and what it is."""

    path: str
    what: str


@dataclass(frozen=True, slots=True)
class Row:
    """One sample: its file relative to the root, its class (or several labels), its split, its bias values by column."""

    file: str
    label: Any
    split: str
    bias: dict[str, str] = dataclasses.field(default_factory=dict)
    columns: dict[str, Any] = dataclasses.field(default_factory=dict)  # anything else known about it


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """Settings of a set with three official splits."""

    root: str = ""  # folder of the data set
    fold: int = 1  # official split, 1 to 3

    def __post_init__(self) -> None:
        if self.fold not in (1, 2, 3):
            raise UserError(f"fold={self.fold}: must be 1, 2 or 3")


@dataclass(frozen=True, slots=True)
class Listing:
    """A set's rows before any image is opened."""

    name: str
    root: Path
    rows: Sequence[Row]
    classes: tuple[str, ...]
    bias_values: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    clips: bool = False
    notes: tuple[str, ...] = ()


def check_root(root: str, needs: Iterable[Need], name: str) -> Path:
    """The root of a set; raises if anything it needs is missing, naming all of it."""
    if not root:
        raise UserError(
            f"{name} is read from disk: name its folder, {name}:root=DIR; unskew data {name} --root DIR --check lists its files"
        )
    place = Path(root).expanduser()
    missing = [n.path for n in needs if not present(place, n)]
    if missing:
        raise UserError(
            f"{name}: {place} lacks {', '.join(missing)}; unskew data {name} --root {place} --check describes each of them"
        )
    return place


def present(root: Path, need: Need) -> bool:
    place = root / need.path
    return place.is_dir() if need.path.endswith("/") else place.is_file()


def inventory(root: Path, needs: Iterable[Need]) -> list[dict[str, Any]]:
    """What a set needs and whether it exists: for `unskew data NAME --root DIR --check`."""
    return [{"path": n.path, "what": n.what, "there": present(root, n)} for n in needs]


def images_below(folder: Path) -> list[Path]:
    """Image files under a folder, sorted, without hidden ones."""
    return sorted(p for p in folder.rglob("*") if p.suffix.lower() in EXTENSIONS and p.is_file() and not p.name.startswith("."))


def read_json(path: Path) -> Any:
    """The content of a JSON file; raises if it is damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not a complete JSON file ({error}); download it again") from None


def read_lines(path: Path, parse: Callable[[list[str]], Any], what: str, skip: int = 0) -> list[Any]:
    """A text file parsed line by line; raises with the number of the first bad line."""
    entries = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read as text ({error})") from None
    for number, line in enumerate(lines[skip:], skip + 1):
        if line.strip():
            try:
                entries.append(parse(line.split()))
            except (ValueError, IndexError, KeyError):
                raise UserError(f"{path}:{number}: {line.strip()[:60]!r} is not {what}") from None
    if not entries:
        raise UserError(f"{path} has no lines; each must be {what}")
    return entries


def chosen_rows(rows: Sequence[Row], folder: str, name: str, published: Mapping[int, str]) -> tuple[list[Row], tuple[str, ...]]:
    """The rows that the lists in a folder name, in the splits of the lists, and notes; a line is an id or a file name."""
    known = {key: row for row in rows for key in _names(row.file)}
    found: list[Row] = []
    for split in ("train", "val", "test"):
        path = Path(folder).expanduser() / f"{split}.txt"
        if not path.is_file():
            raise UserError(
                f"{name}: lists={folder} lacks {split}.txt; each of train.txt, val.txt and test.txt names one image per line"
            )
        listed = read_lines(path, lambda words: Path(words[0]).stem.lstrip("0") or "0", "an id or a file name")
        missing = [one for one in listed if one not in known]
        if missing:
            raise UserError(
                f"{path}: {len(missing)} of {len(listed)} images are not in the annotations; the first is {missing[0]}"
            )
        found += [dataclasses.replace(known[one], split=split) for one in dict.fromkeys(listed)]
    count = sum(row.split == "train" for row in found)
    what = published.get(count)
    sizes = ", ".join(f"{n:,} ({kind})" for n, kind in published.items())
    return found, (
        f"{count:,} training images, as published: {what}" if what else f"{count:,} training images; published: {sizes}",
    )


def _names(file: str) -> tuple[str, str]:
    """What a list may call a file: its name, or the number at the end of it."""
    stem = Path(file).stem.lstrip("0")
    return stem, stem.rpartition("_")[2].lstrip("0") or "0"


def read_table(path: Path, columns: Sequence[str]) -> "pl.DataFrame":
    """A CSV with at least these columns."""
    import polars as pl

    try:
        frame = pl.read_csv(path, infer_schema=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise UserError(f"{path} cannot be read as a table ({str(error).splitlines()[0]})") from None
    missing = [c for c in columns if c not in frame.columns]
    if missing:
        raise UserError(f"{path}: no column {', '.join(missing)}; it has {', '.join(frame.columns)}")
    return frame
