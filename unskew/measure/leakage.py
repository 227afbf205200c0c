r"""Leakage: how well a bias column can be guessed from the labels, and from a model's logits; the difference is amplification.

.. math::
    \lambda_D = \mathrm{acc}\big(a \mid y\big), \qquad
    \lambda_M = \mathrm{acc}\big(a \mid \hat z(x)\big), \qquad
    \Delta = \lambda_M - \lambda_D(F_1), \qquad
    \lambda_D(F_1) = \mathrm{acc}\big(a \mid \tilde y\big)

===========  ====================================================================================================
a            bias column, codes; rows of -1 are left out. Every round draws the same number of rows of each value
y            labels, one-hot or a set of zeros and ones
z^           the model's logits
y~           labels corrupted at random until their F1 against y equals the model's: bits flipped (several labels per
             row), or the label replaced (one label per row)
acc          accuracy of an attacker on rows it was not fitted on. Below chance it has found nothing, and that is
             what is reported; `protocol=code` folds it, 0.5 + |acc - 0.5|, for two values
===========  ====================================================================================================

The attacker: batch normalisation of the input, three times (linear 300, batch normalisation, leaky ReLU 0.01), linear. Adam 5e-5,
weight decay 1e-5, batch 128, 100 epochs and at least `min_steps` steps; the epoch best on validation rows is tested once. Five
rounds with fresh balanced draws run together as one batched model. lambda_D(F1) is read off a line through corruptions around the
model's F1. Labels of few patterns (64 or fewer, with ten rows each on average) need no network: the best attacker looks the value
up in a table of counts, and its accuracy on held-out rows, averaged over all halves it may be fitted on, is known in closed form.

Rows: half of a draw to fit on, a quarter for validation, a quarter to judge; or, with `parts`, the splits that the caller names.
A set that was balanced by hand is closer to balance than chance would make it (chi-squared under its 1 % quantile). Random splits
of it make training and test rows contradict each other and attackers score below chance, so there every part is balanced (see
stats/splits.py), the rows that judge are drawn with replacement, and the interval holds the error of these draws (and of the rows without a
counterpart of equal labels).

Source: Wang, Zhao, Yatskar, Chang, Ordonez, "Balanced datasets are not enough", ICCV 2019, section 3; the released code for the
attacker and for 0.5 + |acc - 0.5| (the paper's formula is the plain accuracy).
Differs: fresh splits as well as fresh draws in every round, and balanced splits of balanced sets (`protocol=code`: random splits);
bias columns of K values (chance 1/K, no folding about one half); single labels are corrupted by replacement, where the released
code mixes replacement and bit flips; small sets get at least `min_steps` steps; the table for few patterns. Intervals add the
spread over rounds to the sampling error of the pooled rows; where nothing leaks they are conservative. Of more than 200,000 rows, so
many are drawn at random and attacked, and the note says so.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import seed_of, stream
from unskew.stats import lookup
from unskew.stats.attackers import Attack as Attack
from unskew.stats.attackers import attack_all
from unskew.stats.f1 import decided, label_matrix, macro_f1
from unskew.stats.groups import tensor_of
from unskew.stats.intervals import Z95
from unskew.stats.splits import Rounds, draw_rounds, is_balanced_by_design, values_of

MOST = 200_000  # rows that are attacked
PATTERNS = 64  # distinct label patterns up to which a table of counts is the attacker
ROWS_PER_PATTERN = 10  # that such a table needs on average
CLEAR = 4.0  # standard errors above chance at which labels balanced one by one still tell the value together


@dataclass(frozen=True, slots=True)
class Leakage:
    value: float
    low: float
    high: float
    f1: float  # of the labels that the attacker saw: 1 for true labels, NaN for logits
    rounds: tuple[float, ...]
    chance: float  # 1 / number of values
    n: int  # rows in one balanced draw
    error: float = 0.0  # standard error behind the interval, which is clipped to [0, 1]
    note: str = ""
    attacker: str = "network"  # or table
    by_design: bool = False  # the labels were balanced by hand, and so is every part


@dataclass(frozen=True, slots=True)
class Amplification:
    delta: float
    low: float
    high: float
    model: Leakage
    dataset_at_f1: Leakage
    f1: float  # the model's


def dataset_leakage(
    labels: Tensor, attribute: Tensor, *, attack: Attack | None = None, seed: int = 0, parts: Tensor | None = None
) -> Leakage:
    """lambda_D: the attribute guessed from the true labels, (N,) classes or (N, L) zeros and ones.

    `parts`, (N,), says where attackers are fitted (0), chosen (1) and judged (2); without it, rows are split in every round.
    """
    (labels, attribute), parts, note = _some((labels, attribute), parts, seed)
    x = label_matrix(labels)
    return _noted(_leak([x], attribute, attack or Attack(), seed, f1=[1.0], labels=x, parts=parts), note)


def model_leakage(
    logits: Tensor,
    attribute: Tensor,
    *,
    attack: Attack | None = None,
    seed: int = 0,
    labels: Tensor | None = None,
    parts: Tensor | None = None,
) -> Leakage:
    """lambda_M: the attribute guessed from a model's logits (N, C). `labels` let balanced sets be split as dataset_leakage does."""
    (logits, attribute, *truths), parts, note = _some((logits, attribute, *(() if labels is None else (labels,))), parts, seed)
    x = torch.as_tensor(logits).float()
    if not bool(torch.isfinite(x).all()):
        raise UserError("logits have NaN or infinity")
    truth = label_matrix(truths[0]) if truths else None
    networks = dataclasses.replace(attack or Attack(), attacker="network")
    return _noted(_leak([x], attribute, networks, seed, f1=[math.nan], labels=truth, parts=parts), note)


