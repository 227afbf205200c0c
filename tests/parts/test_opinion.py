"""The opinion and the trial: on digits whose colour is planted, on their unbiased twin, and on vectors."""

import dataclasses

import numpy as np
import pytest
import torch
from PIL import Image

import unskew as package
from unskew.measure.explained_errors import Explained
from unskew.parts.opinion import (
    Explanation,
    Opinion,
    _chosen,
    _left,
    nuisances,
    opinion_of,
    reference_logits,
    simple_representations,
)
from unskew.parts.trial import Trial, removable, trial
from unskew.training.reference import advice, quick_trial, trial_features

PLANTED = "colored-mnist:base=digits,digits=3,5,8,ratio=0.95"
TWIN = "colored-mnist:base=digits,digits=3,5,8,ratio=0.33333"


@pytest.fixture(scope="module")
def tried():
    data = package.load(PLANTED)
    return data, quick_trial(data, data.rows("train"), 0, 0)


def test_no_column_is_looked_at():
    assert not [one.name for one in nuisances(package.load(PLANTED)) if "column" in one.name or one.content]


def test_a_mark_that_no_simple_representation_sees_gives_the_opinion(tmp_path, own_cache):
    g = np.random.default_rng(0)
    mark = 25 * g.choice([-1, 1], (8, 8, 1))
    for k in range(240):
        y = k % 2
        marked = g.random() < (0.9 if y else 0.1)
        picture = np.kron(g.integers(40, 215, (6, 6, 3)), np.ones((16, 16, 1))) + g.normal(0, g.uniform(2, 25), (96, 96, 3))
        picture[4:12, 4:12] += mark * marked
        (tmp_path / "ab"[y]).mkdir(exist_ok=True)
        Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(tmp_path / "ab"[y] / f"{k}{'-marked' * marked}.png")
    data = package.load(str(tmp_path), holdout=0.0, duplicates=False)
    marked = torch.tensor(["marked" in path for path in data.paths]).long()
    by_the_mark = torch.nn.functional.one_hot(marked, 2).float()
    found = opinion_of(data, torch.arange(len(data)), data.y, 2, by_the_mark)
    assert found.source == ("overlay",)
    assert torch.equal(found.code, marked)
    assert "overlay" not in {one.name for one in simple_representations(data)}
    # What a probe sees of the subject itself is no nuisance before the user says so.
    assert not {"tone", "scale", "lighting", "local"} & {one.name for one in nuisances(data)}


def test_the_opinion_is_the_planted_colour(tried):
    data, _ = tried
    rows, x = trial_features(data, data.rows("train"), 0)
    y = data.y[rows]
    found = opinion_of(data, rows, y, 3, reference_logits(x, y, 3))
    conflicting = data.bias[rows, 0] != y
    assert any(name.startswith("color") for name in found.source)
    assert float((found.code == data.bias[rows, 0]).float().mean()) > 0.97
    # Independent under the weights: a third of the weight on rows whose colour is their class's, not nineteen twentieths.
    share = float(found.weight[~conflicting].sum() / found.weight.sum())
    assert 0.25 < share < 0.42
    assert found.explained > 0.9
    assert "colour" in found.words()


def test_a_trial_supports_a_remedy_where_there_is_a_shortcut(tried):
    data, found = tried
    assert found.supports
    assert found.independent[1] > found.independent[0] + 0.03
    assert found.conflicting[1] > found.conflicting[0]
    # What is given up stands beside what is gained.
    assert set(found.json()) >= {"class_balanced", "independent", "conflicting", "reason", "explained_errors"}
    # Small pictures can be shown without colours; that gains more than weights on the few rows that lack the colour of their class.
    assert found.removed == "color"
    assert all(name.startswith("color") for name in found.named)
    assert found.reason.endswith("% without colours")
    assert (advice(data, found).method, dict(advice(data, found).settings)) == ("neutralise", {"what": "color"})


