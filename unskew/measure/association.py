r"""Association of the label with a bias column: mutual information and Cramer's V, corrected for small samples.

.. math::
    \hat I = \sum_{yb} \hat p_{yb} \log \frac{\hat p_{yb}}{\hat p_y \hat p_b}, \qquad
    \hat I_{MM} = \hat I - \frac{(r - 1)(c - 1)}{2n}, \qquad
    V = \sqrt{\frac{\chi^2 / n}{\min(r, c) - 1}}

    \tilde V = \sqrt{\frac{\max(0, \phi^2 - (r-1)(c-1)/(n-1))}{\min(\tilde r, \tilde c) - 1}}, \qquad
    \tilde r = r - \frac{(r-1)^2}{n-1}, \quad \phi^2 = \chi^2 / n

r and c count the values that occur. For independent columns the corrected forms have expectation (nearly) 0; the plain ones do
not. `share` is the corrected information over the label's entropy: the part of the label that the column gives away.

Source: Miller, "Note on the bias of information estimates", 1955; Cramer, 1946; Bergsma, "A bias-correction for Cramer's V",
2013.
Differs: corrected information is clipped at 0.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.stats.groups import tensor_of


@dataclass(frozen=True, slots=True)
class Association:
    information: float  # corrected mutual information, nats
    share: float  # of the label's entropy
    cramers_v: float  # corrected
    plain_information: float
    plain_cramers_v: float
    p_value: float  # chi-squared test of independence
    n: int


def association(y: Tensor, bias: Tensor) -> Association:
    """How much two categorical columns reveal about each other; rows where either is -1 are left out.

    >>> round(association(torch.arange(400) % 2, torch.arange(400) % 2).share, 2)
    1.0
    """
    y, bias = tensor_of(y, "labels").long(), tensor_of(bias, "bias values").long()
    if y.shape != bias.shape or y.ndim != 1:
        raise UserError(f"association needs two columns of equal length, got shapes {tuple(y.shape)} and {tuple(bias.shape)}")
    known = (y >= 0) & (bias >= 0)
    y, bias = y[known], bias[known]
    counts = torch.zeros(int(y.max()) + 1 if len(y) else 0, int(bias.max()) + 1 if len(y) else 0, dtype=torch.float64)
    counts.view(-1).index_add_(0, y * max(counts.shape[1], 1) + bias, torch.ones(len(y)).double())
    counts = counts[counts.sum(1) > 0][:, counts.sum(0) > 0] if len(y) else counts
    if min(counts.shape) < 2:
        column = "label" if len(counts) < 2 else "bias column"
        raise UserError(f"the {column} has fewer than two values in {len(y)} rows: association is undefined")
    n = float(counts.sum())
    expected = counts.sum(1, keepdim=True) * counts.sum(0, keepdim=True) / n
    plain = float(torch.where(counts > 0, counts / n * (counts.clamp(min=1e-300) / expected).log(), 0.0).sum())
    r, c = counts.shape
    phi2 = float(((counts - expected).square() / expected).sum()) / n
    corrected = max(0.0, plain - (r - 1) * (c - 1) / (2 * n))
    shrunk = max(0.0, phi2 - (r - 1) * (c - 1) / (n - 1))
    smaller = min(r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)) - 1
    p = counts.sum(1) / n
    from scipy.stats import chi2

    return Association(
        information=corrected,
        share=corrected / float(-(p * p.log()).sum()),
        cramers_v=math.sqrt(shrunk / smaller) if smaller > 0 else math.nan,
        plain_information=plain,
        plain_cramers_v=math.sqrt(phi2 / (min(r, c) - 1)),
        p_value=float(chi2.sf(phi2 * n, (r - 1) * (c - 1))),
        n=int(n),
    )


FUNCTIONS = (association,)
RANGE = (0.0, 1.0)
HIGHER = "the label and the column are more strongly associated"
