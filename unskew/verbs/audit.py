"""The verb `audit`: measure everything that can be measured without training a model, rank it, and report it in plain words."""

import dataclasses
import hashlib
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import polars as pl
import torch
from torch import Tensor

from unskew.core import progress
from unskew.core.errors import UserError
from unskew.core.executor import map_rows
from unskew.core.failures import refusing
from unskew.core.files import nothing_left, plain, read_json, write_json, write_text
from unskew.core.matrix import Rows, only
from unskew.core.settings import Settings
from unskew.core.tables import column_digest, words_of
from unskew.core.workplace import alone, check_place, claim, digest, identity
from unskew.data.dataset import DataSet
from unskew.data.duplicates import disagrees, of_data, told
from unskew.data.pictures import thumbnails
from unskew.data.reading import DataConfig
from unskew.data.sources import as_read, as_words, load
from unskew.features import Spec, compute_many, learnt_from, spec, standard
from unskew.measure.association import association
from unskew.measure.leakage import Attack, dataset_leakage
from unskew.measure.representation_bias import FOLDS, BiasEstimate
from unskew.pages.audit import render_audit
from unskew.pages.text import audit_table
from unskew.parts.answers import expected, remember
from unskew.parts.findings import describe, grouped, leading, ordered, overlaps, pressing, questions, verdict
from unskew.parts.probing import read
from unskew.parts.trial import Trial
from unskew.parts.tried import note_trial
from unskew.records import Audit, ClassGallery, ColumnFinding, DatasetLeakage, Gallery, LeftOut, Shown, Step, Table
from unskew.stats.splits import PARTS
from unskew.training.reference import advice, quick_trial
from unskew.verbs.around import apart_of, leaks_of, position_of
from unskew.verbs.slices import SAMPLE, check_most, find_slices, with_slices

GALLERY = 6  # pictures of each kind and class
CLASSES_SHOWN = 12
MEMORY = 0.3  # gigabytes of images held at once; the rest is decoded as it is needed


def audit(
    source: Any,
    *,
    bias: Sequence[str] = (),
    representations: Sequence[str] = (),
    out: str | Path = "audit",
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    trial: bool = True,
    expect: Sequence[str] = (),
    slices: int = SAMPLE,
    attack: Attack | None = None,
    fit_on: Literal["judged", "train"] = "judged",
    command: str = "",
) -> Audit:
    """Rank every representation by how much of the label it gives away; write page, JSON and per-sample scores into `out`."""
    out = Path(out)
    given = Settings.of(settings)
    unused = list(given.training().shared().dotted())
    if unused:
        raise UserError(f"setting {unused[0]!r}: an audit trains nothing; its settings begin with data., such as data.size=64")
    words = given["data"] | dict(given.own) | ({"bias": tuple(bias)} if bias else {})
    data = load(source, without_inputs=True, **({} if isinstance(source, DataSet) else {"memory": MEMORY}) | words)
    chosen, left = _choose(data, representations)
    if fit_on not in ("judged", "train"):
        raise UserError(f"fit_on={fit_on}: must be one of judged, train")
    parts = _parts(data) if fit_on == "train" and data.bias_names else None
    remember(data, expect, chosen)
    known = expected(data)
    asked = _identity(data, chosen, seed) | {
        "expected": list(known),
        "trial": trial,
        "slices": check_most(slices),
        "protocol": (attack or Attack()).protocol,
        "fit_on": fit_on,
    }
    check_place(out, "an audit", ("audit.json", "scores.parquet"))
    done = _finished(out, asked, data, chosen)
    if done is not None:
        return done
    with alone(out, "audit"):
        done = _finished(out, asked, data, chosen)  # by another process, while this one waited
        if done is not None:
            return done
        rows, workers = audited_rows(data), (DataConfig() if data.reading is None else data.reading).workers
        index, features = compute_many(data, chosen, rows, workers=workers)
        unreadable = len(rows) - len(index)
        data, index, features, dropped = without_rare_classes(data, index, features)
        estimates: list[tuple[Spec, BiasEstimate]] = []
        with progress.bar("measuring", len(chosen)) as advance:
            for one in chosen:
                e = read(features[one.name], data.y[index], seed=seed)
                said = [note for note in (e.note, learnt_from(one, len(rows))) if note]
                estimates.append((one, dataclasses.replace(e, note="; ".join(said))))
                advance(1, one.name)
        tried = _trial(data, index, seed, workers) if trial else None
        if tried is not None:
            note_trial(data, tried)
        found = ordered([describe(one, e, data.classes, known, tried, index) for one, e in estimates])
        if not data.multi_label:
            found = grouped(found, features, data.y[index], len(data.classes), seed)
        rank = {f.name: k for k, f in enumerate(found)}
        estimates.sort(key=lambda pair: rank[pair[0].name])
        twins, leaked = of_data(data), leaks_of(data, index, features.get("low_resolution"), seed)
        sliced, columns = (None, pl.DataFrame()) if not slices else find_slices(
            data, index, estimates, features, most=slices, seed=seed, workers=workers
        )  # fmt: skip
        result = Audit(
            verdict=verdict(found, len(index)),
            rows=len(index),
            findings=found,
            questions=questions(found),
            overlaps=overlaps(found),
            expected=list(known),
            columns=[column_finding(data, name, index, attack, seed, parts) for name in data.bias_names],
            left_out=LeftOut(classes=dropped, representations=left, unreadable=unreadable),
            gallery=gallery(data, index, estimates),
            next=_next(data, tried, any(f.verdict == "shortcut" or pressing(f) for f in leading(found)), apart_of(data, leaked)),
            trial=None if tried is None else tried.json(),
            seed=seed,
            command=command,
            data=plain(data.describe() | {"reading": as_read(data)}),
            identity=asked,
            table=with_slices(_scores(data, index, estimates, twins, asked), columns),
            slices=sliced,
            page=out / "audit.html",
            duplicates=None if twins is None else told(twins, data.y, given_splits(data)),
            leaks=leaked,
            position=position_of(data, index, seed, workers) if not representations else None,
        )
        with nothing_left(out):
            result.table.save(out / "scores.parquet")
            write_text(out / "audit.html", render_audit(result, data))
            write_json(out / "audit.json", result.json())  # last: its presence marks the audit as complete
    return result


