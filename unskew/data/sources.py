"""Turn any SOURCE a user may name into a DataSet."""

import dataclasses
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import torch

from unskew.core import config, registry
from unskew.core.errors import UserError, suggest
from unskew.core.failures import refusing
from unskew.core.rng import stream
from unskew.data.attach import attach, settled, table_and_column
from unskew.data.dataset import DataSet, Memory, NoInputs
from unskew.data.hide import hiding
from unskew.data.noise import with_noise
from unskew.data.readers.arrays import from_arrays_file
from unskew.data.readers.files import check_names
from unskew.data.readers.folder import METADATA, from_folder, is_result
from unskew.data.readers.frame import from_frame, from_pair, is_frame, is_pair
from unskew.data.readers.hugging_face import from_saved, is_saved
from unskew.data.readers.listed import data_set
from unskew.data.readers.parquet import has_pictures
from unskew.data.readers.remote import from_remote
from unskew.data.readers.shards import COMPRESSED, from_shards, shards_in
from unskew.data.readers.stores import plain_path, protocol_of
from unskew.data.readers.table import PATH_NAMES, from_table
from unskew.data.readers.torch import from_torch
from unskew.data.readers.vectors import from_vectors, is_vectors
from unskew.data.reading import DataConfig
from unskew.data.sets._contract import load as load_set
from unskew.data.tags import resolved
from unskew.records import Table

MOST_ROWS = 10**8  # of a built-in set
MOST_SIZE = 4096  # side of its images in pixels
LONGEST_PATH = 4096  # bytes
TABLES = {".csv", ".tsv", ".jsonl", ".ndjson", ".parquet"}


def as_words(data: DataSet) -> str:
    """A source and how it was read, as command-line arguments: `photos.csv --label species --bias place data.size=64`."""
    words = [data.source or "SOURCE"]
    for key, value in as_read(data).items():
        if key == "bias":
            words += [word for name in value for word in ("--bias", name)]
        elif key in ("label", "split", "group"):
            words += [f"--{key}", ",".join(value) if isinstance(value, tuple) else value]
        else:
            words.append(f"data.{key}={','.join(value) if isinstance(value, tuple) else value}")
    return shlex.join(words)


def as_read(data: DataSet) -> dict[str, Any]:
    """The settings of DataConfig that a data set was read with, where they differ from the defaults."""
    reading = {} if data.reading is None else dataclasses.asdict(data.reading)
    defaults = dataclasses.asdict(DataConfig())
    fast = ("memory", "mode", "workers")  # these change how fast it is read, not what is read
    return {key: value for key, value in reading.items() if value != defaults[key] and key not in fast}


def load_named(
    source: Any,
    *,
    label: str | Sequence[str] = "",
    bias: str | Sequence[str] = "",
    split: str = "",
    group: str = "",
    **settings: Any,
) -> DataSet:
    """`load` with column names as users write them: text separated by commas, or a list."""
    columns: dict[str, Any] = {"label": _listed(label), "bias": _listed(bias), "split": split, "group": group}
    return load(source, without_inputs=True, **{key: value for key, value in columns.items() if value}, **settings)


def _listed(names: str | Sequence[str]) -> tuple[str, ...]:
    return tuple(filter(None, names.split(","))) if isinstance(names, str) else tuple(names)


def load(source: Any, cfg: DataConfig | None = None, *, without_inputs: bool = False, **settings: Any) -> DataSet:
    """A data set from anything that can be a source; settings are those of DataConfig.

    A table of labels and attributes alone is refused unless `without_inputs`.

    >>> load("planted:rows=200,bias=0.5").bias_names
    ('planted',)
    """
    for name in ("label", "bias"):
        if isinstance(settings.get(name), str):
            settings[name] = tuple(settings[name].split(","))
    cfg = config.build(DataConfig, settings, "data.") if cfg is None else dataclasses.replace(cfg, **settings)
    if _remembered is None or not isinstance(source, (str, Path)):
        return _loaded(source, cfg, without_inputs)
    key = str(source), dataclasses.replace(cfg, keep="", augment="none")
    if key not in _remembered:
        _remembered.clear()  # one data set at a time
        _remembered[key] = _loaded(source, key[1], without_inputs)
    data = _remembered[key]
    data = dataclasses.replace(data, reading=dataclasses.replace(data.reading, keep=cfg.keep, augment=cfg.augment))
    return only_kept(data, cfg.keep) if cfg.keep else data


