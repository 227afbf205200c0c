"""One file, one measure: plain functions on arrays, tensors and records."""

from unskew.measure.groups import groups

__all__ = ["groups"]
