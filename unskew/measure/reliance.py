r"""Reliance: how much a model's answers change when one thing is taken away, beyond a random change of the same size.

.. math::
    U_\phi = P\big(f(x + \epsilon_\phi) = f(x)\big) - P\big(f(x_{\setminus \phi}) = f(x)\big), \qquad
    \lVert \epsilon_\phi \rVert = \lVert x_{\setminus \phi} - x \rVert

===========  =============================================================================================================
grey         without colour              colours      with the channels in another order
border       the outer eighth filled     centre       the middle half of each side filled
detail       shrunk and enlarged again   arrangement  4 x 4 patches in random order
order        frames in random order      motion       the middle frame all the time (both for clips)
===========  =============================================================================================================

U lies in [-1, 1]. Above 0 the model uses what was taken away; at 0 or below it does not notice more than it notices noise of the
same energy. The interval is for paired rows. Accuracy is given beside it: what is used may help or harm.

Source: interventions on the input as in Geirhos et al., "ImageNet-trained CNNs are biased towards texture", ICLR 2019, and Xiao et
al., "Noise or signal: the role of image backgrounds in object recognition", ICLR 2021; the interval is that of Agresti and Min,
"Simple improved confidence intervals for comparing matched proportions", Statistics in Medicine 2005.
Differs: every change is compared with a random one of the same pixel energy, since a large change of any kind moves a model.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.data.dataset import DataSet
from unskew.data.loader import rows_in_order, to_float
from unskew.records import Estimate
from unskew.stats.intervals import paired_difference, wilson
from unskew.stats.neutralise import Change, changes_for, same_energy
from unskew.stats.sample import stratified

ROWS = 500  # enough for an interval of about four points to either side
BATCH = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliance:
    """One thing taken away. Estimates are over the same rows."""

    used: Estimate  # agreement after the random change minus agreement after this one
    agreement: Estimate  # with the answers on the rows as they are
    control: Estimate  # the same after a random change of the same energy
    accuracy: Estimate
    control_accuracy: Estimate
    energy: float  # root mean square of the change, in units of the pixel range

    def json(self) -> dict[str, Any]:
        names = ("used", "agreement", "control", "accuracy", "control_accuracy")
        return {**{n: getattr(self, n).json() for n in names}, "energy": self.energy}


def reliance(
    model: nn.Module | Callable[[Tensor], Tensor],
    data: DataSet,
    *,
    split: str = "test",
    rows: int = ROWS,
    normalised: bool = True,
    seed: int = 0,
) -> dict[str, Reliance]:
    """What any torch module, or function from inputs to logits, relies on; the largest first.

    Inputs are normalised as the data set says, unless `normalised` is false: then they are passed in [0, 1].
    """
    chosen = data.rows(split)
    chosen = chosen[stratified(data.y[chosen], rows, seed=seed, least=1)] if not data.multi_label else chosen
    check(data)

    def answer(change: Callable[[Tensor, Tensor], Tensor] | None) -> tuple[Tensor, Tensor]:
        ids, said = [], []
        for index, x in _batches(data, chosen, change, normalised):
            ids.append(index)
            said.append(model(x).argmax(1).cpu())
        return torch.cat(ids), torch.cat(said)

    training = isinstance(model, nn.Module) and model.training
    if isinstance(model, nn.Module):
        model.eval()
    try:
        with torch.inference_mode():
            return compare(answer, data, seed=seed)
    finally:
        if isinstance(model, nn.Module):
            model.train(training)


def check(data: DataSet) -> None:
    """Raise if there is nothing that could be taken away."""
    if data.multi_label or not changes_for(data.shape):
        what = "several labels per row" if data.multi_label else f"inputs of shape {data.shape}"
        raise UserError(f"reliance needs images or clips with one class per row; {data.name} has {what}")


def compare(
    answer: Callable[[Callable[[Tensor, Tensor], Tensor] | None], tuple[Tensor, Tensor]],
    data: DataSet,
    *,
    seed: int = 0,
    advance: Callable[[int, str], None] = lambda n, what: None,
) -> dict[str, Reliance]:
    """The reliance of a model that answers (ids, classes) for the rows after `alter(inputs, ids)`; the largest first."""
    ids, plain = answer(None)
    y = data.y[ids]
    advance(1, "as they are")
    found = {}
    for name, change in changes_for(data.shape).items():
        square: list[Tensor] = []
        answers = [answer(_altering(change, name, seed, random, square))[1] for random in (False, True)]
        found[name] = of_answers(plain, answers[0], answers[1], y, energy=float(torch.cat(square).mean().sqrt()))
        advance(2, name)
    return dict(sorted(found.items(), key=lambda item: -item[1].used.value))


def of_answers(plain: Tensor, altered: Tensor, control: Tensor, y: Tensor, *, energy: float = math.nan) -> Reliance:
    """From the classes that a model says of the same rows as they are, altered, and randomly changed.

    >>> plain, altered = torch.tensor([0, 1, 1, 0]), torch.tensor([0, 0, 1, 1])
    >>> of_answers(plain, altered, plain, plain).used.value
    0.5
    """
    same, kept = altered == plain, control == plain
    return Reliance(
        used=Estimate(*paired_difference(int((kept & ~same).sum()), int((same & ~kept).sum()), len(y)), len(y)),
        agreement=_share(same),
        control=_share(kept),
        accuracy=_share(altered == y),
        control_accuracy=_share(control == y),
        energy=energy,
    )


def _altering(
    change: Change, name: str, seed: int, random: bool, square: list[Tensor]
) -> Callable[[Tensor, Tensor], Tensor]:  # fmt: skip
    def alter(x: Tensor, index: Tensor) -> Tensor:
        altered = change(x, stream(seed, "reliance", name, int(index[0])))
        if not random:
            square.append((altered - x).square().flatten(1).mean(1))
            return altered
        return same_energy(x, altered, stream(seed, "control", name, int(index[0])))

    return alter


def _batches(
    data: DataSet, rows: Tensor, change: Callable[[Tensor, Tensor], Tensor] | None, normalised: bool
) -> Iterable[tuple[Tensor, Tensor]]:
    if normalised:
        yield from rows_in_order(data, rows, BATCH, alter=change)
        return
    for index in torch.split(rows, BATCH):
        x, fine = data.inputs.rows(index)
        ready = to_float(x[fine], torch.float32)
        yield index[fine], ready if change is None else change(ready, index[fine])


def _share(right: Tensor) -> Estimate:
    count, n = int(right.sum()), len(right)
    return Estimate(count / n, *wilson(count, n), n)


def in_words(found: Mapping[str, Reliance]) -> str:
    """What the model relies on, in a sentence."""
    used = [f"{NAMES[name]} ({100 * r.used.value:.0f} points)" for name, r in found.items() if r.used.low > 0]
    return (
        f"The model relies on {', '.join(used)}." if used else "None of what was taken away matters more than noise of its size."
    )


NAMES = {
    "grey": "colour", "colours": "which colours there are", "border": "the border", "centre": "the centre", "detail": "fine detail",
    "arrangement": "the arrangement of parts", "order": "the order of frames", "motion": "change between frames",
}  # fmt: skip

FUNCTIONS = (reliance, of_answers)
RANGE = (-1.0, 1.0)
HIGHER = "the model's answers depend more on what was taken away"
