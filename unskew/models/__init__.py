"""The papers' networks, one file each, and an adapter for any other."""

from unskew.nn.receptive import receptive_field

__all__ = ["receptive_field"]
