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
acc          accuracy of an attacker on rows it was not fitted on; 0.5 + |acc - 0.5| for two values
===========  ====================================================================================================

The attacker: batch normalisation of the input, three times (linear 300, batch normalisation, leaky ReLU 0.01), linear. Adam 5e-5,
weight decay 1e-5, batch 128, 100 epochs and at least `min_steps` steps; the epoch best on validation rows is tested once. Five
rounds with fresh balanced draws run together as one batched model. lambda_D(F1) is read off a line through corruptions around the
model's F1.

Source: Wang, Zhao, Yatskar, Chang, Ordonez, "Balanced datasets are not enough", ICCV 2019, section 3; the released code for the
attacker and for 0.5 + |acc - 0.5| (the paper's formula is the plain accuracy).
Differs: fresh splits as well as fresh draws in every round; bias columns of K values (chance 1/K, no folding about one half);
single labels are corrupted by replacement, where the released code mixes replacement and bit flips; small sets get at least
`min_steps` steps. Intervals add the spread over rounds to the sampling error of the pooled rows, so they are conservative.
"""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import seed_of, stream
from unskew.stats.f1 import decided, label_matrix, macro_f1
from unskew.stats.groups import tensor_of
from unskew.stats.intervals import Z95

SMALLEST = 20  # rows of the rarest value that a balanced draw needs


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


@dataclass(frozen=True, slots=True)
class Amplification:
    delta: float
    low: float
    high: float
    model: Leakage
    dataset_at_f1: Leakage
    f1: float  # the model's


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """How the attacker is trained; the defaults are the paper's."""

    rounds: int = 5
    hidden: int = 300
    layers: int = 3
    lr: float = 5e-5
    weight_decay: float = 1e-5
    batch: int = 128
    epochs: int = 100
    min_steps: int = 2500
    together: bool = True  # all rounds as one batched model; False runs them one after another, for comparison

    def __post_init__(self) -> None:
        if min(self.rounds, self.hidden, self.batch, self.epochs) < 1 or min(self.layers, self.min_steps) < 0 or self.lr <= 0:
            raise UserError(
                "attack: rounds, hidden, batch and epochs must be at least 1, lr above 0, and layers and min_steps not negative"
            )


def dataset_leakage(labels: Tensor, attribute: Tensor, *, attack: Attack | None = None, seed: int = 0) -> Leakage:
    """lambda_D: the attribute guessed from the true labels, (N,) classes or (N, L) zeros and ones."""
    x = label_matrix(labels)
    return _leak([x], attribute, attack or Attack(), seed, f1=[1.0])


def model_leakage(logits: Tensor, attribute: Tensor, *, attack: Attack | None = None, seed: int = 0) -> Leakage:
    """lambda_M: the attribute guessed from a model's logits (N, C)."""
    x = torch.as_tensor(logits).float()
    if not bool(torch.isfinite(x).all()):
        raise UserError("logits have NaN or infinity")
    return _leak([x], attribute, attack or Attack(), seed, f1=[math.nan])


def bias_amplification(
    logits: Tensor,
    labels: Tensor,
    attribute: Tensor,
    *,
    attack: Attack | None = None,
    seed: int = 0,
    curve: "LeakageCurve | None" = None,
) -> Amplification:
    """Delta: what the model leaks beyond labels that are wrong as often as its predictions.

    `curve`, from `dataset_leakage_curve`, saves attacks on labels if several models are compared on the same rows.
    """
    attack = attack or Attack()
    f1 = macro_f1(*decided(torch.as_tensor(logits), torch.as_tensor(labels)))
    model = model_leakage(logits, attribute, attack=attack, seed=seed)
    at_f1 = curve.at(f1) if curve else dataset_leakage_at(labels, attribute, f1, attack=attack, seed=seed)
    delta = model.value - at_f1.value
    half = Z95 * math.hypot(model.error, at_f1.error)
    return Amplification(delta, delta - half, delta + half, model, at_f1, f1)


def dataset_leakage_at(
    labels: Tensor, attribute: Tensor, f1: float, *, attack: Attack | None = None, seed: int = 0, spread: float = 0.03
) -> Leakage:
    """lambda_D(F1): a line through the leakage of labels corrupted to F1 - spread, F1 and F1 + spread, read at F1."""
    if math.isnan(f1):
        raise UserError("no label occurs in these rows, so F1 and leakage at F1 are undefined")
    if not 0 <= f1 <= 1:
        raise UserError(f"F1 must lie in [0, 1], got {f1}")
    attack = attack or Attack()
    if f1 >= 1 - 1e-9:
        return dataset_leakage(labels, attribute, attack=attack, seed=seed)
    truth = label_matrix(labels)
    single = torch.as_tensor(labels).ndim == 1
    sets, reached = [], []
    for k, wanted in enumerate((min(1.0, f1 + spread), f1, max(0.0, f1 - spread))):
        share = corruption_share(truth, wanted, single, seed_of(seed, "corruption", k))
        corrupted = corrupt(truth, share, single, stream(seed, "corrupted", k))
        sets.append(corrupted)
        reached.append(macro_f1(corrupted, truth))
    return _leak(sets, attribute, attack, seed, f1=reached, at=f1)


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
    truth, single = label_matrix(labels), torch.as_tensor(labels).ndim == 1
    if not bool((truth.sum(0) > 0).any()):
        raise UserError("no label occurs in these rows, so F1 and leakage at F1 are undefined")
    points = []
    for k, wanted in enumerate(sorted({min(max(v, 0.0), 1.0) for v in f1})):
        share = corruption_share(truth, wanted, single, seed_of(seed, "corruption", k)) if wanted < 1 else 0.0
        corrupted = corrupt(truth, share, single, stream(seed, "corrupted", k))
        points.append(_leak([corrupted], attribute, attack or Attack(), seed, f1=[macro_f1(corrupted, truth)]))
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


def _leak(
    sets: list[Tensor], attribute: Tensor, attack: Attack, seed: int, *, f1: list[float], at: float | None = None
) -> Leakage:
    """Attack every set of inputs for all rounds; with several sets, read a line of leakage against F1 at `at`."""
    attribute = tensor_of(attribute, "bias values").long()
    values, rows = _draws(attribute, len(sets[0]), attack.rounds, seed)
    code = torch.full((int(attribute.max()) + 1,), -1)
    code[values] = torch.arange(len(values))
    parts: dict[str, list[tuple[Tensor, Tensor]]] = {"train": [], "val": [], "test": []}
    for x in sets:
        for split in rows:
            for name, index in split.items():
                parts[name].append((x[index], code[attribute[index]]))
    stacked = {name: (torch.stack([a for a, _ in p]), torch.stack([b for _, b in p])) for name, p in parts.items()}
    accuracy = attack_all(stacked, len(values), attack, seed)
    if len(values) == 2:
        accuracy = 0.5 + (accuracy - 0.5).abs()
    pooled = sum(len(index) for index in rows[0].values())
    note = ""
    if at is not None and not min(f1) - 0.01 <= at <= max(f1) + 0.01:
        note = f"labels cannot be corrupted to F1 {at:.3f}; measured at {min(max(at, min(f1)), max(f1)):.3f}"
        at = min(max(at, min(f1)), max(f1))
    value, error = _read(accuracy.view(len(sets), -1), torch.tensor(f1), at)
    value = max(value, 0.5) if len(values) == 2 else value  # the line may run below one half, the accuracies cannot
    shrunk = (min(max(value, 0.0), 1.0) * pooled + 1) / (pooled + 2)  # accuracy 1 still has a sampling error
    error = math.hypot(error, math.sqrt(shrunk * (1 - shrunk) / pooled))
    return Leakage(
        value=value,
        low=max(0.0, value - Z95 * error),
        high=min(1.0, value + Z95 * error),
        f1=f1[0] if at is None else at,
        rounds=tuple(accuracy.tolist()),
        chance=1 / len(values),
        n=pooled,
        error=error,
        note=note,
    )


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


def _draws(attribute: Tensor, n: int, rounds: int, seed: int) -> tuple[Tensor, list[dict[str, Tensor]]]:
    """A balanced draw for every round: half to train on, a quarter for validation, a quarter for the test."""
    if len(attribute) != n:
        raise UserError(f"{n} rows but {len(attribute)} bias values")
    known = attribute[attribute >= 0]
    counts = known.bincount() if len(known) else torch.zeros(0, dtype=torch.long)
    values = (counts > 0).nonzero().flatten()
    if len(values) < 2:
        raise UserError(f"leakage needs at least two values of the bias column, got {len(values)} in {n} rows")
    smallest = int(counts[values].min())
    if smallest < SMALLEST:
        rare = int(values[counts[values].argmin()])
        raise UserError(f"bias value {rare} has {smallest} rows, too few to balance; leakage needs at least {SMALLEST}")
    ends = (smallest // 2, smallest // 2 + smallest // 4, smallest)
    drawn = []
    for k in range(rounds):
        generator = stream(seed, "leakage", k)
        picked = []
        for v in values.tolist():
            rows = (attribute == v).nonzero().flatten()
            picked.append(rows[torch.randperm(len(rows), generator=generator)[:smallest]])
        block = torch.stack(picked, 1)  # (smallest, values): any range of its rows is balanced
        drawn.append(
            {
                "train": block[: ends[0]].flatten(),
                "val": block[ends[0] : ends[1]].flatten(),
                "test": block[ends[1] : ends[2]].flatten(),
            }
        )
    return values, drawn


def attack_all(data: dict[str, tuple[Tensor, Tensor]], num_values: int, attack: Attack, seed: int) -> Tensor:
    """(R,) test accuracies of R attackers, each on its own rows: inputs (R, n, D), bias codes (R, n)."""
    if not attack.together:
        one_by_one = [
            attack_some({k: (x[r : r + 1], a[r : r + 1]) for k, (x, a) in data.items()}, num_values, attack, seed, [r])
            for r in range(len(data["train"][0]))
        ]
        return torch.cat(one_by_one)
    return attack_some(data, num_values, attack, seed, list(range(len(data["train"][0]))))


def attack_some(data: dict[str, tuple[Tensor, Tensor]], num_values: int, attack: Attack, seed: int, names: list[int]) -> Tensor:
    """Train the attackers `names` together; random draws depend only on the name, not on the other attackers."""
    x, a = data["train"]
    rounds, n, width = x.shape
    net = Attackers(width, num_values, attack, [stream(seed, "attacker", name) for name in names])
    optimizer = torch.optim.Adam(net.parameters, lr=attack.lr, weight_decay=attack.weight_decay, fused=True)
    batch = min(attack.batch, n)
    per_epoch = n // batch
    epochs = max(attack.epochs, -(-attack.min_steps // per_epoch))
    orders = [stream(seed, "order", name) for name in names]
    best, kept = torch.full((rounds,), -1.0), torch.zeros(rounds)
    look = max(1, epochs // 100)  # epochs between validations
    for epoch in range(epochs):
        order = torch.stack([torch.randperm(n, generator=g) for g in orders])
        for start in range(0, per_epoch * batch, batch):
            rows = order[:, start : start + batch]
            logits = net(torch.gather(x, 1, rows[:, :, None].expand(-1, -1, width)), training=True)
            # The sum of the rounds' mean losses: every attacker minimises only its own.
            loss = F.cross_entropy(logits.flatten(0, 1), torch.gather(a, 1, rows).flatten(), reduction="sum") / batch
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        if (epoch + 1) % look == 0 or epoch + 1 == epochs:
            with torch.no_grad():
                right = (net(data["val"][0]).argmax(2) == data["val"][1]).float().mean(1)
                better = right > best
                if bool(better.any()):
                    tested = (net(data["test"][0]).argmax(2) == data["test"][1]).float().mean(1)
                    best, kept = torch.where(better, right, best), torch.where(better, tested, kept)
    return kept


class Attackers:
    """R MLPs of the same shape, as one batched model."""

    def __init__(self, width: int, outputs: int, attack: Attack, chance: list[torch.Generator]) -> None:
        sizes = [width, *[attack.hidden] * attack.layers, outputs]
        self.weights, self.biases, self.gains, self.shifts = [], [], [], []
        self.means, self.variances = [], []
        rounds = len(chance)
        for inner, outer in itertools.pairwise(sizes):
            bound = 1 / math.sqrt(inner)  # torch's default for a linear layer
            draw = [(torch.rand(inner + 1, outer, generator=g) * 2 - 1) * bound for g in chance]
            self.weights.append(torch.stack([d[:inner].T for d in draw]).requires_grad_())  # (R, outer, inner)
            self.biases.append(torch.stack([d[inner:].T for d in draw]).requires_grad_())
        for size in sizes[:-1]:
            self.gains.append(torch.ones(rounds * size, requires_grad=True))
            self.shifts.append(torch.zeros(rounds * size, requires_grad=True))
            self.means.append(torch.zeros(rounds * size))
            self.variances.append(torch.ones(rounds * size))
        self.parameters = [*self.weights, *self.biases, *self.gains, *self.shifts]

    def __call__(self, x: Tensor, training: bool = False) -> Tensor:
        # Rows come last, (R, width, n): a feature's values are then contiguous for the normalisation, and nothing is copied.
        h = self._normalise(x.transpose(1, 2).contiguous(), 0, training)
        for k, (w, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            h = torch.baddbmm(b, w, h)
            if k + 1 < len(self.weights):
                h = F.leaky_relu(self._normalise(h, k + 1, training), 0.01)
        return h.transpose(1, 2)

    def _normalise(self, h: Tensor, k: int, training: bool) -> Tensor:
        """Batch normalisation of every attacker over its own rows; torch sees the features of one wide network."""
        wide = h.reshape(1, -1, h.shape[2])
        out = F.batch_norm(wide, self.means[k], self.variances[k], self.gains[k], self.shifts[k], training, 0.1, 1e-5)
        return out.view_as(h)


FUNCTIONS = (
    dataset_leakage,
    model_leakage,
    bias_amplification,
)
RANGE = (0.0, 1.0)
HIGHER = "the bias column can be guessed better; chance is one over its number of values"
