"""What a trial said is remembered, and obeyed by repairs of the same data."""

import dataclasses

import pytest
import torch

import unskew as package
from tests.parts.test_trial import SHORTCUT, SIGNAL
from unskew.parts.tried import note_trial, trial_on

pytestmark = pytest.mark.usefixtures("own_cache")
SOURCE = "colored-mnist:base=digits,digits=3,5,8,ratio=0.95"


def repaired(out, name="repair", **settings):
    return package.repair(SOURCE, name, out=out, settings=settings, force=True)


def test_a_repair_names_the_training_only_if_no_trial_speaks_against_it(tmp_path):
    data, short = package.load(SOURCE), {"phi": "color:kind=max", "epochs": 2}
    assert trial_on(data) is None
    untried = repaired(tmp_path / "a.parquet", **short)
    assert untried.advice.startswith("Not tried on held-out rows: unskew audit")
    assert "--weights" in untried.next
    note_trial(data, dataclasses.replace(SIGNAL, reason="it costs more than it gains"))
    against = repaired(tmp_path / "b.parquet", **short)
    assert against.advice == "A trial on held-out rows does not support balancing here: it costs more than it gains."
    assert against.next == ""
    note_trial(data, dataclasses.replace(SHORTCUT, supports=True, reason="it helps"))
    supported = repaired(tmp_path / "c.parquet", **short)
    assert supported.advice == "A trial on held-out rows supports balancing here: it helps."
    assert "--weights" in supported.next
    assert supported.table.column("weight").tolist() == against.table.column("weight").tolist()


def test_a_remedy_that_takes_something_out_is_named_instead_of_weights(tmp_path):
    note_trial(package.load(SOURCE), dataclasses.replace(SHORTCUT, supports=True, reason="it helps", removed="color"))
    told = repaired(tmp_path / "w.parquet", phi="color:kind=max", epochs=2)
    assert told.next == ""
    assert "supports another remedy than weights: it helps." in told.advice
    assert "--method neutralise what=color" in told.advice


def test_who_names_a_column_has_decided(tmp_path):
    note_trial(package.load(SOURCE), SIGNAL)
    balanced = repaired(tmp_path / "w.parquet", "balance")
    assert (balanced.advice, "--weights" in balanced.next) == ("", True)


def test_of_vectors_nothing_is_tried_so_nothing_speaks_against_what_the_user_names(tmp_path):
    x = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    source = (x.numpy(), (x[:, 0] > 0).long().numpy())
    note_trial(package.load(source), dataclasses.replace(SIGNAL, nuisances=(), named=()))
    assert trial_on(package.load(source)) is None
    result = package.repair(source, out=tmp_path / "w.parquet", settings={"phi": "number:at=0", "epochs": 2}, force=True)
    assert (result.advice, "--weights" in result.next) == ("", True)
