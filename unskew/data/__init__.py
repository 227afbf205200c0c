"""Where rows come from: one public file per built-in data set, the machinery in files with an underscore."""

from unskew.data._dataset import DataSet
from unskew.data._sources import DataConfig, load

__all__ = ["DataConfig", "DataSet", "load"]
