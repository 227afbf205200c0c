"""Features of rows: computed in batches, all representations in one pass over the pixels, and cached."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from unskew.core import checkpoint, config, progress, registry
from unskew.core.errors import UserError
from unskew.core.executor import Resources, map_rows, on_cluster
from unskew.core.fetch import cache
from unskew.core.matrix import Rows, Spill
from unskew.core.memory import release
from unskew.data import native
from unskew.data.dataset import DataSet
from unskew.data.loader import to_float
from unskew.data.sources import pieces
from unskew.data.stored import Stored
from unskew.representations import _contract
from unskew.representations._contract import Representation
from unskew.representations._contract import load as representation
from unskew.stats.sample import stratified

CHUNK = 1024  # rows per cached file: the most an interrupted run loses
FEW = 20_000  # rows whose features always fit
SAMPLED = 4_000  # rows that a representation learns from which compares rows with one another
PIECE = 2**19  # numbers of the pictures that are computed together where that is faster
HELD = 2**28  # bytes of features in memory; more are kept in a file


@dataclass(frozen=True)
class Spec:
    """A representation with its settings."""

    name: str  # as a user writes it: color:kind=mean
    kind: Representation
    cfg: Any

    @property
    def phrase(self) -> str:
        return self.kind.phrase(self.cfg)

    @property
    def content(self) -> bool:
        """Whether it may legitimately show the class, so that being readable does not make it a shortcut."""
        return self.kind.is_content(self.cfg)

    @property
    def foreign(self) -> bool:
        """Whether it can never be part of the subject, so that being readable makes it a shortcut without a question."""
        return self.kind.is_foreign(self.cfg)

    def missing(self, data: DataSet) -> str:
        return self.kind.applies(data, self.cfg)

    @property
    def state(self) -> str:
        """What its features depend on besides its settings; empty for most."""
        return self.kind.state(self.cfg)

    @property
    def key(self) -> str:
        """The folder of its cached features: changes with the settings and with the code that computes them."""
        digest = hashlib.sha256(self.kind.source.read_bytes())
        shared = _contract if self.kind.look is None else native  # what it is computed from
        digest.update(Path(shared.__file__ or "").read_bytes())
        digest.update(repr(self.cfg).encode())
        digest.update(self.state.encode())
        return f"{self.name.partition(':')[0]}-{digest.hexdigest()[:16]}"


def spec(text: str) -> Spec:
    """`color:kind=mean` as a Spec; a dotted name is a user's module."""
    name, _, settings = text.partition(":")
    kind = representation(name)
    values = config.words(pieces(settings))
    try:
        return Spec(text, kind, config.build(kind.config, values))
    except UserError as error:
        raise UserError(f"representation {name}: {error} (write {name}:NAME=VALUE)") from None


def standard(data: DataSet) -> tuple[list[Spec], dict[str, str]]:
    """The representations that an audit of this data set measures, and why others do not apply."""
    chosen, left = [], {}
    for name in registry.names("representations"):
        for settings in representation(name).variants_for(data):
            words = ",".join(f"{k}={v}" for k, v in settings.items())
            one = spec(f"{name}:{words}" if words else name)
            why = one.missing(data)
            if why:
                left[one.name] = why
            else:
                chosen.append(one)
    return chosen, left


def compute(
    data: DataSet, specs: list[Spec], rows: Tensor, *, workers: int = 0, batch: int = 32
) -> tuple[Tensor, dict[str, Tensor]]:
    """(ids, {name: (n, D)}) of the rows whose input can be read, in memory; cached features are not computed again."""
    kept = list(_features(data, specs, rows, workers, batch))
    ids = torch.cat([index for index, _ in kept])
    # A chunk without a readable row does not know how wide its features would be.
    kept = [part for part in kept if len(part[0])] or kept[:1]
    # One after another, and what is joined is let go: nothing is held twice.
    return ids, {name: torch.cat([blocks.pop(name) for _, blocks in kept]).float() for name in {one.name: one for one in specs}}


def at_hand(data: DataSet, one: Spec, rows: Tensor) -> bool:
    """Whether the features of all these rows are in the cache, as they are when the same rows were asked for before."""
    homes = {one.name: cache() / "features" / data.fingerprint / one.key}
    return all(not _planned([one], homes, number, chunk)[1] for number, chunk in enumerate(torch.split(rows, CHUNK)))


