"""What findings are called, in which order, and which are the same thing."""

import dataclasses
import math

import pytest
import torch

from unskew.features import spec
from unskew.measure.representation_bias import representation_bias
from unskew.parts.findings import describe, followed, grouped, kind_of, leading, ordered, overlaps, questions, verdict
from unskew.parts.trial import Trial
from unskew.records import Finding


def finding(name, kind, bias, features=3, **more):
    return Finding(
        name=name, label=name, bias=bias, low=bias - 0.05, high=bias + 0.05, chance=0.0, chance_high=0.01, verdict=kind, content=False,
        sentence=f"{name} tells.", per_class={}, features=features, solved=0.5, risk=0.1, entropy=0.7, n=100, note="", **more,
    )  # fmt: skip


def trial(named, gain, cost=0.02):
    return Trial(
        supports=gain >= 0.03, reason="", rows=100, conflicting_rows=20, nuisances=tuple((n, n, 0.8) for n in named), named=named,
        independent=(0.6, 0.6 + gain), conflicting=(0.5, 0.5 + gain), class_balanced=(0.9, 0.9 - cost), effective=50.0,
        gain=gain, error=0.01, cost=cost, loss=0.6,
    )  # fmt: skip


@pytest.fixture(scope="module")
def told():
    """An estimate that is far above chance."""
    y = torch.arange(200) % 2
    return representation_bias(y[:, None] + 0.1 * torch.randn(200, 1, generator=torch.Generator().manual_seed(0)), y)


@pytest.mark.parametrize(
    ("name", "expected", "tried", "kind"),
    [
        ("color:kind=mean", False, None, "question"),
        ("color:kind=mean", False, trial(("color:kind=mean",), 0.05), "shortcut"),
        ("color:kind=mean", False, trial(("color:kind=mean",), 0.0), "question"),  # it explains errors, but may be the signal
        (
            "color:kind=mean",
            False,
            trial(("color:kind=mean",), 0.05, cost=0.06),
            "question",
        ),  # giving it up costs more than it gains
        ("color:kind=mean", False, trial(("texture",), 0.05), "question"),
        ("color:kind=mean", True, trial(("color:kind=mean",), 0.05), "readable"),
        ("crop:where=center", False, None, "readable"),
        ("dimensions", False, None, "shortcut"),  # how a file was made is no content
        ("file", False, None, "question"),  # its bytes may be
    ],
)
def test_kinds(name, expected, tried, kind, told):
    assert kind_of(told, spec(name), expected, tried) == kind


def read_from_a_cue():
    """(rows, generator, classes, a cue that agrees with 85 % of them, what can be read from it)."""
    generator = torch.Generator().manual_seed(0)
    n = 600
    y = torch.randint(0, 2, (n,), generator=generator)
    cue = torch.where(torch.rand(n, generator=generator) < 0.85, y, 1 - y)
    estimate = representation_bias(cue[:, None] + 0.05 * torch.randn(n, 1, generator=generator), y)
    return n, generator, y, cue, estimate


def test_what_a_simple_model_follows_against_the_class_is_a_shortcut():
    n, generator, y, cue, estimate = read_from_a_cue()
    index = torch.arange(0, 3 * n, 3)
    content = (
        torch.rand(n, generator=generator) < 0.9
    )  # a model that reads what is shown errs on a tenth of the rows, whatever the cue
    lives_on_it = dataclasses.replace(trial((), 0.0), judged=(index, cue == y))
    reads_content = dataclasses.replace(trial((), 0.0), judged=(index, content))
    assert followed(estimate, index, lives_on_it, 2) == (0.0, 1.0, True)
    accuracy, elsewhere, follows = followed(estimate, index, reads_content, 2)
    assert accuracy == pytest.approx(0.9, abs=0.07)
    assert elsewhere == pytest.approx(0.9, abs=0.04)
    assert not follows
    one = spec("tone")
    assert describe(one, estimate, ("a", "b"), (), lives_on_it, index).verdict == "shortcut"
    assert describe(one, estimate, ("a", "b"), ("tone",), lives_on_it, index).verdict == "readable"
    assert describe(one, estimate, ("a", "b"), (), reads_content, index).verdict == "question"
    # The trial may have seen only some of the rows, and too few of them say nothing.
    some = dataclasses.replace(trial((), 0.0), judged=(index[:30], (cue == y)[:30]))
    assert followed(estimate, index, some, 2) == (None, None, False)


def test_what_tells_the_class_where_a_pretrained_network_is_blind_is_a_shortcut():
    n, generator, _, _, estimate = read_from_a_cue()
    index = torch.arange(n)
    guesses = torch.rand(n, generator=generator) < 0.5
    blind = dataclasses.replace(trial((), 0.0), judged=(index, guesses), seen=0.01 * torch.randn(n, generator=generator).double())
    one = describe(spec("tone"), estimate, ("a", "b"), (), blind, index)
    assert one.verdict == "shortcut"
    assert one.seen == pytest.approx(0.0, abs=0.01)
    assert "a pretrained network reads hardly anything else from these pictures (0 %)" in verdict([one], n)
    # Not where the network sees the class too, where the cue tells no more than it does, for a probe that reads anything, or for what is
    # expected to tell the class.
    sees = dataclasses.replace(blind, seen=blind.seen + 0.06 * math.log(2))
    level = estimate.gain - estimate.gain.mean()
    as_much, weak = dataclasses.replace(blind, seen=level + blind.seen), dataclasses.replace(estimate, gain=level)
    assert describe(spec("tone"), estimate, ("a", "b"), (), sees, index).verdict == "question"
    assert describe(spec("tone"), weak, ("a", "b"), (), as_much, index).verdict == "question"
    assert describe(spec("local"), estimate, ("a", "b"), (), blind, index).verdict == "question"
    assert describe(spec("tone"), estimate, ("a", "b"), ("tone",), blind, index).verdict == "readable"


