"""The records that pass between stages, and one typed result per verb. Frozen, validated on construction, almost no behaviour."""

from unskew.records.audit import (
    Audit,
    ClassGallery,
    ColumnFinding,
    DatasetLeakage,
    Duplicates,
    Finding,
    Gallery,
    LeftOut,
    Step,
    hardly_followed,
)
from unskew.records.auto import Auto, Finalist, Trained, Tried
from unskew.records.batch import Batch, Facts, Update
from unskew.records.bench import BenchReport, Row
from unskew.records.dependency import Dependency
from unskew.records.evaluation import Evaluation, LabelFigures, TrainGroups, Verdict
from unskew.records.groups import AVERAGES, HALF_SUM, SMALL_GROUP, Cell, Estimate, Groups
from unskew.records.growing import Growing, TableFile
from unskew.records.rates import BiasRates, Bin, Calibration, ClassRates, Gap
from unskew.records.repair import BiasShares, Composition, Measured, Reading, Repaired
from unskew.records.run import Run
from unskew.records.sample import Shown
from unskew.records.slices import Collect, Doubt, Slice, Slices
from unskew.records.table import Table

__all__ = [
    "AVERAGES",
    "HALF_SUM",
    "SMALL_GROUP",
    "Audit",
    "Auto",
    "Batch",
    "BenchReport",
    "BiasRates",
    "BiasShares",
    "Bin",
    "Calibration",
    "Cell",
    "ClassGallery",
    "ClassRates",
    "Collect",
    "ColumnFinding",
    "Composition",
    "DatasetLeakage",
    "Dependency",
    "Doubt",
    "Duplicates",
    "Estimate",
    "Evaluation",
    "Facts",
    "Finalist",
    "Finding",
    "Gallery",
    "Gap",
    "Groups",
    "Growing",
    "LabelFigures",
    "LeftOut",
    "Measured",
    "Reading",
    "Repaired",
    "Row",
    "Run",
    "Shown",
    "Slice",
    "Slices",
    "Step",
    "Table",
    "TableFile",
    "TrainGroups",
    "Trained",
    "Tried",
    "Update",
    "Verdict",
    "hardly_followed",
]
