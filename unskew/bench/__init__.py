"""Suites of runs, one TOML file each, run here or on a cluster, beside the published tables; and the verb `bench`."""

from unskew.bench.run import bench
from unskew.verbs import callable_module

callable_module(__name__, bench)

__all__ = ["bench"]
