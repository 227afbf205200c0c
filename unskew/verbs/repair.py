"""The verb `repair`: from a source and a repair's name to a table of weights that any training code can use."""

import dataclasses
import glob
import json
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import torch
from torch import Tensor

from unskew.core import progress
from unskew.core.errors import UserError
from unskew.core.failures import refusing
from unskew.core.files import nothing_left, plain, whole_folder, write_json, write_text
from unskew.core.matrix import Rows
from unskew.core.settings import Settings, without
from unskew.core.tables import words_of
from unskew.core.version import VERSION
from unskew.core.workplace import alone, check_place, claim, identity
from unskew.data.dataset import DataSet
from unskew.data.export import check_folder, write_csv, write_images
from unskew.data.sources import as_read, as_words, load
from unskew.features import spec
from unskew.measure.representation_bias import FOLDS, bias_of_labels
from unskew.pages.repair import RepairPage, gallery, truth, verdict
from unskew.parts.guards import Harm, change, harms
from unskew.parts.opinion import nuisances
from unskew.parts.shares import composition
from unskew.parts.tried import trial_on
from unskew.records import Measured, Reading, Repaired, Table
from unskew.repairs import _contract as repairs
from unskew.repairs._contract import Outcome, Repair
from unskew.stats.independence import effective_rows
from unskew.stats.readers import held_out_opinion
from unskew.verbs.workbench import Workbench

MOST_TOLD = 2_000_000  # rows whose charts are divided by what is true of them
BY_DECISION = (
    "balance",
    "inverse_frequency",
    "denoise",
)  # no shortcut is suspected: the user names a column, or labels are doubted
ENDINGS = {"parquet": ".parquet", "csv": ".csv", "folder": ""}


def repair(
    source: Any,
    method: str = "repair",
    *,
    out: str | Path = "weights.parquet",
    how: str = "parquet",
    copy: bool = False,
    force: bool = False,
    measure: Sequence[str] = (),
    splits: Sequence[str] = (),
    model: str = "",
    seed: int = 0,
    device: str = "auto",
    settings: Mapping[str, Any] | None = None,
    command: str = "",
) -> Repaired:
    """Weight, keep or drop the rows of `source`; write the table, its JSON and a page.

    Called again, it resumes, or returns the finished result.
    """
    out = Path(out)
    chosen = repairs.load(method)
    given = _with_defaults(chosen, Settings.of(settings))
    cfg = chosen.settings(given.own)
    _check_out(out, how)
    for name in measure:
        spec(name)  # reject an unknown name before the work
    data = load(source, **given["data"])
    if how == "folder":
        check_folder(data)
    asked = _identity(method, chosen, cfg, given, model, data, seed, splits, measure) | {"as": how, "copy": copy}
    place = _Place(out, how)
    done = place.finished(asked, data)
    if done is not None:
        return done
    with alone(out, "repair"):
        done = place.finished(asked, data)  # by another process, while this one waited
        if done is not None:
            return done
        every = _rows(data, tuple(splits) or _own_splits(data, chosen.splits))
        readable = every[~torch.isin(every, torch.tensor([k for k, _ in data.unreadable], dtype=torch.long))]
        work = Workbench(data, readable, seed, out, asked, given, model, device)
        with _no_state_after_failure(work.state):
            outcome = chosen.apply(work, cfg)
            _check_outcome(outcome, method)
            measured = _measure(work, outcome, measure, seed)
            harm = harms(data, outcome.index, outcome.weight, _opinion(work, outcome, measured), measured, outcome.noisy)
            if harm and not force:
                raise UserError(f"{method} would do harm: {harm[0].line}; no table was written. --force writes it all the same")
            for one in harm:
                progress.say(f"warning: {one.line} (--force)")
            result = _result(chosen, cfg, work, outcome, measured, harm, every, command, place)
            place.write(result, data, outcome, copy)
    return result


