"""Models whose reliance is known by construction, and the interval's coverage."""

import dataclasses

import pytest
import torch
from torch import nn

import unskew
from unskew.core.errors import UserError
from unskew.data.dataset import DataSet, Memory
from unskew.measure.reliance import of_answers, reliance


class Colour(nn.Module):
    """Says which channel is brightest on average: three colours, whatever the shape."""

    def forward(self, x):
        return 50 * x.mean((2, 3))


class Shape(nn.Module):
    """Says from the grey image whether the bright part is a bar across, a bar down or a ring; blind to colour."""

    def forward(self, x):
        grey = x.mean(1) - x.mean((1, 2, 3))[:, None, None]
        return torch.stack([(grey * t).sum((1, 2)) for t in templates()], 1)


class Both(nn.Module):
    """The sum of the two, on a common scale."""

    def forward(self, x):
        return sum(_scaled(m(x)) for m in (Colour(), Shape()))


def _scaled(logits):
    return (logits - logits.mean(1, keepdim=True)) / logits.std(1, keepdim=True).clamp(min=1e-6)


def templates():
    across, down, ring = torch.zeros(3, 32, 32)
    across[13:19, 6:26] = down[6:26, 13:19] = 1
    ring[8:24, 8:24] = 1
    ring[11:21, 11:21] = 0
    return [t / t.sum() - 1 / t.numel() for t in (across, down, ring)]


@pytest.fixture(scope="module")
def drawn():
    """300 images: a shape (the class) in one of three colours that agrees with it, on noise."""
    g = torch.Generator().manual_seed(0)
    y = torch.arange(300) % 3
    shape = torch.stack([(t > 0).float() for t in templates()])[y]
    paint = torch.full((3, 3), 0.35)
    paint.fill_diagonal_(0.9)
    x = shape[:, None] * paint[y][:, :, None, None] + 0.05 * torch.rand(300, 3, 32, 32, generator=g)
    return DataSet(
        name="drawn", inputs=Memory((255 * x.clamp(0, 1)).byte()), y=y, classes=("a", "b", "c"), split=torch.full((300,), 2)
    )


def test_the_ranking_is_right(drawn):
    colour, shape, both = (reliance(m, drawn) for m in (Colour(), Shape(), Both()))
    # Colour only: colour is used, nothing about the arrangement is.
    assert {*list(colour)[:2]} == {"grey", "colours"}
    assert colour["colours"].used.low > 0.5
    assert colour["arrangement"].used.high <= 0.05
    # Shape only: the arrangement is used, colour is not.
    assert shape["arrangement"].used.low > 0.2
    assert shape["arrangement"].used.low > max(shape[k].used.high for k in ("grey", "colours", "border"))
    assert max(shape[k].used.high for k in ("grey", "colours")) < 0.05
    # Both: some of each, and less than the one that has only that.
    for kind, alone in (("colours", colour), ("arrangement", shape)):
        assert 0.2 < both[kind].used.low < both[kind].used.high < alone[kind].used.value
    assert max(both[k].used.high for k in ("border", "detail")) < 0.05


def test_every_class_of_model_agrees_with_itself(drawn):
    found = reliance(lambda x: torch.eye(3)[torch.zeros(len(x)).long()], drawn)
    assert all(r.used.value == 0 and r.agreement.value == 1 for r in found.values())


def test_a_module_keeps_its_mode_and_rows_are_limited(drawn):
    model = Colour()
    found = reliance(model, drawn, rows=60, normalised=False)
    assert model.training
    assert {r.used.n for r in found.values()} == {60}


def test_figures_by_hand():
    plain, y = torch.tensor([0, 0, 1, 1, 2]), torch.tensor([0, 1, 1, 1, 2])
    altered, control = torch.tensor([0, 1, 2, 1, 0]), torch.tensor([0, 0, 1, 2, 2])
    found = of_answers(plain, altered, control, y)
    # Same answers: rows 0 and 3 when altered, all but row 3 under control. Right: 0, 1, 3 and 0, 2, 4.
    assert [found.agreement.value, found.control.value] == [2 / 5, 4 / 5]
    assert [found.accuracy.value, found.control_accuracy.value] == [3 / 5, 3 / 5]
    assert found.used.value == pytest.approx(2 / 5)


def test_vectors_are_refused(drawn):
    with pytest.raises(UserError, match="reliance needs images or clips"):
        reliance(nn.Linear(2, 2), unskew.load("toy"))
    with pytest.raises(UserError, match="several labels"):
        reliance(Colour(), dataclasses.replace(drawn, y=torch.eye(3)[drawn.y]))


@pytest.mark.parametrize(("gained", "lost", "n"), [(0.3, 0.05, 100), (0.02, 0.02, 100), (0.6, 0.0, 60), (0.1, 0.15, 500)])
def test_the_interval_covers_the_truth_as_often_as_it_says(gained, lost, n):
    # `gained` of the rows keep their answer under control only, `lost` without the thing only.
    g = torch.Generator().manual_seed(1)
    covered = 0
    for _ in range(800):
        u = torch.rand(n, generator=g)
        control, altered = (u < gained).long(), ((u >= gained) & (u < gained + lost)).long()
        zero = torch.ones(n).long()
        used = of_answers(zero, altered, control, zero).used
        covered += used.low <= gained - lost <= used.high
    assert 0.93 <= covered / 800 <= 0.995
