"""A data set: all labels in memory, inputs in memory or decoded on demand, validated on construction."""

import dataclasses
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import polars as pl
import torch
from torch import Tensor

from unskew.core import notebook
from unskew.core.errors import UserError, suggest
from unskew.core.files import safe_name
from unskew.core.workplace import digest as digest_of
from unskew.data.pictures import thumbnails
from unskew.records import Facts
from unskew.stats.alignment import BUILT, COUNTED, Alignment, aligned_pairs, in_words
from unskew.stats.groups import group_id, pair_counts

SPLITS = ("train", "val", "test")


class Inputs(Protocol):
    """The inputs of all rows, addressed by sample id."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one row: (D,), (C, H, W) or (T, C, H, W)."""
        ...

    @property
    def in_memory(self) -> bool: ...

    def rows(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """The raw inputs (uint8 or float) of these ids, and booleans for which of them could be read."""
        ...


@dataclass(frozen=True)
class Memory:
    """Inputs as one tensor: a batch is one gather."""

    x: Tensor  # (N, ...) uint8, or float
    readable: Tensor | None = None  # (N,) False for a row whose file could not be decoded
    in_memory: bool = True
    whole: Tensor | None = None  # (N,) True for a row that is its file's picture, neither resized nor cropped; None: not known

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.x.shape[1:])

    def rows(self, index: Tensor) -> tuple[Tensor, Tensor]:
        fine = torch.ones(len(index), dtype=torch.bool) if self.readable is None else self.readable[index]
        return self.x[index], fine