def _finished(out: Path, asked: Mapping[str, Any], data: DataSet, chosen: Sequence[Spec]) -> Audit | None:
    """The finished audit in the folder; None if there is none; raises if it is of another request."""
    path = out / "audit.json"
    if not path.is_file():
        return None
    there = read_json(path, "the result of an audit")
    if not isinstance(there.get("identity", {}), dict):
        raise UserError(f"{path} is damaged or not the result of an audit: its identity is not a table; choose another --out")
    known = {"protocol": "paper", "fit_on": "judged", **there.get("identity", {})}  # version 0.2 had no choice
    if known.get("fingerprint") == data.former:  # of version 0.1
        known = {**known, "fingerprint": data.fingerprint}
    if known.get("columns") != asked["columns"] and known.get("columns") == _former_columns(data, chosen):
        known = {**known, "columns": asked["columns"]}
    known = {"trial": asked["trial"], "slices": asked["slices"], "expected": [], **known}  # audits of version 0.2 had none
    if known["expected"] != asked["expected"]:
        return None  # a question was answered: the same audit, judged again
    claim(out, "audit", known, asked)
    with refusing(f"{path} is damaged or was not written by this version of unskew; remove it, or choose another --out"):
        result = Audit.of_json(there, Table.read(out / "scores.parquet"), out / "audit.html")
        audit_table(result)  # what the command prints, and what it writes: whatever is missing is noticed here
        result.json()
    progress.say(f"{out} is already finished; nothing to do")
    return result


def audited_rows(data: DataSet) -> Tensor:
    """The rows a model would learn from: train, val, and test if it was split off from them."""
    names = [s for s in ("train", "val", "test") if data.has(s) and (s != "test" or "test" in data.carved)]
    return torch.cat([data.rows(s) for s in names]).sort().values


def _choose(data: DataSet, named: Sequence[str]) -> tuple[list[Spec], dict[str, str]]:
    if not named:
        chosen, left = standard(data)
    else:
        chosen, left = [spec(text) for text in named], {}
        for one in chosen:
            if one.missing(data):
                raise UserError(f"representation {one.name!r} cannot be computed: {one.missing(data)}")
    chosen = list({one.key: one for one in chosen}.values())  # the same one named twice, or spelled in two ways, counts once
    if not chosen and (data.has_inputs or not data.bias_names):
        inputs = (
            f"whose inputs have shape {data.shape}" if data.has_inputs else "which has labels alone; name a column with --bias"
        )
        raise UserError(f"no representation applies to {data.name}, {inputs}")
    return chosen, left


