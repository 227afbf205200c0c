"""Devices that are not there are refused before anything is written."""

import pytest

import unskew as package
from unskew.core.errors import UserError


@pytest.mark.parametrize("device", ["cuda", "foo", "mps", "cpu:1", ""])
def test_devices_that_are_not_there(device, tmp_path):
    run = package.train("toy", out=tmp_path / "r", settings={"train.steps": 2})
    with pytest.raises(UserError, match="device"):
        package.evaluate(run, device=device)
    with pytest.raises(UserError, match="device"):
        package.train("toy", out=tmp_path / "x", settings={"train.steps": 2}, device=device)
    assert not (tmp_path / "x").exists()
