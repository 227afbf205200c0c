"""Error rates and calibration by the values of one bias column."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from unskew.records.groups import SMALL_GROUP, Estimate


@dataclass(frozen=True, slots=True)
class Gap:
    """The largest difference of a rate between two bias values of at least SMALL_GROUP rows."""

    estimate: Estimate
    between: tuple[str, str] = ("", "")  # the values with the highest and the lowest rate

    def json(self) -> dict[str, Any]:
        return {**self.estimate.json(), "between": list(self.between)}


@dataclass(frozen=True, slots=True)
class ClassRates:
    """One class, or one label, against the rest."""

    true_positive_rate: Mapping[str, Estimate]  # by bias value
    false_positive_rate: Mapping[str, Estimate]
    true_positive_gap: Gap
    false_positive_gap: Gap

    def json(self) -> dict[str, Any]:
        rates = {name: getattr(self, name) for name in ("true_positive_rate", "false_positive_rate")}
        return {
            **{name: {v: marked(e) for v, e in by_value.items()} for name, by_value in rates.items()},
            "true_positive_gap": self.true_positive_gap.json(),
            "false_positive_gap": self.false_positive_gap.json(),
        }


@dataclass(frozen=True, slots=True)
class Bin:
    """Predictions of similar confidence."""

    low: float  # edges of the bin
    high: float
    n: int
    confidence: float  # mean
    accuracy: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """Expected calibration error, and the bins it is the mean of."""

    error: Estimate
    confidence: float  # mean
    accuracy: float
    bins: tuple[Bin, ...]

    def json(self) -> dict[str, Any]:
        bins = [{name: getattr(b, name) for name in Bin.__slots__} for b in self.bins]
        return {**marked(self.error), "confidence": self.confidence, "accuracy": self.accuracy, "bins": bins}


@dataclass(frozen=True, slots=True)
class BiasRates:
    """What `evaluate` says about one bias column to whoever must answer to an auditor."""

    bias: str
    classes: Mapping[str, ClassRates]
    calibration: Mapping[str, Calibration]  # by bias value
    calibration_gap: Gap

    def widest(self, rate: str) -> tuple[str, Gap] | None:
        """The class with the largest gap in "true_positive" or "false_positive" rates; None if it is undefined in all."""
        gaps = {name: getattr(c, f"{rate}_gap") for name, c in self.classes.items()}
        known = {name: g for name, g in gaps.items() if not g.estimate.reason}
        return max(known.items(), key=lambda item: item[1].estimate.value) if known else None

    def json(self) -> dict[str, Any]:
        return {
            "classes": {name: c.json() for name, c in self.classes.items()},
            "calibration": {name: c.json() for name, c in self.calibration.items()},
            "calibration_gap": self.calibration_gap.json(),
        }


def marked(e: Estimate) -> dict[str, Any]:
    """The JSON of a figure, and whether it stands on few rows."""
    return {**e.json(), "small": e.n < SMALL_GROUP}