def without_rare_classes(
    data: DataSet, index: Tensor, features: dict[str, Rows]
) -> tuple[DataSet, Tensor, dict[str, Rows], list[str]]:
    """Leave out classes with too few rows for cross-validation; the last value lists them."""
    if data.multi_label:
        return data, index, features, []
    counts = data.y[index].bincount(minlength=len(data.classes))
    rare = ((counts > 0) & (counts < FOLDS)).nonzero().flatten()
    keep = ~torch.isin(data.y[index], rare)
    if int((counts >= FOLDS).sum()) < 2:
        raise UserError(f"{data.name}: fewer than two classes have at least {FOLDS} rows; an audit needs more data")
    if bool(keep.all()):
        return data, index, features, []
    return data, index[keep], {name: only(f, keep) for name, f in features.items()}, [data.classes[c] for c in rare.tolist()]


def _parts(data: DataSet) -> Tensor:
    """(N,) whether leakage attackers are fitted on a row (0), chosen on it (1) or judged on it (2); -1 for other splits."""
    parts = torch.where(data.split < len(PARTS), data.split, -1)
    train = data.rows("train")
    if not data.has("val"):
        parts[train[3::4]] = 1
    data.rows("test")  # raises if there is none
    return parts


def column_finding(
    data: DataSet, name: str, index: Tensor, attack: Attack | None, seed: int, parts: Tensor | None
) -> ColumnFinding:  # fmt: skip
    """Association with the label and dataset leakage of one bias column, or the reasons why they cannot be measured."""
    column = data.bias[index, data.bias_index(name)]
    finding = ColumnFinding(
        name=name, missing=int((column < 0).sum()), values=list(data.bias_values[data.bias_index(name)])
    )  # fmt: skip
    if not data.multi_label:
        try:
            finding = dataclasses.replace(finding, association=dataclasses.asdict(association(data.y[index], column)))
        except UserError as error:
            finding = dataclasses.replace(finding, association_reason=str(error))
    try:
        known = column[column >= 0]
        if len(known) and int(known.bincount(minlength=1).max()) == len(known):
            raise UserError(f"bias column {name!r} has only one value")
        if parts is None:
            leak = dataset_leakage(data.y[index], column, attack=attack, seed=seed)
        else:
            leak = dataset_leakage(data.y, data.bias[:, data.bias_index(name)], attack=attack, seed=seed, parts=parts)
    except UserError as error:
        return dataclasses.replace(finding, leakage_reason=str(error))
    measured = DatasetLeakage(
        dataset=leak.value, low=leak.low, high=leak.high, chance=leak.chance, n=leak.n,
        attacker=leak.attacker, protocol=(attack or Attack()).protocol, fit_on="judged" if parts is None else "train",
    )  # fmt: skip
    return dataclasses.replace(finding, leakage=measured)


def gallery(data: DataSet, index: Tensor, estimates: Sequence[tuple[Spec, BiasEstimate]]) -> Gallery:
    """For the leading shortcut: the rows of each class that it solves best, and those on which it misleads most."""
    if not data.has_inputs:
        return Gallery(name=estimates[0][0].name if estimates else "", reason="the table has no inputs")
    one, e = estimates[0]  # in the order of the findings
    if len(data.shape) != 3 or data.multi_label:
        return Gallery(name=one.name, reason="inputs are not images" if len(data.shape) != 3 else "rows have several labels")
    names, places = [], []
    for c in torch.unique(data.y[index]).tolist()[:CLASSES_SHOWN]:
        here = (data.y[index] == c).nonzero().flatten()
        order = here[e.gain[here].argsort(descending=True)]
        names.append(data.classes[c])
        places += [order[:GALLERY], order[-GALLERY:].flip(0)]
    pictures = list(map_rows(partial(thumbnails, data.inputs), [index[some] for some in places]))
    rows = [_shown(data, index, e, some) for some in places]
    shown = [
        ClassGallery(
            name=name, most=pictures[2 * k], least=pictures[2 * k + 1], most_rows=rows[2 * k], least_rows=rows[2 * k + 1]
        )
        for k, name in enumerate(names)
    ]
    return Gallery(name=one.name, phrase=one.phrase, classes=shown)


