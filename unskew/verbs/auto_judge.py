"""How `auto` judges: candidates on training rows that were held out for the choice, finalists on the validation rows."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import polars as pl
import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core.errors import UserError
from unskew.data.dataset import DataSet
from unskew.data.splitting import carve_splits, group_codes, units, within
from unskew.parts.gate import Gate
from unskew.records import AVERAGES, Finalist, Table, Trained, Tried
from unskew.stats.halving import SHARES
from unskew.stats.independence import class_balanced_gain
from unskew.training.candidates import Candidate
from unskew.training.judge import judge
from unskew.training.pseudo import groups_for, groups_of, opinions
from unskew.training.selection import GUESSED, Rule, score

CHOICE = 0.25  # of the training rows, held out for the choice
KNOWN: Rule = "val-worst-group"
PLAIN = "plain"  # the last layer at its optimum, without a remedy (training.candidates)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows to judge on: their opinions, and the groups of the rule."""

    data: DataSet  # whose split `val` they are, with the bias columns
    index: Tensor
    opinion: Tensor
    guessed: Tensor  # (N,) groups of the rule, -1 elsewhere
    rule: str

    def right(self, said: Tensor) -> Tensor:
        """(n,) whether the answers, (N,) by sample id, are right."""
        return said[self.index] == self.data.y[self.index]

    def figures(self, said: Tensor) -> tuple[float, float, float | None]:
        """What the rule maximises, class-balanced accuracy where the opinion tells nothing, and the worst known group."""
        answers = _as_logits(said[self.index], len(self.data.classes))
        by_rule = score(cast("Rule", self.rule), answers, self.data, self.index, self.guessed)
        known = score(KNOWN, answers, self.data, self.index) if self.data.bias_names else None
        return by_rule, self.gain(said, torch.full_like(said, -1))[0], known

    def gain(self, said: Tensor, other: Tensor) -> tuple[float, float]:
        """By how much the answers are better than the others, class-balanced, where the opinion tells nothing; standard error."""
        y = self.data.y[self.index]
        return class_balanced_gain(self.right(said), self.right(other), y, self.opinion, len(self.data.classes))


def seen_by(rule: str, data: DataSet) -> DataSet:
    """The data set as if its bias columns were not there; or, if the rule asks for them, as if they were columns like any other."""
    columns = data.columns.drop(data.bias_names, strict=False)
    if rule == KNOWN:
        codes = zip(data.bias_names, data.bias_values, data.bias.unbind(1), strict=True)
        known = [pl.Series(name, [None if c < 0 else values[c] for c in column.tolist()]) for name, values, column in codes]
        columns = columns.with_columns(known) if columns.width else pl.DataFrame(known)
    return dataclasses.replace(data.only_bias([]), columns=columns)


def rows_of(data: DataSet, rule: str, named: Sequence[str], seed: int) -> Rows:
    """The validation rows, with opinions and groups that were found without the bias columns."""
    blind = seen_by(rule, data)
    workers = 0 if data.reading is None else int(data.reading.workers)
    index, opinion = opinions(blind, seed, workers, named)
    guessed = groups_of(blind, index, opinion)
    if rule in GUESSED and rule != "val-pseudo-groups":
        guessed = groups_for(rule, blind, seed, workers)
    return Rows(data, index, opinion, guessed, rule)