def bias_amplification(
    logits: Tensor,
    labels: Tensor,
    attribute: Tensor,
    *,
    attack: Attack | None = None,
    seed: int = 0,
    curve: "LeakageCurve | None" = None,
    parts: Tensor | None = None,
) -> Amplification:
    """Delta: what the model leaks beyond labels that are wrong as often as its predictions. Both are attacked by networks.

    `curve`, from `dataset_leakage_curve`, saves attacks on labels if several models are compared on the same rows.
    """
    (logits, labels, attribute), parts, _ = _some((logits, labels, attribute), parts, seed)
    attack = dataclasses.replace(attack or Attack(), attacker="network")  # like with like
    judged = slice(None) if parts is None else parts == 2
    f1 = macro_f1(*decided(torch.as_tensor(logits)[judged], torch.as_tensor(labels)[judged]))
    model = model_leakage(logits, attribute, attack=attack, seed=seed, labels=labels, parts=parts)
    at_f1 = curve.at(f1) if curve else dataset_leakage_at(labels, attribute, f1, attack=attack, seed=seed, parts=parts)
    delta = model.value - at_f1.value
    half = Z95 * math.hypot(model.error, at_f1.error)
    return Amplification(delta, delta - half, delta + half, model, at_f1, f1)


def dataset_leakage_at(
    labels: Tensor,
    attribute: Tensor,
    f1: float,
    *,
    attack: Attack | None = None,
    seed: int = 0,
    spread: float = 0.03,
    parts: Tensor | None = None,
) -> Leakage:
    """lambda_D(F1): a line through the leakage of labels corrupted to F1 - spread, F1 and F1 + spread, read at F1."""
    if math.isnan(f1):
        raise UserError("no label occurs in these rows, so F1 and leakage at F1 are undefined")
    if not 0 <= f1 <= 1:
        raise UserError(f"F1 must lie in [0, 1], got {f1}")
    attack = attack or Attack()
    if f1 >= 1 - 1e-9:
        return dataset_leakage(labels, attribute, attack=attack, seed=seed, parts=parts)
    truth = label_matrix(labels)
    single = torch.as_tensor(labels).ndim == 1
    sets, reached = [], []
    for k, wanted in enumerate((min(1.0, f1 + spread), f1, max(0.0, f1 - spread))):
        share = corruption_share(truth, wanted, single, seed_of(seed, "corruption", k))
        corrupted = corrupt(truth, share, single, stream(seed, "corrupted", k))
        sets.append(corrupted)
        reached.append(macro_f1(corrupted, truth))
    return _leak(sets, attribute, attack, seed, f1=reached, at=f1, labels=truth, parts=parts)


@dataclass(frozen=True, slots=True)
class LeakageCurve:
    """lambda_D at several F1, interpolated linearly between them."""

    points: tuple[Leakage, ...]  # by increasing F1

    def at(self, f1: float) -> Leakage:
        inside = min(max(f1, self.points[0].f1), self.points[-1].f1)
        after = next(k for k, p in enumerate(self.points) if inside <= p.f1)
        right = self.points[after]
        left = self.points[max(after - 1, 0)]
        t = 0.0 if right.f1 == left.f1 else (inside - left.f1) / (right.f1 - left.f1)
        value, error = ((1 - t) * a + t * b for a, b in ((left.value, right.value), (left.error, right.error)))
        return dataclasses.replace(
            right,
            value=value,
            error=error,  # conservative: between two points the error of the mean is smaller
            low=max(0.0, value - Z95 * error),
            high=min(1.0, value + Z95 * error),
            f1=inside,
            rounds=(),
            note="" if abs(inside - f1) < 0.01 else f"the leakage curve of the labels ends at F1 {inside:.3f}; measured there",
        )


