"""Every SOURCE a user may name, turned into a DataSet."""

import dataclasses
import hashlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from unskew import config, registry
from unskew.data._arrays import from_arrays_file
from unskew.data._augment import preset
from unskew.data._dataset import DataSet, Memory
from unskew.data._folder import from_folder, is_result
from unskew.data._hide import hiding
from unskew.data._hugging_face import from_saved, is_saved
from unskew.data._listing import data_set
from unskew.data._noise import with_noise
from unskew.data._table import from_table
from unskew.data._torch import from_torch
from unskew.errors import UserError, suggest
from unskew.records import Table

TABLES = {".csv", ".tsv", ".jsonl", ".ndjson", ".parquet"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig:
    """How a source is read."""

    label: tuple[str, ...] = ()  # label column; several make a multi-label task
    bias: tuple[str, ...] = ()  # bias columns; a built-in set's own if none is named
    split: str = ""  # split column
    size: int = 0  # side of the images in pixels; 0: their own if all alike and at most 224, else 224
    mode: Literal["auto", "memory", "stream"] = "auto"  # auto: in memory up to `memory` gigabytes
    memory: float = 4.0
    workers: int = 2  # processes that decode, when streaming
    max_bad: float = 0.01  # share of images that may fail to decode
    holdout: float = 0.1  # share of the training rows for a val or test split that the source lacks
    noise: float = 0.0  # share of training labels flipped to another class
    augment: str = "none"  # none, flip, crop-flip, pgd
    keep: str = ""  # table from unskew repair: its rows of weight 0 are left out of the training rows
    hide: Literal["", "blur", "black"] = ""  # what is done to given boxes or masks
    boxes: tuple[str, ...] = ("x0", "y0", "x1", "y1")  # columns of the boxes, in pixels
    mask: str = ""  # column of mask files, in place of boxes
    blur: float = 10.0  # deviation of the blur, in pixels
    frames: int = 0  # of a clip; 0: inputs are images (8 for a built-in set of clips)
    sampling: Literal["uniform", "random"] = "uniform"  # which frames: the middles of equal parts, or one at random of each
    seed: int = 0  # of the splits, the noise and random frames

    def __post_init__(self) -> None:
        for name in ("max_bad", "holdout"):
            if not 0 <= getattr(self, name) <= 0.5:
                raise UserError(f"data.{name}={getattr(self, name)}: must lie in [0, 0.5]")
        if self.size < 0 or self.workers < 0 or self.memory < 0 or self.frames < 0:
            raise UserError("data.size, data.workers, data.memory and data.frames must not be negative")
        if len(self.boxes) != 4 or self.blur <= 0:
            raise UserError("data.boxes names four columns (x0,y0,x1,y1), and data.blur must be above 0")
        if not 0 <= self.noise < 1:
            raise UserError(f"data.noise={self.noise}: must lie in [0, 1)")
        preset(self.augment)  # a wrong name is told
        if self.mask and not self.hide:
            raise UserError(f"data.mask={self.mask} says where to hide; say how with data.hide=blur or data.hide=black")


def as_words(data: DataSet) -> str:
    """A source and how it was read, as words of a command: `photos.csv --label species --bias place data.size=64`."""
    words = [data.source or "SOURCE"]
    reading = {} if data.reading is None else dataclasses.asdict(data.reading)
    for key, default in dataclasses.asdict(DataConfig()).items():
        value = reading.get(key, default)
        if value == default or key in ("memory", "mode", "workers"):  # these change how fast it is read, not what
            continue
        if key == "bias":
            words += [word for name in value for word in ("--bias", name)]
        elif key in ("label", "split"):
            words += [f"--{key}", ",".join(value) if isinstance(value, tuple) else value]
        else:
            words.append(f"data.{key}={','.join(value) if isinstance(value, tuple) else value}")
    return shlex.join(words)


def load(source: Any, cfg: DataConfig | None = None, **settings: Any) -> DataSet:
    """A data set from a built-in name, a path, a torch Dataset, or a mapping of splits to torch Datasets.

    >>> load("planted:rows=200,bias=0.5").bias_names
    ('planted',)
    """
    if isinstance(settings.get("label"), str):
        settings["label"] = tuple(settings["label"].split(","))
    if isinstance(settings.get("bias"), str):
        settings["bias"] = tuple(settings["bias"].split(","))
    cfg = config.build(DataConfig, settings, "data.") if cfg is None else dataclasses.replace(cfg, **settings)
    if isinstance(source, DataSet):
        data = source
    elif isinstance(source, (str, Path)):
        data, cfg = _from_text(str(source), cfg)
    elif hasattr(source, "__getitem__") and (isinstance(source, Mapping) or hasattr(source, "__len__")):
        data = from_torch(source, cfg)
    else:
        raise UserError(f"a source is a name, a path or a torch Dataset with a length, got {type(source).__name__}")
    if cfg.hide and not data.paths:  # what is in files was hidden as it was read
        data = _hide(data, cfg)
    elif cfg.hide and isinstance(source, DataSet):
        raise UserError("data.hide: give the table that the images are named in, not a data set made from it")
    if cfg.bias and tuple(cfg.bias) != data.bias_names:
        data = data.only_bias(cfg.bias)
    if not isinstance(source, DataSet):
        data = dataclasses.replace(data, reading=cfg)
    data = with_noise(data, cfg.noise, cfg.seed)
    return only_kept(data, cfg.keep) if cfg.keep else data


def only_kept(data: DataSet, path: str) -> DataSet:
    """Training rows that a table gives weight 0 go to a split of their own, `dropped`, which nothing trains on."""
    table = Table.read(Path(path))
    if table.made_by.get("fingerprint") not in (None, data.fingerprint):
        raise UserError(f"data.keep={path} was made from another source, or this one has changed since")
    gone = table.index[table.column("weight") <= 0]
    if len(gone) and int(gone.max()) >= len(data):
        raise UserError(f"data.keep={path}: sample {int(gone.max())}, and {data.name} has {len(data)} rows")
    gone = gone[data.split[gone] == data.splits.index("train")]
    split, splits = data.split.clone(), (*data.splits, "dropped")
    split[gone] = len(splits) - 1
    digest = hashlib.sha256(data.fingerprint.encode() + gone.numpy().tobytes()).hexdigest()[:32]
    note = f"{len(gone)} training rows are left out, as {Path(path).name} says"
    return dataclasses.replace(data, split=split, splits=splits, fingerprint=digest, notes=(*data.notes, note))


def _hide(data: DataSet, cfg: DataConfig) -> DataSet:
    """Boxes of images that are arrays, hidden once and for all."""
    hidden = hiding(data.columns, cfg, data.source or data.name)
    if hidden is None:
        return data
    if not isinstance(data.inputs, Memory):
        raise UserError(f"{data.name}: data.hide needs images in files or arrays")
    inputs = dataclasses.replace(data.inputs, x=hidden.arrays(data.inputs.x))
    return dataclasses.replace(data, inputs=inputs, fingerprint="", notes=(*data.notes, hidden.note))


def _from_text(text: str, cfg: DataConfig) -> tuple[DataSet, DataConfig]:
    built_in = text.partition(":")[0].replace("_", "-") in registry.names("data")
    if built_in and ":" in text:
        return _built_in(text, cfg)
    path = Path(text).expanduser().absolute()  # a run is judged from wherever the user stands then
    if built_in and (not path.exists() or is_result(path)):
        return _built_in(text, cfg)
    if path.is_dir():
        if is_result(path):
            raise UserError(f"{text} is a run or an audit, not data; give the source it was made from")
        if is_saved(path):
            if cfg.hide:
                raise UserError(f"{text}: data.hide works on tables of image files, on .npz files and on built-in sets")
            return from_saved(path, cfg), cfg
        if (path / "data.npz").is_file():  # what `unskew data` writes
            return from_arrays_file(path / "data.npz", cfg), cfg
        return from_folder(path, cfg), cfg
    if path.is_file():
        if path.suffix == ".npz":
            return from_arrays_file(path, cfg), cfg
        if path.suffix.lower() in TABLES:
            return from_table(path, cfg), cfg
        raise UserError(
            f"{text}: cannot read a {path.suffix or 'file without ending'}; allowed: .npz, {', '.join(sorted(TABLES))}"
        )
    return _built_in(text, cfg)


def _built_in(text: str, cfg: DataConfig) -> tuple[DataSet, DataConfig]:
    name, _, settings = text.partition(":")
    looks_like_a_file = "/" in name or Path(name).suffix in {*TABLES, ".npz", ".npy"}
    if looks_like_a_file or ("." not in name and name.replace("_", "-") not in registry.names("data")):
        raise UserError(
            f"no such source {text!r}: neither a file, a folder nor a built-in data set{suggest(name, registry.names('data'))}"
        )
    module = registry.load("data", name)
    values = config.words(pieces(settings))
    noise = values.pop("noise", None)
    if noise is not None:
        # Repeats with another seed of the set get other flips too.
        seed = config.read(values.get("seed", cfg.seed), int, "seed")
        cfg = dataclasses.replace(cfg, noise=config.read(noise, float, "noise"), seed=seed)
    made = config.build(module.Config, values)
    data = data_set(module.listing(made), cfg) if hasattr(module, "listing") else module.make(made)
    return dataclasses.replace(data, source=text), cfg


def pieces(settings: str) -> Sequence[str]:
    """`a=1,b=0.5,0.5,c=x` as its settings: a comma inside a value belongs to the value.

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
