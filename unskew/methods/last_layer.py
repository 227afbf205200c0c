r"""last_layer: a linear last layer on frozen features, balanced against a shortcut that nobody has to name. Seconds on one core.

.. math::
    W = \arg\min_W \sum_i w_i\, \mathrm{CE}(W^\top \phi_i, y_i) + \frac{\delta}{2} \lVert W \rVert^2, \qquad
    \delta = \arg\min_\delta \sum_i w_i\, \mathrm{CE}(W_{-k(i)}^\top \phi_i, y_i)

===========  ====================  ==============================================================================================
phi          --model               standardised features of a frozen pretrained network (images, clips), or the vector itself
w            weights               plain: 1. groups: 1 / n(class, bias). difficulty: exp(-gamma p_y), p a held-out plain layer's.
                                   opinion: class and a biased reader's opinion are independent under w (see repair independence).
                                   readers: the same, but against further shortcuts by their readers alone (see part opinion)
delta        decays                the one with the lowest weighted loss on rows that its layer was not fitted on
===========  ====================  ==============================================================================================

`weights=auto` takes groups if there is a bias column, opinion if not. Several labels per row: one layer per label, with weights of
its own. Solved to the optimum by L-BFGS, so there are no steps, no learning rate and nothing to resume.

Source: groups: Kirichenko, Izmailov, Wilson, "Last layer re-training is sufficient for robustness to spurious correlations", ICLR
2023 (DFR); difficulty: Qiu, Potapczynski, Izmailov, Wilson, "Simple and fast group robustness by automatic feature reweighting",
ICML 2023 (AFR); opinion: the repair independence.
Differs: the features are a pretrained network's, not those of a network trained on the biased rows; the layer is fitted on all
training rows with weights instead of on held-out rows drawn evenly, and penalised by its square. AFR's penalty pulls the layer
towards the first model's; here it pulls towards 0.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from unskew.core import progress
from unskew.core.errors import UserError
from unskew.data.dataset import DataSet
from unskew.losses import task_loss
from unskew.methods._contract import Method, Problem
from unskew.models._contract import Model
from unskew.parts.opinion import opinion_of, reference_logits
from unskew.records import Batch, Facts
from unskew.stats.readers import class_balanced, spread_folds
from unskew.stats.softmax import fit_softmax

FOLDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LastLayerConfig:
    weights: Literal["auto", "plain", "groups", "difficulty", "opinion", "readers"] = "auto"  # see the table above
    decays: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # strengths of the penalty to choose from
    gamma: float = 4.0  # of weights=difficulty

    def __post_init__(self) -> None:
        if not self.decays or min(self.decays) <= 0 or self.gamma < 0:
            raise UserError("last_layer: decays must be above 0 and gamma not negative")


class LastLayer(Method):
    Config = LastLayerConfig
    sees = frozenset({"bias"})
    multi_label = True
    solved = True

    def __init__(self, cfg: LastLayerConfig, facts: Facts, make_model: Callable[[], nn.Module]) -> None:
        super().__init__(cfg, facts, make_model)
        if not isinstance(self.model, Model) or not isinstance(self.model.output, nn.Linear):
            raise UserError("last_layer needs a network that ends in a linear layer")

    @classmethod
    def labels(cls, cfg: LastLayerConfig) -> frozenset[str]:
        return cls.sees if cfg.weights == "groups" else frozenset()

    @classmethod
    def settled(cls, cfg: LastLayerConfig, data: DataSet) -> LastLayerConfig:
        if cfg.weights != "auto":
            return cfg
        return dataclasses.replace(cfg, weights="groups" if data.bias_names else "opinion")

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        return {"ce": batch.mean(task_loss(self.predict(batch.x), batch.y))}

    def solve(self, problem: Problem) -> dict[str, float]:
        """Set the last layer to the optimum; returns figures for the log."""
        y = problem.data.y[problem.rows]
        x = torch.cat([problem.features.new_ones(len(y), 1), problem.features], 1)
        if not self.facts.multi_label:
            weight = self._weights(problem, y, len(problem.data.classes))
            solution, decay = fit_weighted(
                x, y[:, None], weight[:, None], self.cfg.decays, len(problem.data.classes), problem.seed
            )
            rows = solution[0].T  # (C, 1 + D)
        else:
            columns = [self._weights(problem, column.long(), 2) for column in y.unbind(1)]
            solution, decay = fit_weighted(x, y.long(), torch.stack(columns, 1), self.cfg.decays, 2, problem.seed)
            rows = solution[:, :, 1] - solution[:, :, 0]  # (L, 1 + D)
        assert isinstance(self.model, Model)
        assert isinstance(self.model.output, nn.Linear)
        with torch.no_grad():
            self.model.output.weight.copy_(rows[:, 1:])
            self.model.output.bias.copy_(rows[:, 0])
        return {"decay": decay}

    def _weights(self, problem: Problem, y: Tensor, classes: int) -> Tensor:
        """(n,) of mean 1, times those of a table if there is one."""
        kind = self.cfg.weights
        if kind == "plain":
            weight = torch.ones(len(y), dtype=torch.float64)
        elif kind == "groups":
            weight = balanced_groups(y, problem.data, problem.rows)
        elif kind == "difficulty":
            weight = difficulty(problem.features, y, classes, self.cfg.gamma, problem.seed)
        else:
            reference = reference_logits(problem.features, y, classes, seed=problem.seed)
            found = opinion_of(
                problem.data, problem.rows, y, classes, reference,
                features=problem.features, seed=problem.seed, workers=problem.workers,
            )  # fmt: skip
            progress.say(found.words())
            weight = found.judging if kind == "readers" else found.weight
        weight = weight if problem.weight is None else weight * problem.weight
        return weight / weight.mean()


def balanced_groups(y: Tensor, data: DataSet, rows: Tensor) -> Tensor:
    """Equal totals for every (class, bias) group; a row without a bias value counts as the mean."""
    known = (data.bias[rows] >= 0).all(1)
    code = torch.unique(torch.cat([y[:, None], data.bias[rows]], 1), dim=0, return_inverse=True)[1]
    weight = torch.ones(len(y), dtype=torch.float64)
    weight[known] = class_balanced(code[known])
    return weight


def difficulty(features: Tensor, y: Tensor, classes: int, gamma: float, seed: int) -> Tensor:
    r"""AFR's weights, exp(-gamma p), times those that give every class the same total.

    p is the probability of the row's class under a plain layer that was not fitted on it.
    """
    logits = reference_logits(features, y, classes, seed=seed)
    p = logits.double().softmax(1).gather(1, y[:, None]).squeeze(1)
    return (-gamma * p).exp() * class_balanced(y)


def fit_weighted(
    x: Tensor, y: Tensor, weight: Tensor, decays: tuple[float, ...], classes: int, seed: int
) -> tuple[Tensor, float]:
    """(P, 1 + D, classes) layers for P columns of labels and weights, and the penalty with the lowest held-out weighted loss."""
    problems, share = y.shape[1], (weight / weight.sum(0)).to(x.dtype)
    best = decays[0]
    if len(decays) > 1:
        fold = spread_folds(y[:, 0], FOLDS, seed)
        outside = (fold[:, None] != torch.arange(FOLDS)).to(x.dtype)[:, :, None] * share[:, None, :]
        outside = (outside / outside.sum(0).clamp(min=1e-30)).reshape(len(x), -1)
        labels = y[:, None, :].expand(-1, FOLDS, -1).reshape(len(x), -1)
        w = fit_softmax(x, labels, outside, decays, classes, tolerance=1e-4).view(
            len(decays), FOLDS, problems, x.shape[1], classes
        )
        loss = torch.zeros(len(decays))
        for k in range(FOLDS):
            rows = fold == k
            logits = torch.einsum("bf,epfc->ebpc", x[rows], w[:, k])
            picked = logits.gather(3, y[rows][None, :, :, None].expand(len(decays), -1, -1, -1)).squeeze(3)
            loss += (share[rows] * (logits.logsumexp(3) - picked)).sum((1, 2))
        best = decays[int(loss.argmin())]
    return fit_softmax(x, y, share, (best,), classes, tolerance=1e-6)[0], best