def dataset_leakage_curve(
    labels: Tensor, attribute: Tensor, f1: Sequence[float], *, attack: Attack | None = None, seed: int = 0
) -> LeakageCurve:
    """The leakage of labels corrupted to each of these F1."""
    (labels, attribute), _, _ = _some((labels, attribute), None, seed)
    truth, single = label_matrix(labels), torch.as_tensor(labels).ndim == 1
    if not bool((truth.sum(0) > 0).any()):
        raise UserError("no label occurs in these rows, so F1 and leakage at F1 are undefined")
    points = []
    for k, wanted in enumerate(sorted({min(max(v, 0.0), 1.0) for v in f1})):
        share = corruption_share(truth, wanted, single, seed_of(seed, "corruption", k)) if wanted < 1 else 0.0
        corrupted = corrupt(truth, share, single, stream(seed, "corrupted", k))
        reached = macro_f1(corrupted, truth)
        points.append(_leak([corrupted], attribute, attack or Attack(), seed, f1=[reached], labels=truth))
    if not points:
        raise UserError("a leakage curve needs at least one F1")
    return LeakageCurve(tuple(sorted(points, key=lambda p: p.f1)))


def corrupt(truth: Tensor, share: float, single: bool, generator: torch.Generator) -> Tensor:
    """Labels corrupted at random: with probability `share`, a row's label is replaced by any label, or each bit is flipped."""
    if single:
        replaced = F.one_hot(torch.randint(0, truth.shape[1], (len(truth),), generator=generator), truth.shape[1]).to(truth)
        return torch.where(torch.rand(len(truth), 1, generator=generator) < share, replaced, truth)
    flip = torch.rand(truth.shape, generator=generator) < share
    return torch.where(flip, 1 - truth, truth)


def corruption_share(truth: Tensor, f1: float, single: bool, seed: int) -> float:
    """The share of corruption whose F1 is `f1`, by bisection on one fixed draw, so that F1 decreases monotonically."""
    low, high = 0.0, 1.0 if single else 0.5
    for _ in range(20):
        middle = (low + high) / 2
        reached = macro_f1(corrupt(truth, middle, single, torch.Generator().manual_seed(seed)), truth)
        low, high = (middle, high) if reached > f1 else (low, middle)
    return (low + high) / 2


def _some(given: Sequence[Tensor], parts: Tensor | None, seed: int) -> tuple[list[Tensor], Tensor | None, str]:
    """These tensors of the same rows, or of MOST of them drawn at random, with a note that says so."""
    rows = len(given[0])
    if rows <= MOST or any(len(t) != rows for t in given):
        return list(given), parts, ""
    picked = torch.randperm(rows, generator=stream(seed, "leakage rows"))[:MOST].sort().values
    note = f"measured on {MOST:,} of {rows:,} rows, drawn at random"
    return [torch.as_tensor(t)[picked] for t in given], None if parts is None else parts[picked], note


def _noted(leak: Leakage, note: str) -> Leakage:
    return dataclasses.replace(leak, note="; ".join(filter(None, (leak.note, note)))) if note else leak


def _leak(
    sets: list[Tensor],
    attribute: Tensor,
    attack: Attack,
    seed: int,
    *,
    f1: list[float],
    at: float | None = None,
    labels: Tensor | None = None,
    parts: Tensor | None = None,
) -> Leakage:
    """Attack every set of inputs for all rounds; with several sets, read a line of leakage against F1 at `at`."""
    attribute = tensor_of(attribute, "bias values").long()
    values = values_of(attribute, len(sets[0]), parts)
    code = torch.full((len(attribute),), -1)
    for k, v in enumerate(values.tolist()):
        code[attribute == v] = k
    attack_set = _look_up if _fits_a_table(sets, attack) else _train
    accuracy, variance, rounds = attack_set(sets, code, attack, seed, labels, parts)
    folds = attack.protocol == "code" and len(values) == 2
    if folds:
        accuracy = 0.5 + (accuracy - 0.5).abs()
    note = ""
    if at is not None and not min(f1) - 0.01 <= at <= max(f1) + 0.01:
        note = f"labels cannot be corrupted to F1 {at:.3f}; measured at {min(max(at, min(f1)), max(f1)):.3f}"
        at = min(max(at, min(f1)), max(f1))
    value, spread = _read(accuracy, torch.tensor(f1), at)
    value = max(value, 0.5) if folds else value  # the line may run below one half, the folded accuracies cannot
    error = math.hypot(spread, math.sqrt(variance)) if variance else _error(value, spread, rounds, len(values))
    return Leakage(
        value=value,
        low=max(0.0, value - Z95 * error),
        high=min(1.0, value + Z95 * error),
        f1=f1[0] if at is None else at,
        rounds=tuple(accuracy.flatten().tolist()),
        chance=1 / len(values),
        n=rounds.n,
        error=error,
        note=note,
        attacker="table" if attack_set is _look_up else "network",
        by_design=rounds.by_design,
    )


