"""The verb `train`: a method of one stage or several, after a repair if one is put before it.

Every stage leaves its result beside OUT and resumes from there. `denoise+METHOD` drops rows with wrong labels first, and
`balance+METHOD` drops rows until every label has the bias values equally often; their settings begin with `denoise.` or
`balance.`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from unskew.core import progress
from unskew.core.errors import UserError
from unskew.core.settings import Settings
from unskew.data.dataset import DataSet
from unskew.data.sources import load, remembering
from unskew.methods._contract import Advice, method_class
from unskew.parts.tried import note_trial, trial_on
from unskew.records import Run, Table
from unskew.training.defaults import choose
from unskew.training.finished import trained_method
from unskew.training.fit import TrainConfig
from unskew.training.predict import predict
from unskew.training.run import train_once
from unskew.training.settings import BEFORE, check_method, check_training, run_config, split_method


@remembering()  # stages, repairs and trials read the same source
def train(
    source: Any,
    method: str = "erm",
    *,
    model: str = "",
    out: str | Path,
    weights: str | Path | Table | None = None,
    seed: int = 0,
    device: str = "auto",
    settings: Mapping[str, Any] | None = None,
    command: str = "",
    force: bool = False,
) -> Run:
    """Train a method, of one stage or several, into the folder `out`. Called again, it resumes, or returns the finished run."""
    if not source and isinstance(source, str):
        raise UserError("no source: name one, or use a --recipe that has one")
    before, rest = split_method(method)
    asked = _Request(source, model, Path(out), seed, device, command, force)
    if before:
        return _after_repair(asked, before, rest, weights, Settings.of(settings))
    chosen = check_method(method)
    if chosen.weighs_errors and (said := _doubt(asked, Settings.of(settings))):
        progress.say(
            f"{method} favours rows that a biased model gets wrong, but {said}. So these rows may be merely hard: compare with erm."
        )
    if not chosen.staged:
        return asked.once(asked.out, method, settings or {}, weights)
    if weights is not None:
        raise UserError(f"method {method!r} makes its own weights; leave out --weights")
    assert chosen.train is not None  # it is staged
    given = Settings.of(settings)
    cfg = chosen.settings(given.own)
    return chosen.train(_Stages(asked, given.shared()), cfg)


@dataclass(frozen=True)
class _Request:
    """What all trainings of a method have in common."""

    source: Any
    model: str
    out: Path
    seed: int
    device: str
    command: str
    force: bool  # write tables of repairs that the guards refuse

    def once(self, place: Path, method: str, settings: Mapping[str, Any], weights: str | Path | Table | None = None) -> Run:
        """One training. A table that also changes labels, as `unskew explore` writes, is read for both."""
        if isinstance(weights, (str, Path)) and Table.read(Path(weights)).made_by.get("relabelled"):
            settings = {**settings, "data.relabel": str(Path(weights).absolute())}
        return train_once(
            self.source, method, model=self.model, out=place, weights=weights, seed=self.seed, device=self.device,
            settings=settings, command=self.command,
        )  # fmt: skip

    def repaired(self, place: Path, name: str, settings: Mapping[str, Any]) -> Table:
        """The table of a repair. Imported here, so that training without one needs neither repairs nor pages."""
        from unskew.verbs.repair import repair

        return repair(
            self.source, name, out=place, model=self.model, seed=self.seed, device=self.device, settings=settings,
            force=self.force,
        ).table  # fmt: skip


def _doubt(asked: _Request, settings: Settings) -> str:
    """Why a trial on this data speaks against giving weight to errors; empty if it does not, or none was made.

    An audit's trial is remembered. Without one, photographs whose features are computed for the training anyway are tried here.
    """
    data = load(asked.source, **settings["data"])
    photographs = len(data.shape) == 3 and not data.multi_label and data.has("train")
    if photographs and not asked.model and trial_on(data) is None:
        from unskew.training.reference import quick_trial  # as for repairs: other trainings do without it
        from unskew.training.simple import linear_default

        workers = 0 if data.reading is None else int(data.reading.workers)
        tried = quick_trial(data, data.rows("train"), asked.seed, workers) if linear_default(data) else None
        if tried is not None:
            note_trial(data, tried)
    known = trial_on(data)
    return "" if known is None or known[0] else f"a trial on held-out rows found no shortcut worth balancing here ({known[1]})"


class _Stages:
    """What a method of several stages works with (methods._contract.Stage)."""

    def __init__(self, asked: _Request, settings: Settings) -> None:
        self.asked, self.settings = asked, settings
        self.out, self.seed = asked.out.absolute(), asked.seed
        self.given: Mapping[str, Any] = settings.dotted()
        self.budget: TrainConfig = run_config(settings).train
        self._data: DataSet | None = None

    @property
    def frozen(self) -> bool:
        if self.asked.model:
            return self.asked.model == "frozen" or self.budget.tune == "head"
        data = self.data()
        return choose(data, method_class("erm"), None, self.budget.tune, 0, weighted=True).model == "frozen"

    def data(self) -> DataSet:
        if self._data is None:
            self._data = load(self.asked.source, **self.settings["data"])
        return self._data

    def beside(self, name: str) -> Path:
        return self.out.with_name(f"{self.out.name}-{name}")

    def run(self, place: Path, method: str, settings: Mapping[str, Any] | None = None, weights: Table | None = None) -> Run:
        return self.asked.once(place, method, self.settings.merged(settings or {}).dotted(), weights)

    def train(self, place: Path, method: str, settings: Mapping[str, Any]) -> Run:
        asked = self.asked
        return train(
            asked.source, method, model=asked.model, out=place, seed=asked.seed, device=asked.device, command=asked.command,
            force=asked.force, settings=self.settings.merged(settings).dotted(),
        )  # fmt: skip

    def advice(self) -> Advice:
        from unskew.training.reference import advice, quick_trial  # as for repairs: other trainings do without it

        data = self.data()
        workers = 0 if data.reading is None else int(data.reading.workers)
        return advice(data, quick_trial(data, data.rows("train"), self.seed, workers))

    def repair(self, place: Path, name: str, settings: Mapping[str, Any]) -> Table:
        return self.asked.repaired(place, name, self.settings.reading().dotted() | dict(settings))

    def predict(self, run: Run, split: str) -> tuple[Tensor, Tensor]:
        data = self.data()
        return predict(trained_method(run), data, data.rows(split))

    def buffer(self, run: Run, name: str) -> Tensor:
        return trained_method(run).get_buffer(name)


def _after_repair(asked: _Request, before: str, method: str, weights: str | Path | Table | None, settings: Settings) -> Run:
    """denoise+METHOD, balance+METHOD: the repair drops rows first, and METHOD, of one stage or several, never sees them."""
    inner, rest = settings.under(before)
    check_training(method, asked.model, rest.dotted())
    if weights is not None:
        raise UserError(f"{before}+ makes its own table; leave out --weights")
    if rest["data"].get("keep"):
        raise UserError(f"{before}+ sets data.keep itself; leave it out")
    out = asked.out.absolute()
    table = out.with_name(f"{out.name}-{BEFORE[before]}.parquet")
    asked.repaired(table, before, rest.reading().dotted() | inner.dotted())
    return train(
        asked.source, method, model=asked.model, out=out, seed=asked.seed, device=asked.device, command=asked.command,
        force=asked.force, settings=rest.merged({"data.keep": str(table)}).dotted(),
    )  # fmt: skip
