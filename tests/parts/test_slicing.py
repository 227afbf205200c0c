import math

import pytest
import torch
import torch.nn.functional as F

from unskew.parts.slicing import Nuisance, slice_rows


def planted(conflicting=0.1, n=600, seed=0):
    """Features that show the class weakly and a shortcut strongly; the shortcut alone as a nuisance."""
    g = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % 2
    against = torch.rand(n, generator=g) < conflicting
    b = torch.where(against, 1 - y, y)
    x = torch.stack([2.0 * y, 5.0 * b], 1) + torch.randn(n, 2, generator=g)
    shown = (5.0 * b + torch.randn(n, generator=g))[:, None]
    gain = F.logsigmoid((2 * y - 1) * (shown.squeeze(1) - 2.5) * 2)
    noise = torch.randn(n, generator=g)
    return x, y, against, [Nuisance("shortcut", "the shortcut", shown, gain), Nuisance("noise", "noise", noise[:, None], noise)]


def test_the_nuisance_is_read_and_named():
    x, y, against, nuisances = planted()
    reference = torch.stack([-(x[:, 1] - 2.5), x[:, 1] - 2.5], 1)
    found = slice_rows(x, y, 2, reference, nuisances)
    assert found.probe == ("shortcut",)
    conflicting = torch.tensor(found.slicing.conflicting)
    assert (conflicting[found.slicing.slice] == against).double().mean() > 0.97
    for s, (name, phrase, area) in enumerate(found.explained):
        assert (name, phrase) == (("shortcut", "the shortcut") if conflicting[s] else ("", ""))
        assert area > 0.95 or not conflicting[s]
    assert 0 < found.exponent < 2


def test_without_nuisances_the_model_itself_is_the_probe():
    x, y, *_ = planted()
    wrong = torch.arange(len(y)) % 10 == 0
    said = torch.where(wrong, 1 - y, y)
    found = slice_rows(x, y, 2, 4 * F.one_hot(said, 2).double(), [], own=True)
    assert found.probe == ()
    assert found.wrong.tolist() == wrong.tolist()
    assert all(name == "" and math.isnan(area) for name, _, area in found.explained)


def test_more_conflicting_rows_gain_what_the_curve_says():
    # The curve of half of the conflicting rows must foretell, roughly, the error with all of them.
    x, y, against, nuisances = planted(0.2, 1200, seed=3)
    reference = torch.stack([-(x[:, 1] - 2.5), x[:, 1] - 2.5], 1)
    kept = ~against | (torch.arange(len(y)) % 2 == 0)
    half = slice_rows(
        x[kept], y[kept], 2, reference[kept], [Nuisance(n.name, n.phrase, n.features[kept], n.gain[kept]) for n in nuisances]
    )
    whole = slice_rows(x, y, 2, reference, nuisances)
    before = float(half.wrong[against[kept]].double().mean())
    after = float(whole.wrong[against].double().mean())
    assert before * 2**-half.exponent == pytest.approx(after, abs=0.12)
    assert after < before


def test_a_part_is_read_only_where_no_nuisance_explains_the_errors():
    x, y, against, nuisances = planted()
    reference = torch.stack([-(x[:, 1] - 2.5), x[:, 1] - 2.5], 1)
    asked = []

    def part(logits):
        asked.append(logits)
        return "the upper left of the picture", nuisances[0].features

    assert slice_rows(x, y, 2, reference, nuisances, part=part).probe == ("shortcut",)
    assert not asked
    found = slice_rows(x, y, 2, reference, nuisances[1:], part=part)
    assert asked == [reference]
    assert (found.probe, found.read) == (("part",), ("the upper left of the picture",))
    conflicting = torch.tensor(found.slicing.conflicting)
    assert (conflicting[found.slicing.slice] == against).double().mean() > 0.97
    assert {name for name, _, _ in found.explained} == {"", "part"}
    # Where nothing stands out the model itself is the probe, as without the question.
    assert slice_rows(x, y, 2, reference, nuisances[1:], part=lambda logits: None).probe == ()