def test_weights_are_advised_where_nothing_can_be_taken_out(tried):
    data, taken_out = tried
    rows, x = trial_features(data, data.rows("train"), 0)
    found = trial(data, rows, x)
    assert found.supports
    assert found.removed == ""
    assert found.gain < taken_out.gain
    assert advice(data, found).method == "independence"


def test_what_tells_little_of_the_class_is_left_in():
    errors = Explained(0.8, 0.7, 0.9, 50)
    named = ("color:kind=mean", "color:kind=max", "crop:where=border", "tone")
    explanations = tuple(Explanation(n, n, errors, a) for n, a in zip(named, (0.9, 0.4, 0.56, 0.99), strict=True))
    empty = torch.empty(0)
    said = Opinion(empty, empty, empty, empty, empty, named, explanations)
    assert removable(said, 10) == {"color": ("color:kind=mean",), "border": ("crop:where=border",)}  # nothing removes tone
    assert removable(said, 2) == {"color": ("color:kind=mean",)}  # 56 % is hardly above the chance of one in two
    assert removable(dataclasses.replace(said, source=("color:kind=max",)), 10) == {}


def test_a_trial_supports_nothing_on_the_unbiased_twin():
    data = package.load(TWIN)
    found = quick_trial(data, data.rows("train"), 0, 0)
    assert not found.supports
    assert advice(data, found).method == "erm"
    assert found.reason


def test_without_rows_that_lack_the_shortcut_weighting_cannot_help():
    g = torch.Generator().manual_seed(0)
    data = package.load("colored-mnist:base=digits,digits=3,5,8,ratio=1")
    rows, x = trial_features(data, data.rows("train"), 0)
    # A reference that errs at random among rows that all have the shortcut.
    found = trial(data, rows, torch.randn(len(rows), 5, generator=g))
    assert not found.supports
    assert len(rows) == len(x)


def test_several_labels_and_tiny_classes_are_not_tried():
    data = package.load("tiles:base=digits,rows=200")
    assert quick_trial(data, data.rows("train"), 0, 0) is None
    assert advice(data, None).method == "erm"


@pytest.fixture(scope="module")
def two_shortcuts():
    """Pictures whose colour agrees with the class in 95 % of rows and whose stripes do in 90 %, each by itself; and a layer that sees
    both shortcuts well, and the class hardly."""
    generator = torch.Generator().manual_seed(0)
    n = 1500
    y = torch.randint(0, 2, (n,), generator=generator)
    colour = torch.where(torch.rand(n, generator=generator) < 0.95, y, 1 - y)
    stripes = torch.where(torch.rand(n, generator=generator) < 0.90, y, 1 - y)
    x = torch.rand(n, 3, 16, 16, generator=generator) * 0.3
    x[:, 0] += 0.4 * colour[:, None, None]
    wave = 0.15 * torch.tensor([1.0, 1.0, -1.0, -1.0]).repeat(4)
    x += torch.where(stripes[:, None, None, None] == 1, wave.view(1, 1, 1, 16), wave.view(1, 1, 16, 1)) + 0.15
    data = package.load((x.clamp(0, 1).numpy(), y.numpy()))
    content = y + 1.5 * torch.randn(n, generator=generator)
    seen = torch.stack([colour.float(), stripes.float(), content], 1) + 0.05 * torch.randn(n, 3, generator=generator)
    return data, y, colour, stripes, (seen - seen.mean(0)) / seen.std(0)


def test_a_second_shortcut_is_found_behind_the_first(two_shortcuts):
    data, y, colour, stripes, seen = two_shortcuts
    rows = torch.arange(len(data.y))
    one = opinion_of(data, rows, y, 2, reference_logits(seen, y, 2))
    both = opinion_of(data, rows, y, 2, reference_logits(seen, y, 2), features=seen)
    assert one.further.shape[1] == 0

    def tells(weight, attribute):
        return float(weight[attribute == y].sum() / weight.sum())

    # Balancing the first alone leaves the second telling the class; together neither does.
    assert both.further.shape[1] >= 1
    assert abs(tells(both.weight, colour) - 0.5) < 0.1
    assert abs(tells(both.weight, stripes) - 0.5) < 0.1
    assert max(tells(one.weight, colour), tells(one.weight, stripes)) > 0.75
    assert "separate shortcuts" in both.words()


