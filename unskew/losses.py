"""Losses as plain functions, one value per sample, for any training loop."""

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core.errors import UserError


def task_loss(logits: Tensor, y: Tensor, class_weight: Tensor | None = None) -> Tensor:
    r"""The task's loss per sample: cross-entropy for classes, mean binary cross-entropy for several labels per row.

    .. math::  \ell_i = -\log \mathrm{softmax}(z_i)_{y_i}
               \qquad\text{or}\qquad
               \ell_i = -\frac1L \sum_l y_{il} \log \sigma(z_{il}) + (1 - y_{il}) \log(1 - \sigma(z_{il}))

    `class_weight` multiplies the terms of a class or label, including its negative terms.
    """
    if y.ndim == 1:
        return F.cross_entropy(logits, y, weight=class_weight, reduction="none")
    weight = None if class_weight is None else class_weight.to(logits.dtype)
    return F.binary_cross_entropy_with_logits(logits, y.to(logits.dtype), weight=weight, reduction="none").mean(1)


def gce(logits: Tensor, y: Tensor, q: float = 0.7, *, scaled: bool = False) -> Tensor:
    r"""Generalised cross-entropy, per sample: rows the model already gets right count more, so it becomes biased.

    .. math::  \ell_i = \frac{1 - p_{y_i}^q}{q}, \qquad \nabla \ell_i = p_{y_i}^q \, \nabla \mathrm{CE}_i

    `scaled` is what the released code of LfF and PGD minimises instead, q p^q CE with the factor detached: a gradient of the same
    direction and q times the length, and a value that is no longer this loss.

    >>> import torch
    >>> float(gce(torch.zeros(1, 2), torch.tensor([0]), q=1.0))  # q = 1: one minus the probability
    0.5
    """
    if not 0 < q <= 1:
        raise UserError(f"q={q}: must lie in (0, 1]")
    ce = F.cross_entropy(logits, y, reduction="none")
    if scaled:
        return q * (-q * ce.detach()).exp() * ce
    return -(-q * ce).expm1() / q  # p^q = exp(-q CE), so that p cannot underflow


def confusion(logits: Tensor) -> Tensor:
    r"""Cross-entropy to the uniform distribution, per sample: lowest where a bias predictor is undecided (BlindEye).

    .. math::  \ell_i = -\frac1C \sum_c \log \mathrm{softmax}(z_i)_c

    Logits (B, C), or (B, C, ...) for maps, averaged over their positions.
    """
    per_place = -F.log_softmax(logits, 1).mean(1)
    return per_place.flatten(1).mean(1) if per_place.ndim > 1 else per_place


def negative_entropy(logits: Tensor) -> Tensor:
    r"""Minus the entropy of the prediction, per sample: lowest where a bias predictor is undecided (learning not to learn).

    .. math::  \ell_i = \sum_c p_{ic} \log p_{ic}

    From log-probabilities, so that an underflow gives 0 and not NaN. Maps are averaged over their positions.
    """
    log_p = F.log_softmax(logits, 1)
    per_place = (log_p.exp() * log_p).sum(1)
    return per_place.flatten(1).mean(1) if per_place.ndim > 1 else per_place


def rubi(logits: Tensor, bias_logits: Tensor, y: Tensor) -> Tensor:
    r"""Cross-entropy of logits masked by a biased model's prediction, per sample (RUBi).

    .. math::  \ell_i = \mathrm{CE}\big(z_i \odot \sigma(b_i),\ y_i\big)

    The caller adds the loss of the question-only branch, CE(b, y).
    """
    return F.cross_entropy(logits * bias_logits.sigmoid(), y, reduction="none")


def learned_mixin_h(
    logits: Tensor, bias_logits: Tensor, factor: Tensor, y: Tensor, penalty: float = 0.36
) -> tuple[Tensor, Tensor]:
    r"""Cross-entropy of a learned product of experts, and the entropy penalty, both per sample (LearnedMixin+H).

    .. math::  \mathrm{CE}\big(\log p_f + a \log p_g,\ y\big), \qquad w \, H\big(\mathrm{softmax}(a \log p_g)\big)

    `factor` (B,) is a >= 0. With a = 1 and w = 0 it is the plain bias product.
    """
    scaled = factor[:, None] * F.log_softmax(bias_logits, 1)
    ce = F.cross_entropy(F.log_softmax(logits, 1) + scaled, y, reduction="none")
    log_p = F.log_softmax(scaled, 1)
    return ce, -penalty * (log_p.exp() * log_p).sum(1)


def relative_difficulty(biased: Tensor, debiased: Tensor) -> Tensor:
    r"""LfF's weight of a sample from the (smoothed, class-normalised) losses of the two networks.

    .. math::  W_i = \frac{\ell_{b,i}}{\ell_{b,i} + \ell_{d,i} + 10^{-8}}

    >>> import torch
    >>> relative_difficulty(torch.tensor([3.0, 0.0]), torch.tensor([1.0, 1.0])).tolist()
    [0.75, 0.0]
    """
    return biased / (biased + debiased + 1e-8)


def bias_contrastive(u: Tensor, y: Tensor, bias: Tensor, temperature: float = 0.07, *, same: bool = False) -> Tensor:
    r"""Supervised contrastive loss whose positives share the class and not the bias, per row (BiasCon; CnC with `same`).

    .. math::  \ell_i = \frac{-1}{|P_i|} \sum_{j \in P_i} \log \frac{e^{u_i \cdot u_j / \tau}}{\sum_{k \in A_i} e^{u_i \cdot u_k / \tau}}

    u (B, D) has length 1. A are all other rows, or, with `same`, the positives and rows of other classes with the same bias. 0 for a
    row without a positive, and for a row whose bias is -1.

    >>> u = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> bias_contrastive(u, torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1]), 1.0).nonzero().flatten().tolist()
    [0, 1]
    """
    known = (bias[:, None] >= 0) & (bias >= 0)
    other = ~torch.eye(len(u), dtype=torch.bool, device=u.device)
    alike, shared = y[:, None] == y, bias[:, None] == bias
    positive = alike & ~shared & known & other
    among = positive | (~alike & shared & known) if same else other
    scores = (u @ u.T / temperature).masked_fill(~among, -torch.inf)
    count = positive.sum(1)
    some = (count > 0)[:, None]
    scores = torch.where(some, scores, 0.0)  # a row without a positive: any finite numbers, so that no gradient is NaN
    log_p = torch.where(positive, scores - scores.logsumexp(1, keepdim=True), 0.0)
    return -log_p.sum(1) / count.clamp(min=1)