def compute_many(
    data: DataSet, specs: list[Spec], rows: Tensor, *, workers: int = 0, batch: int = 32
) -> tuple[Tensor, dict[str, Rows]]:
    """As `compute`, for any number of rows: features that take more than HELD bytes are in a file, and deleted with the process."""
    if isinstance(data.inputs, Stored) and any(one.name == "input" for one in specs):  # it is in a file as it is, every row of it
        others = compute_many(data, rest, rows, workers=workers, batch=batch)[1] if (rest := _but(specs, "input")) else {}
        return rows, {one.name: others[one.name] if one in rest else data.inputs.matrix.only(rows) for one in specs}
    if len(rows) <= FEW:
        return compute(data, specs, rows, workers=workers, batch=batch)  # type: ignore[return-value]
    some = rows[_picked(data, rows)] if any(one.kind.learn is not None for one in specs) else rows  # as they are read below
    first, blocks = next(_chunks(data, [one for one in specs if one.kind.learn is None], some[:CHUNK], workers, batch))
    if not len(first) or 4 * len(rows) * sum(block.shape[1] for block in blocks.values()) <= HELD:
        return compute(data, specs, rows, workers=workers, batch=batch)  # type: ignore[return-value]
    folder = cache() / "features" / data.fingerprint
    spills = {one.name: Spill(folder) for one in specs}
    ids = []
    try:
        for index, blocks in _features(data, specs, rows, workers, batch):
            ids.append(index)
            for name, spill in spills.items():
                spill.add(blocks[name].float())
    except BaseException:
        for spill in spills.values():
            spill.drop()
        raise
    return torch.cat(ids), {name: spill.matrix() for name, spill in spills.items()}


def _but(specs: list[Spec], name: str) -> list[Spec]:
    return [one for one in specs if one.name != name]


def _features(
    data: DataSet, specs: list[Spec], rows: Tensor, workers: int, batch: int
) -> Iterator[tuple[Tensor, dict[str, Tensor]]]:
    """(ids, features by name) chunk by chunk. What is learnt from many rows is learnt from at most SAMPLED of them, before the pass."""
    learning = list({one.name: one for one in specs if one.kind.learn is not None}.values())
    if not learning:
        yield from _chunks(data, specs, rows, workers, batch)
    elif len(rows) <= SAMPLED:
        parts = list(_chunks(data, specs, rows, workers, batch))
        some = [part for part in parts if len(part[0])] or parts[:1]
        ids, place = torch.cat([index for index, _ in some]), 0
        scored = {}
        for one in learning:
            block = torch.cat([blocks.pop(one.name) for _, blocks in some])
            scored[one.name] = _scored(one, _learnt(one, block, data.y[ids]), block, torch.arange(len(ids)))
        for index, blocks in parts:
            yield index, blocks | {name: block[place : place + len(index)] for name, block in scored.items()}
            place += len(index)
    else:
        yield from _sampled(data, specs, learning, rows, workers, batch)


def learnt_from(one: Spec, rows: int) -> str:
    """What a result says of a representation that learnt from a sample of so many rows; empty if it did not.

    >>> learnt_from(spec("sensor"), 200_000), learnt_from(spec("color"), 200_000)
    ('learnt from 4,000 of 200,000 rows, drawn class by class; every row is scored', '')
    """
    if one.kind.learn is None or rows <= SAMPLED:
        return ""
    return f"learnt from {SAMPLED:,} of {rows:,} rows, drawn class by class; every row is scored"


def _picked(data: DataSet, rows: Tensor) -> Tensor:
    """Places of the rows to learn from, ascending: every class keeps its share."""
    y = data.y[rows]
    places = stratified(y, SAMPLED) if y.ndim == 1 else torch.linspace(0, len(rows) - 1, SAMPLED).long()
    return places.sort().values


def _sampled(
    data: DataSet, specs: list[Spec], learning: list[Spec], rows: Tensor, workers: int, batch: int
) -> Iterator[tuple[Tensor, dict[str, Tensor]]]:
    """As `_features`, learning from a sample. Its rows come first, with all their features, which wait for their turn: no file is
    decoded twice."""
    picked = _picked(data, rows)
    parts = [part for part in _chunks(data, specs, rows[picked], workers, batch) if len(part[0])]
    if not parts:
        raise UserError(f"none of {len(picked):,} rows of {data.name}, drawn class by class, can be read")
    ids = torch.cat([index for index, _ in parts])
    held = {name: torch.cat([blocks.pop(name) for _, blocks in parts]) for name in list(parts[0][1])}
    known = {one.name: _learnt(one, held[one.name], data.y[ids]) for one in learning}
    for one in learning:
        held[one.name] = _scored(one, known[one.name], held[one.name], torch.arange(len(ids)))
    turn = torch.full((len(data),), -1)
    turn[rows] = torch.arange(len(rows))
    others = torch.ones(len(rows), dtype=torch.bool)
    others[picked] = False
    done = 0
    for index, blocks in _chunks(data, specs, rows[others], workers, batch) if bool(others.any()) else ():
        if not len(index):
            continue
        for one in learning:
            blocks[one.name] = _scored(one, known[one.name], blocks[one.name], torch.full((len(index),), -1))
        until = int(torch.searchsorted(turn[ids], turn[index[-1]]))
        here, done = slice(done, until), until
        both = torch.cat([index, ids[here]])
        order = turn[both].argsort()
        yield both[order], {name: torch.cat([block, held[name][here]])[order] for name, block in blocks.items()}
    if done < len(ids):
        yield ids[done:], {name: block[done:] for name, block in held.items()}