def _fits_a_table(sets: list[Tensor], attack: Attack) -> bool:
    """Whether a table of counts is the attacker: if asked for, or if there are few patterns and many rows of each."""
    if attack.attacker != "auto" or attack.protocol == "code":
        return attack.attacker == "table"
    most = min(PATTERNS, len(sets[0]) // ROWS_PER_PATTERN)
    return all(int(lookup.patterns(x).max()) < most for x in sets)


def _train(
    sets: list[Tensor], code: Tensor, attack: Attack, seed: int, labels: Tensor | None, parts: Tensor | None
) -> tuple[Tensor, float | None, Rounds]:
    """(sets, rounds) accuracies of networks."""
    rounds = draw_rounds(code, attack.rounds, seed, labels=labels if attack.protocol == "paper" else None, parts=parts)
    stacked = {}
    for name in rounds.rows[0]:
        index = [split[name] for split in rounds.rows]
        stacked[name] = torch.stack([x[i] for x in sets for i in index]), torch.stack([code[i] for _ in sets for i in index])
    accuracy = attack_all(stacked, int(code.max()) + 1, attack, seed)
    return accuracy.view(len(sets), -1), None, rounds


def _look_up(
    sets: list[Tensor], code: Tensor, attack: Attack, seed: int, labels: Tensor | None, parts: Tensor | None
) -> tuple[Tensor, float | None, Rounds]:
    """(sets, 1) accuracies of tables of counts, their sampling variance, and no draws: every split counts."""
    num_values = int(code.max()) + 1
    by_design = False
    if labels is not None and parts is None and attack.protocol == "paper":
        by_design = is_balanced_by_design(F.one_hot(lookup.patterns(labels)), code)
    accuracy, variance = [], 0.0
    for x in sets:
        pattern = lookup.patterns(x)
        many = int(pattern.max()) + 1
        if parts is None:
            judged = lookup.table(pattern, code, many, num_values)
            recalls = lookup.recalls(judged, judged) if by_design else lookup.held_out_recalls(judged)
        else:
            fitted, judged = (
                lookup.table(pattern[rows], code[rows], many, num_values) for rows in ((parts == 0) | (parts == 1), parts == 2)
            )
            recalls = lookup.recalls(fitted, judged)
        n = judged.sum(0).double()
        shrunk = (recalls * n + 1) / (n + 2)
        accuracy.append(recalls.mean().float())
        variance += float((shrunk * (1 - shrunk) / n).sum()) / num_values**2 / len(sets)
    rows = int(judged.sum(0).min()) * num_values
    return torch.stack(accuracy)[:, None], variance, Rounds([], rows, rows, by_design)


def _error(value: float, spread: float, rounds: Rounds, num_values: int) -> float:
    """Standard error: of the rows that judge, and the spread over rounds; of the draws if labels balanced by hand tell nothing.

    Blocks whose rows differ in their labels are balanced only on the whole, and keep their sampling error.
    """
    if rounds.by_design:
        draws = sum(len(split["test"]) for split in rounds.rows)
        drawn = math.sqrt(_binomial(value, draws) + rounds.unmatched * _binomial(value, rounds.judges))
        if abs(value - 1 / num_values) < CLEAR * drawn:
            return drawn
    return math.hypot(spread, math.sqrt(_binomial(value, rounds.judges)))


def _binomial(share: float, n: int) -> float:
    """Variance of a share of n rows; a share of 1 still has an error."""
    shrunk = (min(max(share, 0.0), 1.0) * n + 1) / (n + 2)
    return shrunk * (1 - shrunk) / n


def _read(accuracy: Tensor, f1: Tensor, at: float | None) -> tuple[float, float]:
    """Mean over rounds and its standard error, or the value at `at` of a least-squares line in F1."""
    if at is None or float(f1.max() - f1.min()) < 1e-6:
        flat = accuracy.flatten()
        return float(flat.mean()), float(flat.std()) / math.sqrt(len(flat)) if len(flat) > 1 else 0.0
    x = f1[:, None].expand_as(accuracy).flatten().double()
    y = accuracy.flatten().double()
    centre = x - x.mean()
    slope = float((centre * y).sum() / centre.square().sum())
    residual = y - y.mean() - slope * centre
    spread = float(residual.square().sum() / max(len(y) - 2, 1))
    place = at - float(x.mean())
    return float(y.mean()) + slope * place, math.sqrt(spread * (1 / len(y) + place**2 / float(centre.square().sum())))


FUNCTIONS = (
    dataset_leakage,
    model_leakage,
    bias_amplification,
)
RANGE = (0.0, 1.0)
HIGHER = "the bias column can be guessed better; chance is one over its number of values"
