"""What `evaluate` found on one split."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from unskew.core import notebook
from unskew.core.errors import UserError, suggest
from unskew.records.groups import Groups
from unskew.records.growing import TableFile
from unskew.records.rates import BiasRates
from unskew.records.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelFigures:
    """Quality of a multi-label task."""

    f1_macro: float
    average_precision: float
    label_intervals: dict[str, tuple[float, float]]
    labels_judged: int
    per_label: list[dict[str, Any]]  # figures of each label, and by bias value


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an evaluation comes to."""

    kind: str  # the most serious of `kinds`
    sentence: str  # one sentence for each of them
    kinds: tuple[str, ...]  # everything that applies, the most serious first

    def json(self) -> dict[str, Any]:
        return {"kind": self.kind, "sentence": self.sentence, "kinds": list(self.kinds)}


@dataclass(frozen=True, slots=True)
class TrainGroups:
    """The same group table of rows that the run was trained on, or the reason why there is none."""

    groups: Groups | None
    rows: int = 0  # rows predicted
    of: int = 0  # rows trained on; if more, those predicted are a random sample
    reason: str = ""
    note: str = ""

    def json(self) -> dict[str, Any]:
        if self.groups is None:
            return {"reason": self.reason}
        return {**self.groups.json(), "predicted_rows": self.rows, "trained_rows": self.of, "note": self.note}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """An evaluated run: accuracy by group, and the answers to other questions."""

    run: str
    split: str
    on: str  # the source it was evaluated on
    selection: Mapping[str, Any]  # the rule that chose the weights, and the step
    labels: Mapping[str, list[str]]  # used in training and for selection
    aligned_rule: str
    aligned_in_words: Mapping[str, str]  # what aligned means, by bias column
    verdict: Verdict
    predicted: Mapping[str, int]  # rows given each class, or label
    confusion: list[list[int]]  # rows by true class (down) and predicted class (across); empty with several labels per row
    train: TrainGroups
    rates_by_bias: Mapping[str, BiasRates]
    groups: Groups  # over all bias columns together
    by_bias: Mapping[str, Groups]  # one bias column at a time, where there are several
    label_figures: LabelFigures | None  # of a multi-label task
    answers: Mapping[str, Any]  # by the question's key in the JSON
    predictions: Table | TableFile  # a table of many rows is read from its file when it is asked for
    data: Any  # the DataSet evaluated
    rows: Tensor  # sample ids evaluated

    @property
    def multi_label(self) -> bool:
        return self.label_figures is not None

    @property
    def metrics(self) -> dict[str, Any]:
        """The same as `json()`."""
        return self.json()

    def json(self) -> dict[str, Any]:
        """The content of metrics-SPLIT.json, and what the command prints with --json."""
        about = {
            name: getattr(self, name)
            for name in ("run", "split", "on", "selection", "labels", "aligned_rule", "aligned_in_words")
        }
        several = {"by_bias": {name: g.json() for name, g in self.by_bias.items()}} if self.by_bias else {}
        figures = {} if self.label_figures is None else {n: getattr(self.label_figures, n) for n in LabelFigures.__slots__}
        judged = {
            "verdict": self.verdict.json(),
            "predicted": dict(self.predicted),
            "confusion": self.confusion,
            "train": self.train.json(),
            "rates_by_bias": {name: rates.json() for name, rates in self.rates_by_bias.items()},
        }
        return {**about, **self.groups.json(), **several, **figures, **judged, **self.answers}

    def figure(self, name: str) -> float | None:
        """A number in the JSON by its name: `plain`, or `leakage.model` inside a table; None if it is undefined.

        Leakage measured at an F1 other than the model's is not comparable, and None.
        """
        if name in self.incomparable():
            return None
        table: Any = self.json()
        for part in name.split("."):
            if not isinstance(table, Mapping) or part not in table:
                raise UserError(f"no figure {name!r}{suggest(part, table if isinstance(table, Mapping) else [])}")
            table = table[part]
        return None if table is None else float(table)

    def incomparable(self) -> dict[str, str]:
        """Figures that are not comparable here, and why."""
        note = self.answers.get("leakage", {}).get("note", "")
        return dict.fromkeys(("leakage.amplification", "leakage.dataset_at_f1"), note) if note else {}

    def plot(self) -> Any:
        """An Altair chart: accuracy on average and by group."""
        return self.groups.plot()

    def _repr_html_(self) -> str:
        rule = f"{self.selection['rule']} (step {self.selection['step']})"
        about = notebook.facts(
            self.run, {"verdict": self.verdict.sentence, "judged on": self.on, "split": self.split, "selected by": rule}
        )
        return str(about) + self.groups._repr_html_()

    def __repr__(self) -> str:
        return f"Evaluation({self.run!r} on {self.split}: {self.groups!r})"
