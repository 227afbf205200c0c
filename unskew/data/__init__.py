"""Where rows come from: the data set, its readers (readers/), the built-in sets (sets/), loader and samplers.

The names below are imported when they are first used: a check of the files on disk needs none of them.
"""

from typing import TYPE_CHECKING, Any

from unskew.core import registry

if TYPE_CHECKING:
    from unskew.data.dataset import DataSet
    from unskew.data.reading import DataConfig
    from unskew.data.sources import load

__all__ = ["DataConfig", "DataSet", "load"]
_FILES = {"DataConfig": "data.reading", "DataSet": "data.dataset", "load": "data.sources"}


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module 'unskew.data' has no attribute {name!r}")
    return getattr(registry.package(_FILES[name]), name)
