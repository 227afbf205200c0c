"""Where rows come from: the data set, its readers (readers/), the built-in sets (sets/), loader and samplers."""

from unskew.data.dataset import DataSet
from unskew.data.reading import DataConfig
from unskew.data.sources import load

__all__ = ["DataConfig", "DataSet", "load"]