_remembered: dict[tuple[str, DataConfig], DataSet] | None = None


@contextmanager
def remembering() -> Iterator[None]:
    """Inside, the last source that was read by name is not read again. For several trainings on one source in one process."""
    global _remembered
    before, _remembered = _remembered, {} if _remembered is None else _remembered
    try:
        yield
    finally:
        _remembered = before


def _loaded(source: Any, cfg: DataConfig, without_inputs: bool) -> DataSet:
    asked, tagged = cfg.bias, resolved(str(source), cfg.bias) if isinstance(source, (str, Path)) else cfg.bias
    named = settled(tagged)
    data, cfg = _read(source, dataclasses.replace(cfg, bias=tuple(n for n in named if table_and_column(n) is None)))
    if isinstance(data.inputs, NoInputs) and not without_inputs:
        raise UserError(data.inputs.reason)
    if cfg.hide and not data.paths:  # files are covered while they are read
        data = _hide(data, cfg)
    elif cfg.hide and isinstance(source, DataSet):
        raise UserError("data.hide: pass the table that lists the images, not a DataSet made from it")
    both = next(
        (a for a, b in zip(asked, tagged, strict=True) if a != b and a in (*data.bias_names, *data.columns.columns)), None
    )
    if both is not None:
        raise UserError(f"--bias {both}: {data.name} has a column and a tag of this name; write TABLE.parquet:{both} for the tag")
    if any(map(table_and_column, named)):
        data, cfg = attach(data, named), dataclasses.replace(cfg, bias=named)
    elif cfg.bias and tuple(cfg.bias) != data.bias_names:
        data = data.only_bias(cfg.bias)
    if not isinstance(source, DataSet):
        data = dataclasses.replace(data, reading=cfg)
    data = relabelled(data, Table.read(Path(cfg.relabel)), f"data.relabel={cfg.relabel}") if cfg.relabel else data
    data = with_noise(data, cfg.noise, cfg.seed)
    data = at_most(data, cfg.most, cfg.seed) if cfg.most else data
    return only_kept(data, cfg.keep) if cfg.keep else data


def _no_other_splits(cfg: DataConfig, read: DataConfig | None, what: str) -> None:
    """Splits by group or order are made while a source is read: raise where that is over, or never was."""
    for name in ("group", "order"):
        value = getattr(cfg, name)
        if value and (read is None or getattr(read, name) != value):
            raise UserError(f"data.{name}={value}: {what}")


def _read(source: Any, cfg: DataConfig) -> tuple[DataSet, DataConfig]:
    if isinstance(source, DataSet):
        _no_other_splits(cfg, source.reading, f"{source.name} already has its splits; pass the source it was read from")
        return source, cfg
    if isinstance(source, (str, Path)):
        return _from_text(str(source), cfg)
    if is_frame(source):
        return from_frame(source, cfg), cfg
    if is_pair(source):
        return from_pair(source, cfg), cfg
    if isinstance(source, (Mapping, Sized)) and hasattr(source, "__getitem__"):
        return from_torch(source, cfg), cfg
    raise UserError(
        f"a source must be a name, a path, a pandas or polars frame, a pair (X, y) or a torch Dataset with a length, "
        f"got {type(source).__name__}"
    )


