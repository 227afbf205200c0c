"""Words of a command line as numbers."""

import pytest

from unskew.core import config
from unskew.core.errors import UserError


def test_noise_levels_are_numbers():
    assert config.numbers("0.5,2", "noise") == (0.5, 2.0)
    with pytest.raises(UserError, match="noise 'much': must be numbers separated by commas"):
        config.numbers("much", "noise")