@contextmanager
def _no_state_after_failure(state: Path) -> Iterator[None]:
    """Remove the saved state of a repair that was refused or could not be written; one that was interrupted resumes from it."""
    try:
        yield
    except Exception:
        state.unlink(missing_ok=True)
        raise


def _with_defaults(chosen: Repair, given: Settings) -> Settings:
    """The settings, completed by the repair's defaults for the network that it trains."""
    unused = list(given.training().shared().dotted())
    if unused and chosen.train is None:
        raise UserError(f"setting {unused[0]!r} is for training, but this repair trains no network")
    return Settings.of({**(chosen.train or {}), **given.dotted()})


@dataclass(frozen=True)
class _Place:
    """Where the result goes: a table with JSON and page beside it, or a folder with all of them inside."""

    out: Path
    how: str

    @property
    def table(self) -> Path:
        return self.out / "weights.parquet" if self.how == "folder" else self.out.with_suffix(".parquet")

    def finished(self, asked: Mapping[str, Any], data: DataSet) -> Repaired | None:
        """The finished result of the same request; None if there is none; raises if the place holds anything else."""
        if not Table.is_at(self.table):
            return None
        table = Table.read(self.table)
        there = table.made_by.get("identity")
        if not isinstance(there, dict):
            raise UserError(f"{self.table} is not the result of a repair; choose another --out, or remove it")
        if "bias_digest" not in there and there.get("fingerprint") == data.former:  # of version 0.1
            there = {"behind": {}, **there, "fingerprint": data.fingerprint, "bias_digest": data.bias_digest}
        claim(self.table, "repair", there, asked)
        page = self.table.with_suffix(".html")
        with refusing(f"{self.table} is damaged or was not written by this version of unskew; remove it"):
            result = Repaired.of_json({**table.made_by, "groups": _groups_of(self.table)}, table, self.out, page)
        progress.say(f"{self.out} is already finished; nothing to do")
        return result

    def write(self, result: Repaired, data: DataSet, outcome: Outcome, copy: bool) -> None:
        """Write the folder as a whole; or the page, the JSON and last the table, whose presence marks the repair as complete."""
        if self.how == "folder":
            with whole_folder(self.out) as part:
                write_images(data, result.table, part, copy)
                self._files(result, data, outcome, part / "weights.parquet")
        else:
            with nothing_left(self.out, self.table, self.table.with_suffix(".html"), self.table.with_suffix(".json")):
                if self.how == "csv":
                    write_csv(result.table, self.out)
                self._files(result, data, outcome, self.table)
        for stale in self.out.absolute().parent.glob(f".{glob.escape(self.out.name)}.*.state"):  # also of abandoned repairs
            stale.unlink(missing_ok=True)

    def _files(self, result: Repaired, data: DataSet, outcome: Outcome, path: Path) -> None:
        known = truth(data, outcome) if len(outcome.index) <= MOST_TOLD else None  # a word for every row
        write_text(path.with_suffix(".html"), RepairPage(result, gallery(data, outcome), outcome, known).render())
        write_json(path.with_suffix(".json"), result.json())
        result.table.save(path)


def _groups_of(table: Path) -> dict[str, Any]:
    """Shares by class and bias value, which are only in the JSON beside the table."""
    try:
        groups: dict[str, Any] = json.loads(table.with_suffix(".json").read_text(encoding="utf-8"))["groups"]
    except (OSError, ValueError, KeyError, TypeError):
        return {"classes": [], "before": [], "after": [], "by_bias": []}
    return groups


def _own_splits(data: DataSet, splits: Sequence[str]) -> list[str]:
    """The splits that a repair weights by default; test rows only if they are drawn like the training rows."""
    chosen = [s for s in splits if data.has(s) and (s != "test" or "test" in data.carved)]
    return [*chosen, *(["test_biased"] if "test" in splits and data.has("test_biased") else [])]


def _rows(data: DataSet, splits: Sequence[str]) -> Tensor:
    names = list(dict.fromkeys(splits))
    there = [s for s in names if data.has(s)]
    missing = [s for s in names if not data.has(s)]
    if missing or not there:
        raise UserError(
            f"{data.name} has no split {(missing or names)[0]!r}; it has {', '.join(s for s in data.splits if data.has(s))}"
        )
    return torch.cat([data.rows(s) for s in there]).sort().values