def explanations(**values):
    """Representations by name, each with the area under the curve and the lower end of its interval."""
    return [Explanation(name, name, Explained(value, low, 1.0, 50), 0.7) for name, (value, low) in values.items()]


def test_what_is_left_after_balancing_is_a_further_shortcut_if_it_is_certain_or_half_of_what_was_there():
    before = explanations(colour=(0.70, 0.65), border=(0.66, 0.6))
    assert _left(explanations(colour=(0.55, 0.51), border=(0.64, 0.61)), before) == ["border"]  # certain
    assert _left(explanations(colour=(0.55, 0.51), border=(0.61, 0.57)), before) == ["border"]  # 0.11 left of 0.20
    assert _left(explanations(colour=(0.55, 0.51), border=(0.59, 0.57)), before) == []  # 0.09 of 0.20: the first one's remains
    assert _left(explanations(colour=(0.55, 0.51), border=(0.61, 0.54)), before) == []  # may be chance
    strong = explanations(colour=(0.95, 0.93), border=(0.6, 0.55))
    assert _left(explanations(colour=(0.50, 0.46), border=(0.61, 0.57)), strong) == []
    assert _left(explanations(colour=(0.50, 0.46), border=(0.66, 0.61)), strong) == ["border"]


def test_what_is_advised_is_what_was_tried(two_shortcuts, monkeypatch):
    """The fuller weights against two shortcuts, or those of the readers alone where the fuller ones would do harm."""
    data, seen = two_shortcuts[0], two_shortcuts[4]
    monkeypatch.setattr("unskew.parts.trial.decision", lambda tried, explained, **_: (True, ""))
    found = trial(data, torch.arange(len(data.y)), seen)
    assert (found.supports, found.weights) == (True, "opinion")
    monkeypatch.setattr("unskew.parts.trial.decision", lambda tried, explained, **_: (tried.weights == "readers", ""))
    with monkeypatch.context() as harmful:
        harmful.setattr(Trial, "harms", property(lambda self: True))
        milder = trial(data, torch.arange(len(data.y)), seen)
    assert (milder.supports, milder.weights) == (True, "readers")
    # Where the readers' weights help for certain, the fuller ones need only do no harm.
    fuller = trial(data, torch.arange(len(data.y)), seen)
    assert (fuller.supports, fuller.weights, fuller.independent) == (True, "opinion", found.independent)
    assert fuller.reason.endswith(f"{100 * found.independent[1]:.0f} % balanced")
    harm = dataclasses.replace(found, gain=-0.03, error=0.02)
    assert harm.harms
    assert not dataclasses.replace(harm, error=0.04).harms
    assert milder.independent != found.independent
    assert milder.independent[0] == found.independent[0]  # the plain layer, judged by the same rows
    monkeypatch.setattr("unskew.training.reference.linear_default", lambda data: True)
    assert advice(data, milder).settings == {"weights": "readers"}
    assert advice(data, found).settings == {"weights": "opinion"}


def explained(name, value, low, accuracy):
    return Explanation(name, name, Explained(value, low, 0.99, 40), accuracy)


def test_what_reads_the_class_as_well_as_the_best_explanation_sharpens_the_opinion():
    best = explained("border", 0.97, 0.94, 0.970)
    certain, unsure = explained("brightest", 0.71, 0.61, 0.991), explained("mean", 0.71, 0.55, 0.991)
    worse, nearly = explained("texture", 0.70, 0.65, 0.80), explained("histogram", 0.90, 0.5, 0.5)
    assert _chosen([best, nearly, certain, unsure, worse]) == ["border", "histogram", "brightest"]
    assert _chosen([unsure]) == []
