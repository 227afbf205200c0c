"""A table of weights: whose rows it belongs to, how it is used, and what tells two tables apart."""

import numpy as np
import polars as pl
import pytest
import torch

import unskew as package
from unskew.core.errors import UserError
from unskew.records import Table
from unskew.training.weights import read_weights

SHORT = {"train.steps": 6, "train.batch": 32}


def table(weight, **about):
    return Table(pl.DataFrame({"index": np.arange(len(weight)), "weight": np.asarray(weight, dtype=float)}), about)


@pytest.fixture(scope="module")
def data():
    return package.load("toy:rows=400")


def test_two_tables_that_version_0_1_could_not_tell_apart_are_two(data):
    """It summed position times weight: 1 * 3 + 2 * 0 + 3 * 1 = 1 * 0 + 2 * 3 + 3 * 0."""
    n = len(data)
    one, two = np.zeros(n), np.zeros(n)
    one[[0, 2]], two[1] = (3, 1), 3
    a, b = (read_weights(table(w), data, "auto") for w in (one, two))
    assert a.former_digest == b.former_digest == 6
    assert a.digest != b.digest
    assert read_weights(table(one), data, "auto").digest == a.digest
    assert len(a.digest) == 64


def test_a_second_run_with_a_colliding_table_is_refused(tmp_path, data):
    rows = data.rows("train").tolist()
    one, two = np.ones(len(data)), np.ones(len(data))
    a, b, c = rows[0] + 1, rows[1] + 1, rows[2] + 1  # positions as version 0.1 counted them
    one[rows[0]], one[rows[1]] = 1 + b * c, 1  # both change the old number by a * b * c
    two[rows[1]] = 1 + a * c
    old = [read_weights(table(w), data, "auto").former_digest for w in (one, two)]
    assert old[0] == pytest.approx(old[1])
    package.train("toy:rows=400", model="mlp", out=tmp_path / "run", weights=table(one), settings=SHORT)
    with pytest.raises(UserError, match=r"holds another run .weights is"):
        package.train("toy:rows=400", model="mlp", out=tmp_path / "run", weights=table(two), settings=SHORT)


@pytest.mark.parametrize(
    ("stated", "asked", "used"),
    [("", "auto", "loss"), ("", "sampler", "chance"), ("chance", "auto", "chance"), ("chance", "sampler", "chance"),
     ("keep", "auto", "keep"), ("loss", "loss", "loss"), ("", "loss", "loss")],
)  # fmt: skip
def test_a_table_is_used_as_it_states(data, stated, asked, used):
    about = {"use": stated} if stated else {}
    assert read_weights(table(np.ones(len(data)), **about), data, asked).use == used


@pytest.mark.parametrize(("stated", "asked"), [("chance", "loss"), ("loss", "sampler"), ("keep", "chance")])
def test_the_opposite_of_what_a_table_states_is_an_error_that_names_both(data, stated, asked):
    word = "chance" if asked == "sampler" else asked
    with pytest.raises(UserError, match=rf"{stated}.*train\.weights={word}"):
        read_weights(table(np.ones(len(data)), use=stated), data, asked)


def test_an_unknown_use_is_refused(data):
    with pytest.raises(UserError, match="must be loss, chance or keep"):
        read_weights(table(np.ones(len(data)), use="luck"), data, "auto")


def test_rows_to_keep_all_count_the_same(data):
    weight = np.ones(len(data))
    weight[::2] = 0
    weight[1] = 7.0
    kept = read_weights(table(weight, use="keep"), data, "auto")
    assert set(kept.value.unique().tolist()) == {0.0, 1.0}
    assert int(kept.value.sum()) == len(data) // 2


def test_keeping_rows_trains_the_same_network_as_a_loss_of_zeros_and_ones(tmp_path, data):
    weight = (torch.rand(len(data), generator=torch.Generator().manual_seed(0)) < 0.5).double().numpy()
    runs = [
        package.train("toy:rows=400", model="mlp", out=tmp_path / use, weights=table(weight, use=use), settings=SHORT)
        for use in ("keep", "loss")
    ]
    a, b = ((run.path / "model.safetensors").read_bytes() for run in runs)
    assert a == b


def test_naming_a_bias_column_does_not_make_another_source(tmp_path):
    source = "colored-mnist:base=digits,ratio=0.9"
    made = package.repair(source, "inverse_frequency", out=tmp_path / "w.parquet", settings={"by": "class"})
    with_bias, without = package.load(source), package.load(source).only_bias([])
    assert with_bias.fingerprint == without.fingerprint == made.table.made_by["fingerprint"]
    frame = pl.DataFrame({"a": np.arange(60.0), "label": ["x", "y"] * 30, "site": ["s", "t", "u"] * 20})
    plain, named = package.load(frame.select("a", "label")), package.load(frame, bias="site")
    assert plain.fingerprint == named.fingerprint
    assert plain.bias_digest != named.bias_digest