def _check_out(out: Path, how: str) -> None:
    if how not in ENDINGS:
        raise UserError(f"--as {how}: must be parquet, csv or folder")
    if how != "folder" and out.suffix != ENDINGS[how]:
        raise UserError(f"--out {out}: with --as {how} the name must end in {ENDINGS[how]}")
    if not out.name:
        raise UserError(f"--out {out}: name a file or a new folder")
    if how == "folder":
        check_place(out, "the result of a repair", ("weights.parquet",))
    elif out.is_dir() and not Table.is_at(out):
        raise UserError(f"--out {out} is a folder; name a file")


def _identity(
    method: str,
    chosen: Repair,
    cfg: Any,
    given: Settings,
    model: str,
    data: DataSet,
    seed: int,
    splits: Sequence[str],
    measure: Sequence[str],
) -> dict[str, Any]:
    training = given.shared().dotted() if chosen.train is not None else {}
    named = (*getattr(cfg, "phi", ()), *measure)
    return identity(
        repair=method,
        settings=dataclasses.asdict(cfg),
        training={k: str(v) for k, v in sorted(training.items())},
        model=model,
        fingerprint=data.fingerprint,
        bias=list(data.bias_names),
        bias_digest=data.bias_digest,
        seed=seed,
        splits=list(splits),
        measure=list(measure),
        # A representation can change under the same name, with the weights of its network.
        behind={name: state for name in named if (state := spec(name).state)},
    )


def _check_outcome(outcome: Outcome, method: str) -> None:
    if not bool(torch.isfinite(outcome.weight).all()) or bool((outcome.weight < 0).any()):
        raise UserError(f"{method} gave weights that are negative or not finite; lower its learning rates")
    if float(outcome.weight.sum()) <= 0:
        raise UserError(f"{method} keeps nothing: it gave every row weight 0")


def _measure(work: Workbench, outcome: Outcome, named: Sequence[str], seed: int) -> list[Measured]:
    """Representation bias before and after, for the named representations or those that the repair used."""
    data = work.data
    columns = [f"column:name={n}" for n in data.bias_names if "," not in n and "=" not in n]
    names = list(named) or list(outcome.representations) or columns or work.default_features()
    weight = torch.zeros(len(data), dtype=torch.float64)
    weight[outcome.index] = outcome.weight.double()
    measured = []
    for name in names:
        index, features = work.features([name])
        before, after = (_reading(data, features, data.y[index], w, seed) for w in (None, weight[index]))
        measured.append(Measured(name, before, after, spec(name).phrase))
    return measured


def _opinion(work: Workbench, outcome: Outcome, measured: Sequence[Measured]) -> Tensor | None:
    """What a biased model says of each row: the repair's own, or a reader of what was measured first."""
    data = work.data
    if outcome.opinion is not None or data.multi_label or not measured or measured[0].before.bias is None:
        return outcome.opinion
    index, features = work.features([measured[0].name])
    code = torch.full((len(data),), -1)
    code[index] = held_out_opinion(features, data.y[index], len(data.classes), 1e-2, work.seed)
    found = code[outcome.index]
    return found if bool((found >= 0).all()) else None


def _reading(data: DataSet, features: Rows, y: Tensor, weight: Tensor | None, seed: int) -> Reading:
    try:
        _check_classes(data, y)
        e = bias_of_labels(features, y, weight, seed=seed)
    except UserError as error:
        return Reading(bias=None, low=None, high=None, n=0, reason=str(error))
    return Reading(**plain({"bias": e.bias, "low": e.low, "high": e.high, "n": e.n, "chance": e.chance}))