def _learnt(one: Spec, block: Tensor, y: Tensor) -> Any:
    assert one.kind.learn is not None
    with torch.no_grad():
        return one.kind.learn(block, y, one.cfg) if len(block) else None


def _scored(one: Spec, learnt: Any, block: Tensor, place: Tensor) -> Tensor:
    assert one.kind.score is not None
    with torch.no_grad():
        return one.kind.score(learnt, block, place, one.cfg).float() if len(block) else block.float()


def _chunks(
    data: DataSet, specs: list[Spec], rows: Tensor, workers: int, batch: int
) -> Iterator[tuple[Tensor, dict[str, Tensor]]]:
    """(ids, features by name) chunk by chunk, from the cache or computed now and put there."""
    for one in specs:
        why = one.missing(data)
        if why:
            raise UserError(f"representation {one.name!r} cannot be computed: {why}")
    home = cache() / "features" / data.fingerprint
    homes = {one.name: home / one.key for one in specs if one.kind.cached}
    plan = [_planned(specs, homes, number, chunk) for number, chunk in enumerate(torch.split(rows, CHUNK))]
    todo_of = {one.name: one for _, todo, _ in plan for one in todo}
    made_of = _made(data, plan, list(todo_of.values()), workers, batch)
    with progress.bar("features", len(rows)) as advance:
        for chunk, todo, paths in plan:
            found: Found = {}
            for name in paths.keys() - {one.name for one in todo}:
                tensors, _ = checkpoint.read(paths[name])
                found[name] = tensors["index"], tensors["features"]
            if todo:
                index, made = next(made_of)
                for one in todo:
                    found[one.name] = index, made[one.name]
                    if one.name in paths and len(index):  # a disk that could not be read for a while must not be remembered
                        checkpoint.save(paths[one.name], {"features": made[one.name], "index": index}, {"name": one.name})
            yield _common(chunk, found)
            advance(len(chunk))
            release()  # gaps between what is kept add up over hundreds of chunks


