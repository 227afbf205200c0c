"""Options that stand for settings: --group reaches every command that reads a source, and the commands that are suggested."""

import json

import numpy as np
import polars as pl
import pytest
from typer.main import get_command

from unskew.cli import app
from unskew.cli.options import columns

pytestmark = pytest.mark.usefixtures("own_cache")


def test_options_are_settings():
    assert columns("y", ["a", "b"], "part", "patient") == {
        "data.label": "y", "data.bias": "a,b", "data.split": "part", "data.group": "patient",
    }  # fmt: skip
    assert columns("", None, "", "") == {}


@pytest.mark.parametrize("name", ["audit", "repair", "train", "dependency"])
def test_every_command_that_reads_a_source_takes_a_group(name):
    options = {option for p in get_command(app).commands[name].params for option in p.opts}
    assert {"--label", "--bias", "--split", "--group"} <= options


def test_an_audit_by_group_suggests_commands_by_group(unskew, tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "d.npz", x=rng.normal(size=(120, 4)), y=np.arange(120) % 2, patient=np.arange(120) // 4)
    done = unskew("audit", "d.npz", "--group", "patient", "--json", "--representation", "input", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert "in whole groups of patient" in " ".join(found["data"]["notes"])
    assert all("--group patient" in step["command"] for step in found["next"] if "unskew train" in step["command"])
    assert len(pl.read_parquet(tmp_path / "audit" / "scores.parquet")) == 120