@dataclass(slots=True)
class Held:
    """The rows held out for the choice, and what every candidate says of them so far."""

    judging: Rows
    full: DataSet
    table: Path  # which training rows the candidates may learn from
    named: Sequence[str]
    seed: int
    results: dict[str, dict[str, Any]] = field(default_factory=dict)  # the last one of each candidate
    rungs: dict[str, list[Trained]] = field(default_factory=dict)

    @property
    def data(self) -> DataSet:
        return self.judging.data

    @property
    def rows(self) -> Tensor:
        return self.judging.data.rows("val")

    def take(self, one: Candidate, rung: int, result: dict[str, Any]) -> None:
        """A candidate's result in a rung; one that is solved has the same in all."""
        before = self.results.get(one.name)
        if before is not None and before.get("id") == result.get("id"):
            return
        self.results[one.name] = result
        if "said" in result:
            by_rule, balanced, known = self.judging.figures(by_id(result, len(self.data)))
            trained = Trained(
                share=1.0 if one.solved else SHARES[rung], score=by_rule, balanced=balanced, known=known,
                seconds=result["seconds"], training=result["training"], steps=result["steps"],
            )  # fmt: skip
            self.rungs.setdefault(one.name, []).append(trained)

    def stands(self, name: str) -> bool:
        return "said" in self.results[name]

    def why(self, name: str) -> str:
        return str(self.results[name].get("refused") or self.results[name].get("failed") or "")

    def standing(self, name: str) -> tuple[float, float]:
        last = self.rungs[name][-1]
        return last.score, last.balanced

    def cost(self, name: str, share: float = 1.0) -> float:
        """Seconds of a training of this length, by the last rung: reading data and the like do not grow with the steps."""
        last = self.rungs[name][-1]
        return last.seconds - last.training + last.training * share / last.share

    def guess(self, one: Candidate, share: float, beside: str) -> float:
        """Seconds of a candidate that has not been trained yet, by those of another and what it usually costs beside that."""
        known = self.rungs[beside][-1]
        fixed = min(r.seconds - r.training for rungs in self.rungs.values() for r in rungs)  # what is cached is not read again
        return fixed + one.cost * known.training * share / known.share

    def judge_rows(self) -> Rows:
        """The validation rows of the source, which no choice has seen."""
        return rows_of(self.full, self.judging.rule, self.named, self.seed)

    def fates(self, fit: Sequence[Candidate], admitted: Sequence[str], winner: str) -> list[Tried]:
        """What became of every candidate."""
        found = []
        best = self.rungs[winner][-1]
        for one in fit:
            rungs = self.rungs.get(one.name, [])
            if one.name not in admitted:
                fate, reason = "left out", "the budget left no time for it"
            elif not self.stands(one.name):
                fate, reason = ("refused" if "refused" in self.results[one.name] else "failed"), self.why(one.name)
            elif one.name == winner:
                fate, reason = "winner", f"the best of the last rung: {_percent(best.score)}"
            else:
                last = rungs[-1]
                fate, reason = "dropped", f"{_percent(last.score)} at {_share(last.share)}; {winner} has {_percent(best.score)}"
            found.append(Tried(name=one.name, settings=one.settings, fate=fate, reason=reason, rungs=rungs))
        return found


def held_out(data: DataSet, rule: str, named: Sequence[str], seed: int, table: Path) -> Held:
    """Hold out a quarter of every class's training rows; groups and near-duplicates stay on one side."""
    group = "" if data.reading is None else str(data.reading.group)
    codes = group_codes(data.columns, group, data.name) if group else None
    train = data.split == data.splits.index("train")
    twins = None if data.duplicate_of is None else within(data.duplicate_of, train)
    unit = units(len(data), codes, twins)
    splits = (*data.splits, "judged")
    split = torch.where(data.split == data.splits.index("val"), len(splits) - 1, data.split)
    split, carved = carve_splits(data.y, split, CHOICE, seed, unit, [(data.splits.index("val"), "val")])
    if not carved:
        raise UserError(f"{data.name} has too few training rows to hold some out for the choice; auto needs more data")
    choosing = dataclasses.replace(data, split=split, splits=splits)
    rows = data.rows("train")
    kept = pl.DataFrame({"index": rows.numpy(), "weight": (split[rows] == data.split[rows]).double().numpy()})
    Table(kept, {"name": "auto", "fingerprint": data.fingerprint, "use": "keep"}).save(table)
    return Held(rows_of(choosing, rule, named, seed), data, table, named, seed)


@dataclass(frozen=True, slots=True)
class Judged:
    """A finalist, and its answers by sample id, -1 where it was not asked."""

    record: Finalist
    said: Tensor


