"""One contract for each kind of component, filled from every file of its folder, and what is said of a file that does not fit."""

import dataclasses
import sys
import types

import pytest

from unskew.core import registry
from unskew.core.errors import UserError
from unskew.data.sets import _contract as sets
from unskew.evaluation import _contract as questions
from unskew.measure import _contract as measures
from unskew.methods import _contract as methods
from unskew.models import _contract as models
from unskew.repairs import _contract as repairs
from unskew.representations import _contract as representations

LOADERS = {
    "methods": methods.load, "models": models.load, "data": sets.load, "measures": measures.load, "repairs": repairs.load,
    "representations": representations.load, "questions": questions.load,
}  # fmt: skip
EVERY = [(kind, name) for kind in LOADERS for name in registry.names(kind)]


def test_every_kind_has_a_contract():
    assert set(LOADERS) == set(registry.KINDS) - {"suites"}  # suites are TOML, checked by their reader


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_every_file_fills_its_contract(kind, name):
    found = LOADERS[kind](name)
    assert dataclasses.is_dataclass(found)
    assert found.name == name.replace("-", "_")
    config = getattr(found, "config", None)
    if config is not None:
        assert dataclasses.is_dataclass(config)
        assert config.__dataclass_params__.frozen, f"{kind} {name}: settings must not change"
        for field in dataclasses.fields(config):
            assert (
                field.default is not dataclasses.MISSING
                or field.default_factory is not dataclasses.MISSING
                or kind == "models"
                or (kind == "representations")
            ), f"{kind} {name}: {field.name} has no default"


@pytest.mark.parametrize("kind", LOADERS)
def test_a_file_that_does_not_fit_says_what_it_lacks(kind, monkeypatch):
    monkeypatch.setitem(sys.modules, "own", types.ModuleType("own"))
    empty = types.ModuleType("own.part")
    empty.__spec__ = types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "own.part", empty)
    monkeypatch.setattr(registry, "_importable", lambda name: True)
    with pytest.raises(UserError, match=r"own\.part.*see unskew\..*_contract"):
        LOADERS[kind]("own.part")


@pytest.mark.parametrize("kind", LOADERS)
def test_an_unknown_name_lists_the_nearest(kind):
    name = registry.names(kind)[0]
    with pytest.raises(UserError, match=f"did you mean '{name}'"):
        LOADERS[kind](f"{name}x")


def test_a_table_states_how_its_weights_are_used():
    for name in registry.names("repairs"):
        found = repairs.load(name)
        assert found.use(found.config()) in ("loss", "chance", "keep")
    game = repairs.load("repair")
    assert game.use(game.config(strategy="weights")) == "chance"
    assert game.use(game.config(strategy="rank")) == "keep"


def test_figures_of_a_question_are_the_numbers_of_its_record():
    leakage = questions.load("leakage")
    shares = {"dataset", "model", "dataset_at_f1", "amplification", "f1", "average_precision", "chance", "rba"}
    assert leakage.figures == shares | {"dpa_to_bias", "dpa_to_task"}
    assert questions.load("temporal").figures == {"value"}
    assert not questions.load("temporal").shares
