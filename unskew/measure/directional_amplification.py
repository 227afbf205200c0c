r"""Directional predictability amplification (DPA): does a model make the bias easier to tell from the task, or the task from the bias?

.. math::
    \mathrm{DPA} = \frac{\Psi_M - \Psi_D}{\Psi_M + \Psi_D}, \qquad \Psi = \max(0,\ \text{attacker's score} - \text{chance})

================  ===================================  ==========================================  ==============================
direction         Psi_M                                Psi_D, at equal task quality                attacker
================  ===================================  ==========================================  ==============================
task to bias      the bias guessed from the logits     from labels corrupted to the model's F1     as for `leakage`
bias to task      the model's decisions guessed from   corrupted labels guessed from the bias      a table of counts
                  the bias
================  ===================================  ==========================================  ==============================

From -1 (the model hides what labels as wrong would tell) over 0 to 1 (only the model tells it). Bias to task: for several labels per
row, the balanced accuracy of guessing each label from the bias, averaged over labels; for classes, the mean recall. A table is fitted
on one half of the rows and judged on the other, both ways. Undefined (NaN) where neither the model nor the labels tell anything.

Intervals: task to bias, from 4,000 normal draws of both scores with their standard errors; bias to task, from 200 bootstrap samples of
rows, the same for decisions and corrupted labels. Above 100,000 rows the samples are drawn by counts (`unskew.stats.resample`): the
tables of all of them come from one pass over the rows.

Does it rank what Delta does not? On tiles (5,000 scenes, one seed, small attackers) with the person shown, blurred by 1 and by 3
pixels, and blacked out, Delta is 19, 23, 22 and 7 points, DPA from task to bias 0.73, 0.91, 0.80 and 0.63, with overlapping intervals:
it orders the four as Delta does, and neither falls with every step of hiding. From bias to task it is 0.63, 0.58, 0.63 and 0.90; why
it is highest with the person blacked out was not looked into.

Source: Tokas, Nair, Kerner, "DPA: a one-stop metric to measure bias amplification in classification datasets", NeurIPS 2025.
Differs: only the abstract and summaries of the paper could be read: what is predicted follows its definition of direction, the
attackers are ours. Models here do not predict the bias, so in the direction from task to bias attackers do, from logits.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import seed_of, stream
from unskew.measure.leakage import Amplification, Attack, bias_amplification, corrupt, corruption_share
from unskew.stats.f1 import decided
from unskew.stats.groups import tensor_of
from unskew.stats.intervals import Z95
from unskew.stats.resample import COUNTED, grouped_sums

NORMAL_DRAWS = 4000
BOOTSTRAP = 200
CORRUPTIONS = 5  # draws of corrupted labels, averaged


@dataclass(frozen=True, slots=True)
class Directed:
    """Amplification in one direction."""

    value: float
    low: float
    high: float
    model: float  # Psi_M
    dataset: float  # Psi_D
    reason: str = ""  # why it is undefined


@dataclass(frozen=True, slots=True)
class Directional:
    """Amplification in both directions."""

    to_bias: Directed
    to_task: Directed


def relative_change(model: Tensor, dataset: Tensor) -> Tensor:
    r"""(m - d) / (m + d) of scores above chance, negative ones counted as 0; NaN where both are 0.

    >>> relative_change(torch.tensor([0.75, -0.1, 0.2]), torch.tensor([0.25, 0.2, 0.2])).tolist()
    [0.5, -1.0, 0.0]
    """
    m, d = model.double().clamp(min=0), dataset.double().clamp(min=0)
    return torch.where(m + d > 0, (m - d) / (m + d).clamp(min=1e-300), torch.nan)


def directional_amplification(
    logits: Tensor,
    labels: Tensor,
    attribute: Tensor,
    *,
    attack: Attack | None = None,
    seed: int = 0,
    more: Amplification | None = None,
    parts: Tensor | None = None,
) -> Directional:
    """DPA in both directions. `more`, from `bias_amplification` on the same rows, saves attacking again."""
    more = more or bias_amplification(logits, labels, attribute, attack=attack, seed=seed, parts=parts)
    judged = slice(None) if parts is None else parts == 2
    logits, labels, attribute = (torch.as_tensor(t)[judged] for t in (logits, labels, attribute))
    return Directional(to_bias(more, seed), to_task(logits, labels, attribute, more.f1, seed))


def to_bias(more: Amplification, seed: int = 0) -> Directed:
    """How much better the bias is guessed from logits than from labels that are wrong as often."""
    m, d = more.model.value - more.model.chance, more.dataset_at_f1.value - more.dataset_at_f1.chance
    errors = torch.tensor([more.model.error, more.dataset_at_f1.error], dtype=torch.float64)
    draws = torch.randn(NORMAL_DRAWS, 2, generator=stream(seed, "dpa"), dtype=torch.float64) * errors
    return _directed(m, d, relative_change(m + draws[:, 0], d + draws[:, 1]))


def to_task(logits: Tensor, labels: Tensor, attribute: Tensor, f1: float, seed: int = 0) -> Directed:
    """How much better decisions are guessed from the bias than labels that are wrong as often."""
    attribute = tensor_of(attribute, "bias values").long()
    known = attribute >= 0
    if int(known.sum()) < 4:
        raise UserError(f"amplification needs at least four rows with a bias value, got {int(known.sum())}")
    guess, truth = (t[known] for t in decided(logits, labels))
    single = labels.ndim == 1
    share = corruption_share(truth, f1, single, seed_of(seed, "corruption")) if f1 < 1 - 1e-9 else 0.0
    noisy = [corrupt(truth, share, single, stream(seed, "corrupted", k)) for k in range(CORRUPTIONS if share else 1)]
    code = torch.unique(attribute[known], return_inverse=True)[1]
    half = torch.rand(len(code), generator=stream(seed, "halves")) < 0.5
    if len(code) > COUNTED:
        whole = told_by(guess, code, half, single), math.fsum(told_by(n, code, half, single) for n in noisy) / len(noisy)
        drawn = _told_in_draws([guess, *noisy], code, half, single, seed)  # (draws, 1 + corruptions)
        return _directed(*whole, relative_change(drawn[:, 0], drawn[:, 1:].mean(1)))
    scores = [
        (
            told_by(guess[rows], code[rows], half[rows], single),
            math.fsum(told_by(n[rows], code[rows], half[rows], single) for n in noisy) / len(noisy),
        )
        for rows in _samples(len(code), seed)
    ]
    model, dataset = torch.tensor(scores, dtype=torch.float64).T
    return _directed(float(model[0]), float(dataset[0]), relative_change(model[1:], dataset[1:]))


def _samples(n: int, seed: int) -> Iterator[Tensor]:
    """All rows, then those of every bootstrap sample, one after another: together they would be 200 times the rows."""
    pick = stream(seed, "bootstrap")
    yield torch.arange(n)
    for _ in range(BOOTSTRAP):
        yield torch.randint(n, (n,), generator=pick)


def told_by(labels: Tensor, code: Tensor, half: Tensor, single: bool) -> float:
    """The score above chance of guessing labels (n, L), zeros and ones, from codes (n,) by tables of counts.

    Of several labels per row the mean over labels that vary; of classes the mean recall over classes that occur.
    """
    values = int(code.max()) + 1
    if single:
        return _told(labels.argmax(1), code, half, labels.shape[1], values)
    columns = [labels[:, k].long() for k in range(labels.shape[1])]
    scores = [_told(c, code, half, 2, values) for c in columns if 0 < int(c.sum()) < len(c)]
    return math.fsum(scores) / len(scores) if scores else 0.0


def _told(target: Tensor, code: Tensor, half: Tensor, classes: int, values: int) -> float:
    tables = [
        (code[rows] * classes + target[rows]).bincount(minlength=values * classes).view(values, classes).double()
        for rows in (half, ~half)
    ]
    scores = []
    for fitted, judged in (tables, tables[::-1]):
        present = (judged.sum(0) > 0) & (fitted.sum(0) > 0)
        if int(present.sum()) < 2:
            continue
        fitted, judged = fitted[:, present], judged[:, present]
        guess = (fitted / fitted.sum(0)).argmax(1)  # the class that most often has this value, whatever its frequency
        right = judged[torch.arange(values), guess]
        recall = torch.zeros(judged.shape[1], dtype=torch.float64).index_add_(0, guess, right) / judged.sum(0)
        scores.append(float(recall.mean()) - 1 / judged.shape[1])
    return math.fsum(scores) / len(scores) if scores else 0.0


def _told_in_draws(tables: list[Tensor], code: Tensor, half: Tensor, single: bool, seed: int) -> Tensor:
    """(draws, tables) `told_by` of every table of labels in every draw by counts; the draws are the same for all of them."""
    values, width = int(code.max()) + 1, tables[0].shape[1]

    def columns(part: slice) -> Tensor:
        blocks = [F.one_hot(t[part].argmax(1), width) if single else t[part].long() for t in tables]
        return torch.cat([torch.ones(len(blocks[0]), 1, dtype=torch.long), *blocks], 1)

    sums = grouped_sums(columns, half.long() * values + code, 2 * values, BOOTSTRAP, seed)
    sums = sums.view(BOOTSTRAP, 2, values, -1)
    rows, found = sums[..., 0], []
    for block in torch.split(sums[..., 1:], width, 3):
        if single:
            found.append(_scores(block))
            continue
        by_label = [torch.stack([rows - with_it, with_it], 3) for with_it in block.unbind(3)]
        scores = torch.stack([_scores(t) for t in by_label], 1)
        varies = torch.stack([(t.sum((1, 2)) > 0).all(1) for t in by_label], 1)
        found.append((scores * varies).sum(1) / varies.sum(1).clamp(min=1))
    return torch.stack(found, 1)


def _scores(tables: Tensor) -> Tensor:
    """(draws,) the score above chance of `_told` from counts (draws, halves, values, classes)."""
    total, defined = torch.zeros(len(tables), dtype=torch.float64), torch.zeros(len(tables), dtype=torch.float64)
    for fitted, judged in ((tables[:, 1], tables[:, 0]), (tables[:, 0], tables[:, 1])):
        known, asked = fitted.sum(1), judged.sum(1)  # (draws, classes)
        present = (known > 0) & (asked > 0)
        share = torch.where(present[:, None], fitted / known.clamp(min=1)[:, None], -1.0)
        guess = share.argmax(2)
        right = judged.gather(2, guess[:, :, None]).squeeze(2)
        recall = torch.zeros_like(known).scatter_add_(1, guess, right) / asked.clamp(min=1) * present
        classes = present.sum(1)
        total += torch.where(classes > 1, (recall.sum(1) - 1) / classes.clamp(min=1), 0.0)
        defined += classes > 1
    return total / defined.clamp(min=1)


def _directed(model: float, dataset: float, draws: Tensor) -> Directed:
    value = float(relative_change(torch.tensor(model), torch.tensor(dataset)))
    fine = draws[~draws.isnan()]
    if math.isnan(value) or not len(fine):
        return Directed(math.nan, math.nan, math.nan, model, dataset, "neither the model nor the labels tell anything")
    tail = 0.5 * math.erfc(Z95 / math.sqrt(2))
    low, high = torch.quantile(fine, torch.tensor([tail, 1 - tail], dtype=torch.float64)).tolist()
    return Directed(value, min(low, value), max(high, value), model, dataset)


FUNCTIONS = (directional_amplification,)
RANGE = (-1.0, 1.0)
HIGHER = "the model tells more than labels that are wrong as often"
