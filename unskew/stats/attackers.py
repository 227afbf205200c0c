"""Attackers on leakage: how they are trained, and several of them as one batched model."""

import itertools
import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core import progress
from unskew.core.errors import UserError
from unskew.core.rng import stream

Data = dict[str, tuple[Tensor, Tensor]]  # train, val and test: inputs (R, n, D) and bias codes (R, n)


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
    share: float = 1.0  # share of the rows to fit on that attackers are given
    together: bool = True  # all rounds as one batched model; False runs them one after another, for comparison
    protocol: Literal["paper", "code"] = "paper"  # paper: plain accuracy; code: 0.5 + |acc - 0.5|, as the released code folds it
    attacker: Literal["auto", "network", "table"] = (
        "auto"  # auto: a look-up table of counts for few label patterns, else networks
    )

    def __post_init__(self) -> None:
        if min(self.rounds, self.hidden, self.batch, self.epochs) < 1 or min(self.layers, self.min_steps) < 0 or self.lr <= 0:
            raise UserError(
                "attack: rounds, hidden, batch and epochs must be at least 1, lr above 0, and layers and min_steps not negative"
            )
        if not 0 < self.share <= 1:
            raise UserError(f"attack: share={self.share:g} must lie in (0, 1]")
        for name, value, allowed in (
            ("protocol", self.protocol, ("paper", "code")),
            ("attacker", self.attacker, ("auto", "network", "table")),
        ):
            if value not in allowed:
                raise UserError(f"attack: {name}={value} must be one of {', '.join(allowed)}")


def attack_all(data: Data, num_values: int, attack: Attack, seed: int) -> Tensor:
    """(R,) test accuracies of R attackers, each on its own rows."""
    names = list(range(len(data["train"][0])))
    groups = [names] if attack.together else [[r] for r in names]
    steps = sum(_epochs(data["train"][0].shape[1], attack) for _ in groups)
    with progress.bar("attackers", steps) as advance:
        found = [
            attack_some({k: (x[group], a[group]) for k, (x, a) in data.items()}, num_values, attack, seed, group, advance)
            for group in groups
        ]
    return torch.cat(found)


def _epochs(rows: int, attack: Attack) -> int:
    return max(attack.epochs, -(-attack.min_steps // (rows // min(attack.batch, rows))))


def attack_some(
    data: Data, num_values: int, attack: Attack, seed: int, names: list[int], advance: progress.Advance
) -> Tensor:  # fmt: skip
    """Train the attackers `names` together; random draws depend only on the name, not on the other attackers."""
    x, a = data["train"]
    if attack.share < 1:
        count = max(2, round(attack.share * x.shape[1]))
        some = torch.stack([torch.randperm(x.shape[1], generator=stream(seed, "share", name))[:count] for name in names])
        x, a = torch.gather(x, 1, some[:, :, None].expand(-1, -1, x.shape[2])), torch.gather(a, 1, some)
    rounds, n, width = x.shape
    net = Attackers(width, num_values, attack, [stream(seed, "attacker", name) for name in names])
    optimizer = torch.optim.Adam(net.parameters, lr=attack.lr, weight_decay=attack.weight_decay, fused=True)
    batch = min(attack.batch, n)
    per_epoch = n // batch
    epochs = _epochs(n, attack)
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
        advance(1)
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
