"""A data set: the bias columns that are kept."""

import dataclasses

import pytest

from unskew.core.errors import UserError
from unskew.data import load


def test_only_the_named_bias_columns_are_kept():
    data = dataclasses.replace(load("toy"), bias_names=("B",))
    with pytest.raises(UserError, match="no bias column 'b'"):
        data.only_bias(["b"])