def judged(name: str, run: Path, result: Mapping[str, Any], data: DataSet, rows: Mapping[str, Tensor], on: Rows | None) -> Judged:
    """A finalist's figures on the validation rows, and on the test rows."""
    if data.multi_label:  # unskew evaluate has the figures
        blank = Finalist(
            name=name, run=run, seconds=result["seconds"], rows=0, score=math.nan, balanced=math.nan,
            class_balanced=math.nan, known=None,
        )  # fmt: skip
        return Judged(blank, torch.zeros(0, dtype=torch.long))
    said = by_id(result, len(data))
    by_rule, balanced, known = (math.nan, math.nan, None) if on is None else on.figures(said)
    val = rows["val"][said[rows["val"]] >= 0]
    of_val = judge(_as_logits(said[val], len(data.classes)), data, val)
    test = {}
    if "test" in rows:
        there = rows["test"][said[rows["test"]] >= 0]
        of_test = judge(_as_logits(said[there], len(data.classes)), data, there)
        test = {name: getattr(of_test, name) for name in AVERAGES}
    record = Finalist(
        name=name, run=run, seconds=result["seconds"], rows=len(val), score=by_rule, balanced=balanced,
        class_balanced=of_val.class_balanced.value, known=known, test=test,
    )  # fmt: skip
    return Judged(record, said)


def verdict(opened: Gate, finalists: Sequence[Finalist], gain: tuple[float, float] | None) -> tuple[Finalist, str]:
    """Which model is recommended, and why: the winner if it is better than erm, else the better one of plain training."""
    erm, last = finalists[0], finalists[-1]
    base = next((f for f in finalists if f.name == PLAIN and f.class_balanced >= erm.class_balanced), erm)
    how = f"Plain training ({base.name if base is erm else 'the last layer at its optimum'}) is recommended"
    if not opened.open:
        return base, f"{how}: {opened.reason}."
    if gain is None:
        return base, f"{how}: of all candidates erm did best on the rows held out for the choice."
    better, balanced = last.score > erm.score, gain[0] > gain[1]
    worst = f"the worst group is {'' if better else 'not better: '}{_percent(last.score)} (erm {_percent(erm.score)})"
    error = f"{100 * gain[0]:+.1f} points, standard error {100 * gain[1]:.1f}"
    class_balanced = f"class-balanced accuracy where the shortcut tells nothing changes by {error}"
    words = f"On {last.rows} validation rows that no choice has seen, {worst} and {class_balanced}."
    if better and balanced:
        return last, f"{last.name} is recommended. {words}"
    why = "which is not enough" if better else "so it is not recommended"
    return (
        base,
        f"{how}. {last.name} won among the candidates, but {words[0].lower()}{words[1:-1]}, {why}.",
    )


def missing_labels(tried: Sequence[Tried], winner: str) -> str:
    """What the choice lost because it did not know the bias column; empty if there is none."""
    known = {t.name: t.rungs[-1].known for t in tried if t.rungs and t.rungs[-1].known is not None}
    if winner not in known:
        return ""
    best = max(known, key=lambda name: (known[name] or 0.0, name == winner))
    mine, most = known[winner] or 0.0, known[best] or 0.0
    if best == winner:
        return f"Bias labels would not have changed the choice: {winner} has the best worst group, {_percent(mine)}."
    return (
        f"With bias labels {best} would have been chosen: its worst group, on the rows held out, has {_percent(most)}, that of {winner} "
        f"{_percent(mine)}. Missing labels cost {100 * (most - mine):.1f} points there."
    )


def by_id(result: Mapping[str, Any], size: int) -> Tensor:
    """(N,) the class said of every row, -1 where none was."""
    said = torch.full((size,), -1)
    said[torch.tensor(result["index"], dtype=torch.long)] = torch.tensor(result["said"], dtype=torch.long)
    return said


def _as_logits(said: Tensor, classes: int) -> Tensor:
    """One-hot answers: figures of accuracy need no more."""
    return F.one_hot(said.clamp(min=0), classes).float()


def _percent(value: float) -> str:
    return "–" if math.isnan(value) else f"{100 * value:.1f} %"


def _share(share: float) -> str:
    return {0.25: "a quarter of its steps", 0.5: "half of its steps"}.get(share, "full length")