def at_most(data: DataSet, most: int, seed: int) -> DataSet:
    """Move all but `most` training rows, and a fifth as many of val, drawn at random, to a split `unused`."""
    split, splits = data.split.clone(), (*data.splits, "unused")
    for name, limit in (("train", most), ("val", max(1, most // 5))):
        rows = data.rows(name) if data.has(name) else data.split[:0]
        order = torch.randperm(len(rows), generator=stream(seed, "most", name))
        split[rows[order[limit:]]] = len(splits) - 1
    if bool((split == data.split).all()):
        return data
    note = f"data.most={most}: {int((split == len(splits) - 1).sum())} rows of train and val left unused, drawn at random"
    return data.derived(f"most {most} {seed}", split=split, splits=splits, notes=(*data.notes, note))


def only_kept(data: DataSet, path: str) -> DataSet:
    """Move training rows of weight 0 in a table to a separate split, `dropped`, which nothing trains on."""
    table = Table.read(Path(path), ("index", "weight"))
    if not data.made(table.made_by):
        raise UserError(f"data.keep={path} was made from another source, or this one has changed since")
    gone = table.index[table.column("weight") <= 0]
    if len(gone) and int(gone.max()) >= len(data):
        raise UserError(f"data.keep={path} has sample id {int(gone.max())}, but {data.name} has only {len(data)} rows")
    gone = gone[data.split[gone] == data.splits.index("train")]
    split, splits = data.split.clone(), (*data.splits, "dropped")
    split[gone] = len(splits) - 1
    note = f"{len(gone)} training rows left out, as they have weight 0 in {Path(path).name}"
    return data.derived(gone.numpy().tobytes(), split=split, splits=splits, notes=(*data.notes, note))


def relabelled(data: DataSet, table: Table, what: str) -> DataSet:
    """Give rows the label that the table's column `relabel` names; rows where it is empty keep theirs."""
    if data.multi_label:
        raise UserError(f"{what}: rows of {data.name} have several labels; only one class per row can be changed")
    if not data.made(table.made_by):
        raise UserError(f"{what} was made from another source, or this one has changed since")
    if "relabel" not in table.frame.columns:
        raise UserError(f"{what} has no column 'relabel'; it has {', '.join(table.frame.columns)}")
    changed = table.frame.filter(pl.col("relabel").is_not_null())
    index = torch.tensor(changed["index"].to_list(), dtype=torch.long)
    names = [str(name) for name in changed["relabel"].to_list()]
    unknown = next((name for name in names if name not in data.classes), None)
    if unknown is not None:
        raise UserError(f"{what}: no class {unknown!r}{suggest(unknown, data.classes)}")
    if len(index) and int(index.max()) >= len(data):
        raise UserError(f"{what} has sample id {int(index.max())}, but {data.name} has only {len(data)} rows")
    y = data.y.clone()
    y[index] = torch.tensor([data.classes.index(name) for name in names], dtype=torch.long)
    if bool((y == data.y).all()):
        return data
    return data.derived(y.numpy().tobytes(), y=y, notes=(*data.notes, f"{int((y != data.y).sum())} labels changed by hand"))


def _hide(data: DataSet, cfg: DataConfig) -> DataSet:
    """Hide boxes in image arrays, once."""
    hidden = hiding(data.columns, cfg, data.source or data.name)
    if hidden is None:
        return data
    if not isinstance(data.inputs, Memory):
        raise UserError(f"{data.name}: data.hide needs images in files or arrays")
    inputs = dataclasses.replace(data.inputs, x=hidden.arrays(data.inputs.x), whole=None)
    return dataclasses.replace(data, inputs=inputs, fingerprint="", former="", notes=(*data.notes, hidden.note))


def _from_text(text: str, cfg: DataConfig) -> tuple[DataSet, DataConfig]:
    built_in = text.partition(":")[0].replace("_", "-") in registry.names("data")
    if built_in and ":" in text:
        return _built_in(text, cfg)
    check_names([text], "the source")
    text = plain_path(text)
    if "\0" in text or len(os.fsencode(text)) > LONGEST_PATH or any(len(os.fsencode(p)) > 255 for p in text.split("/")):
        raise UserError(f"unknown source {text[:60]!r}…: no path is so long, or holds a NUL")
    if protocol_of(text):
        if cfg.hide and cfg.mask:
            raise UserError(f"{text}: data.mask names files of this machine; use boxes, or copy the source")
        return from_remote(text, cfg), cfg
    try:
        path = Path(text).expanduser().absolute()  # absolute: a run may be evaluated from another working directory
    except RuntimeError:  # no home folder for ~somebody
        raise UserError(f"unknown source {text!r}: there is no such home folder") from None
    if built_in and (not path.exists() or is_result(path)):
        return _built_in(text, cfg)
    if path.is_dir():
        return _from_folder(path, text, cfg), cfg
    if path.is_file():
        return _from_file(path, text, cfg), cfg
    return _built_in(text, cfg)


def _from_folder(path: Path, text: str, cfg: DataConfig) -> DataSet:
    if is_result(path):
        raise UserError(f"{text} is a run or an audit, not data; pass the source it was made from")
    if is_saved(path):
        if cfg.hide:
            raise UserError(f"{text}: data.hide works only on tables of image files, .npz files and built-in data sets")
        return from_saved(path, cfg)
    if (path / "data.npz").is_file():  # what `unskew data` writes
        return from_arrays_file(path / "data.npz", cfg)
    if is_vectors(path):
        return from_vectors(path, cfg)
    with refusing(f"{text} cannot be read"):
        shards = [] if any((path / name).is_file() for name in METADATA) else shards_in(path)
        return from_shards(path, shards, cfg) if shards else from_folder(path, cfg)


def _from_file(path: Path, text: str, cfg: DataConfig) -> DataSet:
    if path.suffix == ".npz":
        return from_arrays_file(path, cfg)
    if path.name.lower().endswith((".tar", *COMPRESSED)) or _holds_pictures(path):
        with refusing(f"{text} cannot be read as a shard of pictures"):
            return from_shards(path, [path], cfg)
    if path.suffix.lower() in TABLES:
        with refusing(f"{text} cannot be read as a table of rows"):
            return from_table(path, cfg)
    raise UserError(
        f"{text}: cannot read {path.suffix or 'a file without extension'}; allowed: .npz, .tar, {', '.join(sorted(TABLES))}"
    )


def _holds_pictures(path: Path) -> bool:
    """Whether a Parquet file is a shard: it has a column of pictures, and none of paths."""
    if path.suffix.lower() != ".parquet" or not has_pictures(path):
        return False
    return not any(name in PATH_NAMES for name in pl.read_parquet_schema(path))


def _built_in(text: str, cfg: DataConfig) -> tuple[DataSet, DataConfig]:
    name, _, settings = text.partition(":")
    looks_like_a_file = "/" in name or Path(name).suffix in {*TABLES, ".npz", ".npy"}
    if looks_like_a_file or ("." not in name and name.replace("_", "-") not in registry.names("data")):
        raise UserError(
            f"unknown source {text!r}: not a file, a folder or a built-in data set{suggest(name, registry.names('data'))}"
        )
    built_in = load_set(name)
    values = config.words(pieces(settings))
    noise = values.pop("noise", None)
    if noise is not None:
        # Another seed of the set also flips other labels.
        seed = config.read(values.get("seed", cfg.seed), int, "seed")
        cfg = dataclasses.replace(cfg, noise=config.read(noise, float, "noise"), seed=seed)
    set_cfg: Any = config.build(built_in.config, values)
    _check_sizes(set_cfg, name)
    if built_in.listing is not None:
        data = data_set(built_in.listing(set_cfg), cfg)
    else:
        assert built_in.make is not None  # the contract requires one of the two
        _no_other_splits(cfg, None, f"{name} has the splits it is built with")
        data = built_in.make(set_cfg)
    return dataclasses.replace(data, source=text), cfg


def _check_sizes(cfg: Any, name: str) -> None:
    """Refuse a set that no machine could hold, before anything is drawn."""
    for key, most in (("rows", MOST_ROWS), ("test", MOST_ROWS), ("size", MOST_SIZE), ("extra", MOST_ROWS)):
        value = getattr(cfg, key, 0)
        if isinstance(value, int) and value > most:
            raise UserError(f"{name}:{key}={value}: must be at most {most}")


def pieces(settings: str) -> Sequence[str]:
    """Split `a=1,b=0.5,0.5,c=x` into its settings; a comma inside a value belongs to the value.

    >>> pieces("ratio=0.9,shares=0.5,0.5,seed=1")
    ['ratio=0.9', 'shares=0.5,0.5', 'seed=1']
    """
    pieces: list[str] = []
    for part in filter(None, settings.split(",")):
        if "=" in part or not pieces:
            pieces.append(part)
        else:
            pieces[-1] += "," + part
    return pieces