def _shown(data: DataSet, index: Tensor, e: BiasEstimate, places: Tensor) -> list[Shown]:
    """The audited rows at these places, with their scores."""
    rows = index[places].tolist()
    paths = [data.paths[i] if data.paths else "" for i in rows]
    scored = zip(rows, paths, (-e.gain[places]).tolist(), strict=True)
    return [Shown(index=i, path=path, score=score) for i, path, score in scored]


def _trial(data: DataSet, index: Tensor, seed: int, workers: int) -> Trial | None:
    """The quick trial on the audited training rows."""
    rows = index[torch.isin(index, data.rows("train"))] if data.has("train") else index
    return quick_trial(data, rows, seed, workers) if len(rows) else None


def _next(data: DataSet, tried: Trial | None, doubted: bool, apart: str) -> list[Step]:
    """Commands to run next, with the setting `apart` that keeps splits from leaking. A remedy is named only if the trial supports it."""
    if not data.has_inputs:
        return []
    source = f"{as_words(data)} {apart}".rstrip()
    why = "train plainly and see whether the model takes the shortcut" if doubted else "train plainly"
    steps = [Step(why=why, command=f"unskew train {source} --out run")]
    runs = ["run"]
    if tried is not None and tried.supports:
        found = advice(data, tried)
        words = " ".join(f"{key}={value}" for key, value in found.settings.items())
        command = f"unskew train {source} --method {found.method}{' ' + words if words else ''} --out robust"
        steps.append(Step(why=f"train without it, which a trial supports: {tried.reason}", command=command))
        runs.append("robust")
    if data.bias_names:
        named = "" if data.reading is not None and data.reading.bias else f" --bias {shlex.quote(data.bias_names[0])}"
        balanced = f"unskew train {source}{named} train.sampler=balanced --out balanced"
        steps.append(Step(why="draw every (class, bias) group equally often", command=balanced))
        runs.append("balanced")
    steps.append(Step(why="judge the runs and look at the page", command=f"unskew report {' '.join(runs)} --out page.html"))
    return steps


def given_splits(data: DataSet) -> Tensor:
    """Split codes as the source has them: a carved split is part of the training rows."""
    carved = torch.tensor([k for k, name in enumerate(data.splits) if name in data.carved], dtype=torch.long)
    return torch.where(torch.isin(data.split, carved), data.splits.index("train"), data.split)


def _scores(
    data: DataSet,
    index: Tensor,
    estimates: Sequence[tuple[Spec, BiasEstimate]],
    twins: Tensor | None,
    identity: dict[str, Any],
) -> Table:
    """One row per sample; score NAME is in nats, higher if the representation points away from the row's class.

    `duplicate_of` is the first row of the near-duplicates that a row belongs to, empty if it has none; `duplicate_disagrees` says
    whether their labels differ.
    """
    columns: dict[str, Any] = {"index": index.numpy()}
    if data.paths:
        columns["path"] = [data.paths[i] for i in index.tolist()]
    if not data.multi_label:
        columns["label"] = words_of(data.classes, data.y[index])
    if twins is not None:
        mine = twins[index].tolist()
        columns["duplicate_of"] = pl.Series([None if k < 0 else k for k in mine], dtype=pl.Int64)
        columns["duplicate_disagrees"] = disagrees(twins, data.y)[index].numpy()
    columns |= {f"score {one.name}": (-e.gain).numpy() for one, e in estimates}
    return Table(pl.DataFrame(columns), {"name": "audit", "fingerprint": data.fingerprint, **identity})


def _identity(data: DataSet, chosen: Sequence[Spec], seed: int) -> dict[str, Any]:
    columns = [column_digest(data.columns[n]) for n in _read_columns(data, chosen)]
    known = digest(*columns, data.bias.contiguous().numpy().tobytes())[:16]
    return identity(
        fingerprint=data.fingerprint, bias=list(data.bias_names), columns=known, keys=[o.key for o in chosen], seed=seed
    )


def _read_columns(data: DataSet, chosen: Sequence[Spec]) -> list[str]:
    """The columns that some chosen representation reads."""
    names = {one.name for one in chosen}
    return [n for n in sorted(data.columns.columns) if f"column:name={n}" in names]


def _former_columns(data: DataSet, chosen: Sequence[Spec]) -> str:
    """The digest of columns and bias that versions up to 0.3 wrote: of their Python representation, slow for many rows."""
    columns = [repr(data.columns[n].to_list()) for n in _read_columns(data, chosen)]
    return hashlib.sha256("".join([*columns, repr(data.bias.tolist())]).encode("utf-8", "replace")).hexdigest()[:16]
