r"""number: a single number of a feature vector, where it stands out.

.. math::  \phi(x) = x_k, \qquad \eta_k^2 = \frac{\sum_c n_c (\bar x_{kc} - \bar x_k)^2}{\sum_i (x_{ik} - \bar x_k)^2} \ge
           \max\left(0.2, \frac{20 + 2 (C - 1)}{n}\right)

An audit measures the few numbers whose means differ most between the C classes, by the share eta^2 of their variance. 0.2 is a
difference of one standard deviation between two classes of one size; the other bound keeps the best of thousands of meaningless
numbers out, whose n eta^2 is chi-squared with C - 1 degrees of freedom. That a model follows one of them is no sign of a shortcut: it
may be what makes the class. So each is a question, and nothing is balanced against it unless the user says so (`phi=number:at=K` of
repair).

Source: eta^2 is the usual effect size of a one-way analysis of variance.
Differs: nothing.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from unskew.data.dataset import DataSet

PIXELS, CONTENT, PROBE, ASKED = True, False, True, True
MOST = 3  # numbers that an audit measures
STANDS_OUT = 0.2
ROWS = 20_000  # to choose them by


@dataclass(frozen=True)
class Config:
    at: int  # which number, from 0


def variants(data: DataSet) -> list[dict[str, str]]:
    if not data.has_inputs or len(data.shape) != 1 or data.multi_label or data.shape[0] < 2 or not data.has("train"):
        return []
    rows, classes = data.rows("train"), len(data.classes)
    rows = rows[:: -(-len(rows) // ROWS)]
    x, fine = data.inputs.rows(rows)
    share = explained_variance(x[fine].double(), data.y[rows][fine], classes)
    least = max(STANDS_OUT, (20 + 2 * (classes - 1)) / len(rows))
    best = share.argsort(descending=True)[:MOST].tolist()
    return [{"at": str(k)} for k in sorted(best) if float(share[k]) >= least]


def explained_variance(x: Tensor, y: Tensor, classes: int) -> Tensor:
    """(D,) the share of each number's variance that lies between the classes; 0 where it does not vary.

    >>> x = torch.tensor([[0.0, 1.0, 2.0], [0.0, 3.0, 2.0], [1.0, 1.0, 2.0], [1.0, 3.0, 2.0]])
    >>> explained_variance(x, torch.tensor([0, 0, 1, 1]), 2).tolist()
    [1.0, 0.0, 0.0]
    """
    x = x - x.mean(0)
    sums = x.new_zeros(classes, x.shape[1]).index_add_(0, y, x)
    between = (sums.square() / y.bincount(minlength=classes).clamp(min=1)[:, None]).sum(0)
    within = x.square().sum(0)
    return torch.where(within > 0, between / within.clamp(min=1e-300), torch.zeros_like(within))


def phrase(cfg: Config) -> str:
    return f"number {cfg.at} of the features"


def applies(data: DataSet, cfg: Config) -> str:
    if not data.has_inputs or len(data.shape) != 1:
        return f"inputs of shape {data.shape} are not vectors"
    return "" if 0 <= cfg.at < data.shape[0] else f"at={cfg.at}: the vectors have numbers 0 to {data.shape[0] - 1}"


def features(data: DataSet, index: Tensor, x: Tensor, cfg: Config) -> Tensor:
    return x[:, cfg.at : cfg.at + 1]