@dataclass(frozen=True)
class NoInputs:
    """A table of labels and attributes alone: an audit can measure it, nothing can be trained on it."""

    reason: str
    shape: tuple[int, ...] = (0,)
    in_memory: bool = True

    def rows(self, index: Tensor) -> tuple[Tensor, Tensor]:
        raise UserError(self.reason)


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """Rows with labels, bias columns and splits. The row number is the sample id."""

    name: str
    inputs: Inputs
    y: Tensor  # (N,) class codes, or (N, L) zeros and ones
    classes: tuple[str, ...]  # names of the classes, or of the labels
    split: Tensor  # (N,) code into `splits`
    splits: tuple[str, ...] = SPLITS
    bias: Tensor = field(default_factory=lambda: torch.zeros(0, 0, dtype=torch.long))  # (N, A), -1 = missing
    bias_names: tuple[str, ...] = ()
    bias_values: tuple[tuple[str, ...], ...] = ()
    aligned_by_design: tuple[Tensor, ...] | None = None  # (C, V) per bias column, for sets built with a known alignment
    neither_by_design: tuple[Tensor, ...] | None = None  # pairs that are not conflicting either; None: there are none
    alignment_rule: str = BUILT  # how the two were decided
    mean: tuple[float, ...] = ()  # per channel, on inputs in [0, 1]; empty: inputs are used as they are
    std: tuple[float, ...] = ()
    columns: pl.DataFrame = field(default_factory=pl.DataFrame)  # the source's other columns, same rows
    paths: Sequence[str] = ()  # of the rows' files, if there are any; a column of Texts, also of pictures inside shards
    blocks: Tensor | None = None  # (N,) which rows of a shard are read together; None: any row costs the same
    fingerprint: str = ""  # of inputs, labels and splits: naming a bias column does not change it
    former: str = ""  # the fingerprint of version 0.1, which included bias columns: its files are still recognised
    source: str = ""
    reading: Any = None  # the DataConfig it was read with
    carved: tuple[str, ...] = ()  # splits that the source lacked, taken from its training rows
    carved_how: str = "class by class"  # how they were taken
    duplicate_of: Tensor | None = None  # (N,) first row of each row's near-duplicate images, -1: none; None: not looked for
    notes: tuple[str, ...] = ()  # what reading changed, for reports
    unreadable: tuple[tuple[int, str], ...] = ()  # ids whose file could not be decoded, and why

    def __post_init__(self) -> None:
        n = len(self.y)
        if self.bias.numel() == 0 and not self.bias_names:
            object.__setattr__(self, "bias", torch.zeros(n, 0, dtype=torch.long))
        for what, rows in (("split", len(self.split)), ("bias", len(self.bias))):
            if rows != n:
                raise UserError(f"{self.name}: {n} labels but {rows} rows of {what}")
        if n == 0:
            raise UserError(f"{self.name}: no rows")
        outside = next((s for s in self.splits if safe_name(s) != s), None)  # a split names files
        if outside is not None:
            raise UserError(f"{self.name}: a split cannot be called {outside!r}; use letters, digits and . _ + -")
        if self.y.ndim == 1 and not 0 <= int(self.y.min()) <= int(self.y.max()) < len(self.classes):
            raise UserError(f"{self.name}: labels must be codes 0..{len(self.classes) - 1}")
        if len(self.classes) < (1 if self.multi_label else 2):
            raise UserError(f"{self.name}: only one class ({', '.join(self.classes)}); a classifier needs at least two")
        if not self.fingerprint:
            object.__setattr__(self, "fingerprint", self._digest(()))
            object.__setattr__(self, "former", self._digest(self.bias_names) if self.bias_names else self.fingerprint)

    def _digest(self, bias_names: tuple[str, ...]) -> str:
        digest = hashlib.sha256()  # in hardware on most machines: the pixels of 70,000 digits take a tenth of a second
        digest.update(
            repr((self.name, self.classes, self.splits, bias_names, self.inputs.shape)).encode("utf-8", "surrogateescape")
        )
        for part in (self.y, self.split, self.bias if bias_names else self.bias[:, :0]):
            digest.update(part.contiguous().numpy().tobytes())
        if isinstance(self.inputs, Memory):
            digest.update(self.inputs.x.contiguous().numpy().data)
        return digest.hexdigest()[:32]

    @property
    def bias_digest(self) -> str:
        """Digest of the bias columns: names, values and codes. Empty if there are none."""
        if not self.bias_names:
            return ""
        return digest_of(repr((self.bias_names, self.bias_values)), self.bias.contiguous().numpy().tobytes())[:32]

    def derived(self, what: bytes | str, **fields: Any) -> "DataSet":
        """A data set derived from this one: other fields, and fingerprints that include `what` was done."""
        raw = what.encode() if isinstance(what, str) else what
        prints: dict[str, Any] = {
            n: hashlib.sha256(getattr(self, n).encode() + raw).hexdigest()[:32] for n in ("fingerprint", "former")
        }
        return dataclasses.replace(self, **fields, **prints)

    def is_source(self, fingerprint: str | None) -> bool:
        """Whether a file with this fingerprint was made from these rows."""
        return fingerprint in (self.fingerprint, self.former)

    @property
    def files_digest(self) -> str:
        """Digest of the names of the rows' files in order: the same at any size and split. Empty if rows are not files."""
        return digest_of(*self.file_names)[:32] if self.paths else ""

    @property
    def file_names(self) -> list[str]:
        """The rows' files, relative to the innermost folder that holds them all."""
        home = os.path.commonpath((min(self.paths), max(self.paths))) if self.paths else ""  # the others lie between
        return [os.path.relpath(path, home) for path in self.paths]

    def made(self, made_by: Mapping[str, Any]) -> bool:
        """Whether a table is about these rows: of this fingerprint, or of the same files read in another way, or of none."""
        known = [made_by[key] for key in ("fingerprint", "relabelled") if made_by.get(key)]
        same_files = bool(made_by.get("files")) and made_by["files"] == self.files_digest
        return not known or same_files or any(self.is_source(one) for one in known)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def multi_label(self) -> bool:
        return self.y.ndim == 2

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.inputs.shape)

    @property
    def has_inputs(self) -> bool:
        return not isinstance(self.inputs, NoInputs)

    def rows(self, split: str) -> Tensor:
        """Sample ids of one split."""
        if split not in self.splits or not bool((self.split == self.splits.index(split)).any()):
            there = [s for k, s in enumerate(self.splits) if bool((self.split == k).any())]
            raise UserError(f"{self.name} has no split {split!r}{suggest(split, there)}")
        return (self.split == self.splits.index(split)).nonzero().flatten()

    def has(self, split: str) -> bool:
        return split in self.splits and bool((self.split == self.splits.index(split)).any())

    @property
    def bias_sizes(self) -> tuple[int, ...]:
        return tuple(len(v) for v in self.bias_values)

    def bias_index(self, name: str) -> int:
        if name not in self.bias_names:
            raise UserError(f"{self.name} has no bias column {name!r}{suggest(name, self.bias_names)}")
        return self.bias_names.index(name)

    def only_bias(self, names: Sequence[str]) -> "DataSet":
        """The same data set with only these bias columns."""
        keep = [self.bias_index(name) for name in names]
        designed, neutral = self.aligned_by_design, self.neither_by_design
        return dataclasses.replace(
            self,
            bias=self.bias[:, keep],
            bias_names=tuple(names),
            bias_values=tuple(self.bias_values[k] for k in keep),
            aligned_by_design=None if designed is None else tuple(designed[k] for k in keep),
            neither_by_design=None if neutral is None else tuple(neutral[k] for k in keep),
        )

    @property
    def group(self) -> Tensor:
        """(N,) code of (y, bias...); -1 where a bias value is missing."""
        if self.multi_label:
            columns, sizes = [], []  # groups of a multi-label task are those of the bias alone
        else:
            columns, sizes = [self.y], [len(self.classes)]
        known = (self.bias >= 0).all(1)
        columns = columns + [c.clamp(min=0) for c in self.bias.unbind(1)]
        sizes = sizes + list(self.bias_sizes)
        if not columns:
            return torch.zeros(len(self), dtype=torch.long)
        return torch.where(known, group_id(columns, sizes), -1)

    @property
    def num_groups(self) -> int:
        sizes = [*([] if self.multi_label else [len(self.classes)]), *self.bias_sizes]
        return int(torch.tensor(sizes).prod()) if sizes else 1

    def alignment(self) -> Alignment | None:
        """The aligned pairs of every bias column; None without one, and for a multi-label task."""
        if self.multi_label or not self.bias_names:
            return None
        if self.aligned_by_design is not None:
            neither = self.neither_by_design or tuple(torch.zeros_like(a) for a in self.aligned_by_design)
            return Alignment(self.aligned_by_design, neither, self.alignment_rule)
        train = self.rows("train") if self.has("train") else torch.arange(len(self))
        tables = []
        for column, size in zip(self.bias.unbind(1), self.bias_sizes, strict=True):
            known = train[column[train] >= 0]
            tables.append(aligned_pairs(pair_counts(self.y[known], column[known], len(self.classes), size)))
        return Alignment(tuple(a for a, _ in tables), tuple(n for _, n in tables), COUNTED)

    def aligned(self) -> tuple[tuple[Tensor, ...] | None, str]:
        """A (classes, values) matrix of aligned pairs per bias column, and the rule that decided them."""
        found = self.alignment()
        return (None, "none") if found is None else (found.aligned, found.rule)

    def aligned_in_words(self) -> dict[str, str]:
        """What aligned means here, a sentence per bias column."""
        found = self.alignment()
        if found is None:
            return {}
        columns = zip(self.bias_names, self.bias_values, found.aligned, found.neither, strict=True)
        return {name: in_words(name, self.classes, values, a, n, found.rule) for name, values, a, n in columns}

    def facts(self, sees: frozenset[str], weight: Tensor | None = None) -> Facts:
        """What a method that sees these labels may know about the training rows, except those of weight 0."""
        train = self.rows("train")
        train = train if weight is None else train[weight[train] > 0]
        y = self.y[train]
        counts = y.long().sum(0) if self.multi_label else y.bincount(minlength=len(self.classes))
        group_counts: Tensor | None = None
        sizes: tuple[int, ...] = ()
        if "bias" in sees:
            if not self.bias_names:
                raise UserError(f"the method needs a bias column, but {self.name} has none; name one with --bias")
            group = self.group[train]
            group_counts = group[group >= 0].bincount(minlength=self.num_groups)
            sizes = self.bias_sizes
        return Facts(
            class_counts=counts,
            rows=len(train),
            size=len(self),
            shape=self.shape,
            multi_label=self.multi_label,
            group_counts=group_counts,
            bias_sizes=sizes,
            mean=self.mean,
            std=self.std,
        )

    def __repr__(self) -> str:
        rows = ", ".join(f"{int((self.split == k).sum())} {name}" for k, name in enumerate(self.splits) if self.has(name))
        bias = f", bias {', '.join(self.bias_names)}" if self.bias_names else ""
        return f"DataSet({self.name!r}: {rows}; {len(self.classes)} classes{bias}, inputs {self.shape})"

    def _repr_html_(self) -> str:
        rows = {name: int((self.split == k).sum()) for k, name in enumerate(self.splits) if self.has(name)}
        about = {
            "rows": ", ".join(f"{n} {name}" for name, n in rows.items()),
            "labels" if self.multi_label else "classes": ", ".join(self.classes[:20]),
            "bias columns": ", ".join(self.bias_names) or "none",
            "inputs": f"{self.shape}, {'in memory' if self.inputs.in_memory else 'decoded when needed'}"
            if self.has_inputs
            else "none",
        }
        return str(notebook.facts(self.name, about) + notebook.pictures(self._thumbnails()))

    def _thumbnails(self, most: int = 8) -> list[tuple[str, str]]:
        """A few rows, spread over the data set, with their labels."""
        if len(self.shape) != 3:
            return []
        rows = torch.linspace(0, len(self) - 1, min(most, len(self))).long()
        names = [self.classes[int(c)] for c in self.y[rows]] if not self.multi_label else [""] * len(rows)
        return list(zip(thumbnails(self.inputs, rows), names, strict=True))

    def describe(self) -> dict[str, Any]:
        """What a run records about its data."""
        return {
            "name": self.name,
            "source": self.source,
            "fingerprint": self.fingerprint,
            "rows": {s: int((self.split == k).sum()) for k, s in enumerate(self.splits)},
            "shape": list(self.shape),
            "classes": list(self.classes),
            "multi_label": self.multi_label,
            "bias_columns": list(self.bias_names),
            "notes": [
                *self.notes,
                *(f"the {name} split was taken from the training rows, {self.carved_how}" for name in self.carved),
            ],
        }
