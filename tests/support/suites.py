"""A small suite with its published table, and what is said of a wrong one."""

import pytest

import unskew as package
from unskew.core.errors import UserError

GOOD = """# A suite for tests.
title = "Toy"
published = "table.csv"
columns = { plain = "acc %" }
[settings]
train = { batch = 64 }
[scale.smoke]
seeds = 2
vars = { rows = 300 }
settings = { train = { steps = 10 } }
[data.toy]
published = "Toy set"
source = "toy:rows={rows},seed={seed}"
model = "mlp"
at = { "" = "only" }
[shared.biased]
method = "gce"
[method.erm]
published = "Vanilla"
[method.pgd]
published = "Ours"
settings = { biased = "{shared.biased}", k = 4, augment = "none" }
"""
TABLE = "method,dataset,bias_setting,metric,mean,std,note\nVanilla,Toy set,only,acc %,60.0,1.5,\nOurs,Toy set,only,acc %,70.0,,\n"


def refused(suite, tmp_path, text, **asked):
    suite.write_text(text)
    with pytest.raises(UserError) as error:
        package.bench(str(suite), out=tmp_path / "out", **asked)
    assert not (tmp_path / "out").exists()
    return str(error.value)