def _made(
    data: DataSet, plan: list["Planned"], specs: list[Spec], workers: int, batch: int
) -> Iterator[tuple[Tensor, dict[str, Tensor]]]:
    """(ids, features) of every chunk that has something to compute: here, with inputs decoded in worker processes, or on a cluster."""
    lacking = [(chunk, todo) for chunk, todo, _ in plan if todo]
    if on_cluster():
        yield from map_rows(_Features(data, specs, batch), [chunk for chunk, _ in lacking])
        return
    # One stream for all chunks: workers start once, while this process still uses little memory.
    wanted = [part for chunk, todo in lacking if _looks(todo) for part in torch.split(chunk, batch)]
    stream = _stream(data, wanted, workers, specs)
    for chunk, todo in lacking:
        yield _chunk(data, todo, chunk, islice(stream, -(-len(chunk) // batch)) if _looks(todo) else None)


@dataclass(frozen=True)
class _Features:
    """The features of a chunk of rows, by whoever is sent it."""

    data: DataSet
    specs: list[Spec]
    batch: int

    def __call__(self, chunk: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        parts = _stream(self.data, list(torch.split(chunk, self.batch)), 0, self.specs) if _looks(self.specs) else None
        return _chunk(self.data, self.specs, chunk, parts)


Found = dict[str, tuple[Tensor, Tensor]]  # ids and features by representation
Planned = tuple[Tensor, list[Spec], dict[str, Path]]  # rows, the representations still to compute, and the paths to cache all at


def _planned(specs: list[Spec], homes: dict[str, Path], number: int, chunk: Tensor) -> Planned:
    tag = hashlib.sha256(chunk.numpy().tobytes()).hexdigest()[:16]
    paths = {name: home / f"{number:05d}-{tag}.safetensors" for name, home in homes.items()}
    return chunk, [one for one in specs if one.name not in paths or not paths[one.name].is_file()], paths


def _looks(specs: list[Spec]) -> bool:
    return any(one.kind.pixels for one in specs)


Part = tuple[Tensor, Tensor | None, dict[str, Tensor]]  # ids, inputs if anything still needs them, and features by representation


@dataclass(frozen=True)
class _Read:
    """What is made of a batch of rows where it is decoded, so that pixels need not travel between processes: what was seen at full
    resolution, and whatever takes a few pictures at a time. A network is not among it: it has all threads of this process, or a GPU."""

    source: native.Seen
    data: DataSet
    small: list[Spec]
    whole: bool  # whether the inputs are needed afterwards

    def __call__(self, index: Tensor) -> Any:
        x, fine, found = self.source.rows(index)
        if not bool(fine.all()):
            index, x = index[fine], x[fine]
        made = _in_pieces(self.small, self.data, index, x) if len(index) else {}
        # As arrays: of a tensor only a handle is sent, which takes longer than the few numbers that most looks give.
        return index.numpy(), x if self.whole else None, {name: block.numpy() for name, block in (found | made).items()}


def _stream(data: DataSet, batches: list[Tensor], workers: int, specs: list[Spec]) -> Iterator[Part]:
    """What is read of each batch in order, without unreadable rows. Every file is decoded once."""
    if not batches:
        return
    # What comes after the pixels is done for a batch at once: for one picture, calls take longer than the numbers in them.
    looking = [one for one in specs if one.kind.look is not None]
    looks = tuple((one.name, one.kind.note or one.kind.look, one.cfg) for one in looking if one.kind.look is not None)
    finish = {one.name: one.kind.finish for one in looking if one.kind.note is not None and one.kind.finish is not None}
    small = [one for one in specs if one.kind.pieces]
    whole = any(one.kind.pixels and one.kind.look is None and not one.kind.pieces for one in specs)
    work = _Read(native.seen(data, looks, finish), data, small, whole)
    for index, x, arrays in map_rows(work, batches, Resources(workers=0 if data.inputs.in_memory else workers)):
        yield torch.from_numpy(index), x, {name: torch.from_numpy(block) for name, block in arrays.items()}


def _common(rows: Tensor, found: Found) -> tuple[Tensor, dict[str, Tensor]]:
    """The rows that every representation has; one that needs no pixels also has unreadable rows."""
    for index, _ in found.values():
        rows = rows[torch.isin(rows, index)]
    blocks = {}
    for name, (index, block) in found.items():
        if index.equal(rows):  # nearly always: nothing could not be read
            blocks[name] = block
            continue
        order = index.argsort()  # rows may be asked for in any order
        blocks[name] = block[order[torch.searchsorted(index[order], rows)]]
    return rows, blocks


def _chunk(data: DataSet, specs: list[Spec], rows: Tensor, batches: Iterable[Part] | None) -> tuple[Tensor, dict[str, Tensor]]:
    """Features of the rows in `batches`, or of all `rows` if no representation reads the inputs."""
    parts: dict[str, list[Tensor]] = {one.name: [] for one in specs}
    ids = []
    for index, x, found in batches if batches is not None else [(rows, None, {})]:
        ids.append(index)
        if len(index):
            rest = [one for one in specs if one.name not in found]
            whole = to_float(x, torch.float32) if x is not None and _looks(rest) else None
            found = found | {one.name: _one(one, data, index, whole) for one in rest}
            for name, collected in parts.items():  # other chunks may lack more, so more may have been seen
                collected.append(found[name])
    return torch.cat(ids), {name: torch.cat(p) if p else torch.zeros(0, 1) for name, p in parts.items()}


def _in_pieces(specs: list[Spec], data: DataSet, index: Tensor, x: Tensor) -> dict[str, Tensor]:
    """Features of a batch of rows by name, computed for a few of them at a time, which stay in the processor's cache."""
    parts: dict[str, list[Tensor]] = {one.name: [] for one in specs}
    size = max(1, PIECE // max(1, x[0].numel()))
    for ids, piece in zip(torch.split(index, size), torch.split(x, size), strict=True) if specs else ():
        numbers = to_float(piece, torch.float32)
        for one in specs:
            parts[one.name].append(_one(one, data, ids, numbers))
    return {name: torch.cat(blocks) for name, blocks in parts.items()}


def _one(one: Spec, data: DataSet, index: Tensor, x: Tensor | None) -> Tensor:
    assert one.kind.features is not None  # the contract has one that does not look at pictures
    with torch.no_grad():
        features = one.kind.features(data, index, x, one.cfg)
    return features.reshape(len(index), -1)