def test_what_is_not_above_chance_is_clean_and_hardly_above_it_a_trace(told):
    one = spec("dimensions")
    assert kind_of(dataclasses.replace(told, bias=0.01), one, False, None) == "trace"
    assert kind_of(dataclasses.replace(told, low=-0.1), one, False, None) == "clean"


def test_what_cannot_be_content_is_a_shortcut_only_if_surely_worth_naming(told):
    few = dataclasses.replace(told, bias=0.05, low=0.002, high=0.1)
    assert few.above_chance
    assert kind_of(few, spec("dimensions"), False, None) == "trace"  # it cannot be asked about: it is no content
    assert kind_of(few, spec("tone"), False, None) == "question"
    assert kind_of(dataclasses.replace(few, low=0.03), spec("dimensions"), False, None) == "shortcut"


def test_order_is_by_kind_and_the_simplest_first():
    given = [
        finding("a", "clean", 0.9),
        finding("wide", "question", 0.8, features=200),
        finding("narrow", "question", 0.75, features=1),
        finding("f", "shortcut", 0.1),
    ]
    assert [f.name for f in ordered(given)] == ["f", "narrow", "wide", "a"]
    # What misleads a simple model is asked first.
    calm = finding("calm", "question", 0.9, followed=0.9, elsewhere=0.95)
    assert [f.name for f in ordered([calm, *given])] == ["f", "narrow", "wide", "calm", "a"]
    # A mark that cannot be part of the subject, read best, is not named after a simpler thing that it changes.
    mark, angle = (finding(name, "shortcut", bias, n) for name, bias, n in (("mark", 0.38, 40), ("angle", 0.35, 4)))
    assert [f.name for f in ordered([mark, angle])] == ["angle", "mark"]
    assert [f.name for f in ordered([dataclasses.replace(mark, foreign=True), angle])] == ["mark", "angle"]


def test_two_views_of_one_shortcut_are_one_thing_and_another_is_not():
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(0, 2, (1500,), generator=generator)
    colour, mark = (torch.where(torch.rand(1500, generator=generator) < p, y, 1 - y) for p in (0.9, 0.85))
    noise = torch.randn(3, 1500, 2, generator=generator)
    features = {
        "colour": colour[:, None] + 0.05 * noise[0],
        "border": colour[:, None] + 0.1 * noise[1],
        "mark": mark[:, None] + 0.05 * noise[2],
    }
    given = [finding("colour", "shortcut", 0.53), finding("border", "shortcut", 0.52), finding("mark", "question", 0.39)]
    found = grouped(given, features, y, 2, 0)
    assert [f.same_as for f in found] == ["", "colour", ""]
    assert [f.name for f in leading(found)] == ["colour", "mark"]
    assert overlaps(found) == "2 separate things can be read: border tells nothing that the colour does not."
    # The rows that contradict the colour are those that were drawn to.
    assert found[0].contradicting == pytest.approx(int((colour != y).sum()), abs=15)
    assert found[1].left < 0.1


def test_words():
    assert verdict([finding("a", "clean", 0.0)], 50).startswith("The only probe found no shortcut in 50 rows")
    lone = finding("colour", "shortcut", 0.9, contradicting=0)
    assert "No row lacks it" in verdict([lone], 50)
    asked = [finding(n, "question", 0.5, contradicting=40) for n in "abc"]
    assert verdict(asked, 50).startswith("Shortcut or signal? The class shows in the a: ")
    assert verdict(asked, 50).endswith("2 more questions below.")
    assert len(questions(asked)) == 2
    assert questions(asked)[1].endswith("In the table, the c is asked about in the same way, by the small name there.")
    assert questions([lone]) == []
    assert "If not" not in questions(asked)[0]
    number = questions([finding("number:at=3", "question", 0.4)])[0]
    assert number.endswith("If not, unskew repair SOURCE --with repair phi=number:at=3 makes weights that balance it.")


def test_what_a_simple_model_hardly_goes_by_is_told_but_not_pressed():
    asked = [finding(n, "question", 0.2, contradicting=40, followed=0.86, elsewhere=0.93) for n in "abcd"]
    said = verdict(asked, 50)
    assert said.startswith(
        "None of the 4 probes found a shortcut that a simple model goes by in 50 rows. The class shows most in the a:"
    )
    assert "such a model is right in 86 % of the rows where it points to another class, 93 % elsewhere." in said
    assert said.endswith("3 more things tell something of the class, but a simple model hardly goes by them.")
    assert "question" not in said
    assert len(questions(asked)) == 1
    # One that misleads the model is asked first, and leads.
    asked.append(finding("e", "question", 0.1, contradicting=40, followed=0.6, elsewhere=0.93))
    said = verdict(ordered(asked), 50)
    assert said.startswith("Shortcut or signal? The class shows in the e: ")
    assert said.endswith("4 more things tell something of the class, but a simple model hardly goes by them.")
    assert questions(asked)[0].startswith("Is the e part of")
    assert "4 more are asked about" in questions(asked)[0]
