"""One file, one measure: plain functions on arrays, tensors and records. Anything fitted is evaluated on other rows."""

from unskew.measure.association import association
from unskew.measure.bias_dependency import bias_dependency
from unskew.measure.calibration import calibration, calibration_by_bias
from unskew.measure.cross_dataset import cross_dataset
from unskew.measure.directional_amplification import directional_amplification
from unskew.measure.error_rates import error_rates
from unskew.measure.groups import groups
from unskew.measure.hsic import hsic, hsic_test
from unskew.measure.label_errors import label_errors
from unskew.measure.leakage import (
    Attack,
    bias_amplification,
    dataset_leakage,
    dataset_leakage_at,
    dataset_leakage_curve,
    model_leakage,
)
from unskew.measure.learning_curve import expected_error, exponent
from unskew.measure.position_map import box_of, place_of, position_map
from unskew.measure.reliance import reliance
from unskew.measure.representation_bias import representation_bias
from unskew.measure.slices import slices
from unskew.measure.temporal_structure import temporal_structure_score
from unskew.measure.texture_clusters import cluster_accuracy, texture_clusters

__all__ = [
    "Attack",
    "association",
    "bias_amplification",
    "bias_dependency",
    "box_of",
    "calibration",
    "calibration_by_bias",
    "cluster_accuracy",
    "cross_dataset",
    "dataset_leakage",
    "dataset_leakage_at",
    "dataset_leakage_curve",
    "directional_amplification",
    "error_rates",
    "expected_error",
    "exponent",
    "groups",
    "hsic",
    "hsic_test",
    "label_errors",
    "model_leakage",
    "place_of",
    "position_map",
    "reliance",
    "representation_bias",
    "slices",
    "temporal_structure_score",
    "texture_clusters",
]