def _check_classes(data: DataSet, y: Tensor) -> None:
    if data.multi_label:
        return
    counts = y.bincount(minlength=len(data.classes))
    for name, count in zip(data.classes, counts.tolist(), strict=True):
        if 0 < count < FOLDS:
            raise UserError(
                f"class {name!r} has {count} rows, too few to measure what gives it away; at least {FOLDS} are needed"
            )


def _result(
    chosen: Repair,
    cfg: Any,
    work: Workbench,
    outcome: Outcome,
    measured: list[Measured],
    harm: Sequence[Harm],
    every: Tensor,
    command: str,
    place: _Place,
) -> Repaired:
    data = work.data
    groups, kept = composition(data, outcome.index, outcome.weight), int((outcome.weight > 0).sum())
    frame = _frame(data, every, outcome)
    opposed, advice = _advice(data, chosen)
    train = f"unskew train {as_words(data)} {shlex.join(['--weights', str(place.table)])} --out repaired"
    result = Repaired(
        verdict=verdict(kept, len(every), measured[0], groups),
        kept=kept,
        rows=len(every),
        unreadable=len(every) - len(outcome.index),
        noisy=None if outcome.noisy is None else int(outcome.noisy.sum()),
        repair=work.identity["repair"],
        use=chosen.use(cfg),
        settings=work.identity["settings"],
        training=work.identity["training"],
        run=work.used,
        seed=work.seed,
        measured=measured,
        figures=plain({k: v for k, v in outcome.figures.items() if not isinstance(v, Tensor)}),
        data=plain(data.describe() | {"reading": as_read(data)}),
        fingerprint=data.fingerprint,
        identity=work.identity,
        groups=groups,
        effective=effective_rows(outcome.weight),
        change=change(measured[0], harm),
        harms=[one.line for one in harm],
        command=command,
        advice=advice,
        next="" if opposed else train,
        version=VERSION,
        table=Table(frame),
        path=place.out,
        page=place.table.with_suffix(".html"),
    )
    about = {"name": "repair", **without(plain(result.json()), ("groups",))}
    return dataclasses.replace(result, table=Table(frame, about))


def _advice(data: DataSet, chosen: Repair) -> tuple[bool, str]:
    """(whether a trial speaks against such a repair, what it says): audits try one on held-out rows, and the answer is remembered."""
    if chosen.name in BY_DECISION or data.multi_label or not data.has_inputs:
        return False, ""
    tried = trial_on(data)
    if tried is None:
        if not nuisances(data):
            return False, ""  # of vectors only the user can say what should not tell the class
        return (
            False,
            f"Not tried on held-out rows: unskew audit {as_words(data)} tries whether balancing helps here, and what it costs.",
        )
    supports, reason, removed = tried
    if supports and removed:
        instead = f"unskew train {as_words(data)} --method neutralise what={removed} --out robust"
        return True, f"A trial on held-out rows supports another remedy than weights: {reason}. Train with: {instead}"
    return not supports, f"A trial on held-out rows {'supports' if supports else 'does not support'} balancing here: {reason}."


def _frame(data: DataSet, rows: Tensor, outcome: Outcome) -> pl.DataFrame:
    """All rows in order; a row whose file cannot be decoded has weight 0 and no score."""
    weight = torch.zeros(len(data), dtype=torch.float64)
    score = torch.full((len(data),), math.nan, dtype=torch.float64)
    noisy = torch.zeros(len(data), dtype=torch.bool)
    weight[outcome.index], score[outcome.index] = outcome.weight.double(), outcome.score.double()
    if outcome.noisy is not None:
        noisy[outcome.index] = outcome.noisy
    columns: dict[str, Any] = {"index": rows.numpy()}
    if data.paths:
        columns["path"] = [data.paths[i] for i in rows.tolist()]
    if not data.multi_label:
        columns["label"] = words_of(data.classes, data.y[rows])
    columns |= {
        "split": words_of(data.splits, data.split[rows]),
        "weight": weight[rows].numpy(),
        "keep": (weight[rows] > 0).numpy(),
        "score": score[rows].numpy(),
        "noisy": noisy[rows].numpy(),
    }
    return pl.DataFrame(columns)
