"""unskew: find the shortcuts in a labelled data set, measure them, repair the data, and train models that do not take them."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Imported when first used, so that `unskew --help` does not wait for torch. The verbs are packages that can be called.
_MODULES = ("audit", "bench", "dependency", "evaluate", "losses", "measure", "nn", "repair", "report", "train")
_FUNCTIONS = {"load": "unskew.data", "DataSet": "unskew.data"}


def __getattr__(name: str) -> Any:
    if name in _FUNCTIONS:
        return getattr(import_module(_FUNCTIONS[name]), name)
    if name in _MODULES:
        return import_module(f"unskew.{name}")
    raise AttributeError(f"module 'unskew' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_FUNCTIONS, *_MODULES, "__version__"])
