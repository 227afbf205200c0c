r"""Representation bias: how much of the label a linear reader finds in a representation that should not show it.

.. math::
    B(D, \phi) = 1 - \frac{R^*(D, \phi)}{H(Y)}, \qquad
    R^* = \min_\theta -\sum_i \omega_i \log P_\theta(y_i \mid \phi(x_i)), \qquad
    H(Y) = -\sum_i \omega_i \log p_{y_i}, \qquad p_c = \sum_{i: y_i = c} \omega_i

==========  ==================  ======================================================================
phi(x)      features            (n, D), standardised here
theta       fit_softmax         linear softmax, one per fold and weight decay, all fitted together
omega       weights             sample weights, summing to 1; equal by default
B           .bias               0: the representation reveals nothing; 1: it determines the label
==========  ==================  ======================================================================

Every row is evaluated by an estimator that was not fitted on it (cross-fitting), so B can be slightly below 0 if there is nothing
to read. The largest B over the weight decays is reported. The interval is a bootstrap over rows within classes (above 5,000
rows, the normal interval that it tends to, which takes sums alone); its upper end is raised by what an estimator fitted on finitely
many rows misses, half the gap between held-out and fitted risk. The baseline repeats the measurement with permuted labels, which
keeps the class shares, so that an imbalanced set without bias is not mistaken for a biased one. Above 200,000 rows the estimators are
fitted on a sample of so many, class by class, and every row is judged in a second pass, so that memory does not grow with the
rows; the note of the estimate says so. The gain of a row, log P(y|z) - log p_y, is what the representation reveals about it; B is
its mean over H.

Source: Li and Vasconcelos, "REPAIR: removing representation bias by dataset resampling", CVPR 2019, equations 2 to 4 and section
4.2 (largest over the weight decays 1e-1 to 1e-5).
Differs: cross-fitted over all rows instead of one train and test split; fitted to the optimum instead of 20 epochs; features are
standardised, so that a weight decay means the same for every representation.
"""

import dataclasses
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.matrix import Matrix, Rows, only
from unskew.core.rng import stream
from unskew.stats import streamed
from unskew.stats.groups import tensor_of
from unskew.stats.intervals import Z95
from unskew.stats.readers import spread_folds
from unskew.stats.resample import drawn_within
from unskew.stats.softmax import PASS, fit_with_risks

DECAYS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
FOLDS = 5
BOOTSTRAP_ROWS = 5_000  # above this many, the interval is the normal one that the bootstrap tends to
SINGLE_ROWS = 4_000  # above this many rows, or two million numbers, single precision
BASELINE_ROWS = 20_000  # the permutation baseline of a larger set is measured on this many of its rows


@dataclass(frozen=True, slots=True)
class BiasEstimate:
    bias: float
    risk: float  # R*, in nats
    entropy: float  # H(Y), in nats
    low: float  # 95 % bootstrap interval of the bias
    high: float
    chance: float  # mean bias over label permutations; NaN without permutations
    chance_high: float  # the largest of them
    per_class: tuple[float, ...]  # bias within each class: 1 - mean loss / -log p_c; NaN for a class without rows
    gain: Tensor  # (n,) log P(y|z) - log p_y of every row, held out
    n: int
    decay: float  # the weight decay with the largest bias
    width: int  # features that are not constant
    note: str = ""

    @property
    def above_chance(self) -> bool:
        """The lower end of the interval is above 0 and the value above every permutation."""
        return self.low > 0 and (math.isnan(self.chance_high) or self.bias > self.chance_high)


def representation_bias(
    features: Rows,
    y: Tensor,
    weights: Tensor | None = None,
    *,
    folds: int = FOLDS,
    decays: tuple[float, ...] = DECAYS,
    permutations: int = 19,
    bootstrap: int = 1000,
    seed: int = 0,
) -> BiasEstimate:
    """B of the rows, with interval, baseline, and the contribution of each class and row.

    >>> y = torch.arange(400) % 2
    >>> round(representation_bias(torch.eye(2)[y], y, permutations=0).bias, 2)  # the features are the label
    1.0
    """
    if weights is not None and bool((torch.as_tensor(weights) == 0).any()):
        return _without_zeros(features, y, weights, folds, decays, permutations, bootstrap, seed)
    if isinstance(features, Matrix) or len(features) > streamed.FITTED:
        return _of_many(features, y, weights, folds, decays, permutations, bootstrap, seed)
    x, y, omega, note = _checked(features, y, weights, folds)
    num_classes = int(y.max()) + 1
    prior = torch.zeros(num_classes, dtype=torch.float64).index_add_(0, y, omega)
    entropy = float(-(prior * prior.clamp(min=1e-300).log()).sum())
    if x.shape[1] == 1:  # only the constant is left
        flat = torch.zeros(len(y), dtype=torch.float64)
        return BiasEstimate(0.0, entropy, entropy, 0.0, 0.0, 0.0, 0.0, (0.0,) * num_classes, flat, len(y), decays[0], 0, note)
    fold = spread_folds(y, folds, seed)
    losses, fitted = held_out_loss(x, y[:, None], omega[:, None], fold, folds, decays, num_classes)
    risks = omega @ losses[:, :, 0]
    best = int(risks.argmin())
    loss = losses[:, best, 0]
    # What a fit on finitely many rows loses against the best one: held-out risk is too high, and fitted risk too low, by as much.
    lost = max(0.0, float(risks[best] - fitted[best, 0]) / 2 / entropy)
    surprise = -prior[y].log()
    low, high = _interval(loss, y, omega, entropy, bootstrap, seed)
    null = _permuted(x, y, omega, decays[best], num_classes, permutations, seed)
    return BiasEstimate(
        bias=1 - float(risks[best]) / entropy,
        risk=float(risks[best]),
        entropy=entropy,
        low=low,
        high=high + lost if math.isnan(high) else min(1.0, high + lost),
        chance=float(null.mean()) if len(null) else math.nan,
        chance_high=float(null.max()) if len(null) else math.nan,
        per_class=tuple(_of_class(loss, surprise, omega, y == c) for c in range(num_classes)),
        gain=surprise - loss,
        n=len(y),
        decay=decays[best],
        width=x.shape[1] - 1,
        note=note,
    )


def _of_many(
    features: Rows,
    y: Tensor,
    weights: Tensor | None,
    folds: int,
    decays: tuple[float, ...],
    permutations: int,
    bootstrap: int,
    seed: int,
) -> BiasEstimate:
    """In two passes over the rows: their moments, and, after a fit on a sample, the loss of each."""
    features = features if isinstance(features, Matrix) else torch.as_tensor(features).reshape(len(features), -1)
    y, omega = _checked_labels(len(features), y, weights, folds)
    moments = streamed.moments(features)
    num_classes, constant = int(y.max()) + 1, int((~moments.varies).sum())
    prior = streamed.by_class(y, omega, num_classes)
    entropy = float(-(prior * prior.clamp(min=1e-300).log()).sum())
    note = "" if not constant else f"{constant} of {len(moments.varies)} features are constant"
    if constant == len(moments.varies):
        flat = torch.zeros(len(y), dtype=torch.float64)
        return BiasEstimate(0.0, entropy, entropy, 0.0, 0.0, 0.0, 0.0, (0.0,) * num_classes, flat, len(y), decays[0], 0, note)
    picked, share = streamed.sample_of(y, omega, 10 * folds, seed, streamed.fitted(len(moments.mean)))
    rows, target = streamed.Standard(features, moments), y[picked]
    x, fold = rows[picked], spread_folds(target, folds, seed)
    w, fitted = _fit_folds(x, target[:, None], share[:, None], fold, folds, decays, num_classes)
    sampled = share @ _losses(x, target[:, None], w, fold)[:, :, 0]
    best = int(sampled.argmin())
    loss = torch.empty(len(y), dtype=torch.float64)
    mine = streamed.folds_of_all(len(y), folds, picked, fold)
    for part, logits in streamed.held_out(rows, w[:, best, 0].transpose(1, 2), mine):
        z = logits.double()
        loss[part] = z.logsumexp(1) - z.gather(1, y[part, None]).squeeze(1)
    lost = max(0.0, float(sampled[best] - fitted[best, 0]) / 2 / entropy)
    surprise = -prior[y].log()
    risk = float(omega @ loss)
    low, high = _interval(loss, y, omega, entropy, bootstrap, seed)
    null = _permuted(x, target, share, decays[best], num_classes, permutations, seed)
    of_loss, of_surprise = (streamed.by_class(y, omega * value, num_classes) for value in (loss, surprise))
    said = [note] if note else []
    if len(picked) < len(y):
        said.append(f"fitted on {len(picked):,} of {len(y):,} rows, drawn class by class; every row is judged")
    return BiasEstimate(
        bias=1 - risk / entropy,
        risk=risk,
        entropy=entropy,
        low=low,
        high=high + lost if math.isnan(high) else min(1.0, high + lost),
        chance=float(null.mean()) if len(null) else math.nan,
        chance_high=float(null.max()) if len(null) else math.nan,
        per_class=tuple(torch.where(of_surprise > 0, 1 - of_loss / of_surprise, math.nan).tolist()),
        gain=surprise - loss,
        n=len(y),
        decay=decays[best],
        width=x.shape[1] - 1,
        note="; ".join(said),
    )


def bias_of_labels(features: Rows, y: Tensor, weights: Tensor | None = None, *, seed: int = 0) -> BiasEstimate:
    """Representation bias; for a multi-label task, the mean over labels, weighted by their entropies."""
    if y.ndim == 1:
        # The baseline's cost grows with the classes, its maximum with the permutations: with many classes, a few are enough.
        return representation_bias(features, y, weights, permutations=19 if int(y.max()) < 30 else 5, seed=seed)
    counted = torch.ones(len(y), dtype=torch.bool) if weights is None else torch.as_tensor(weights) > 0
    by_label = [
        representation_bias(features, column, weights, permutations=0, bootstrap=0, seed=seed)
        if min(int(column[counted].sum()), int((1 - column[counted]).sum())) >= FOLDS
        else None
        for column in y.long().unbind(1)
    ]
    parts = [p for p in by_label if p is not None]
    if not parts:
        raise UserError(f"no label has {FOLDS} rows with and without it")
    entropy = sum(p.entropy for p in parts)
    omega = counted.double() / counted.sum() if weights is None else weights.double() / weights.double().sum()
    gain = torch.stack([p.gain for p in parts]).sum(0)[counted]
    bias = float(omega[counted] @ gain) / entropy
    half = 1.96 * float((omega[counted].square() @ (gain - bias * entropy).square()).sqrt()) / entropy
    return BiasEstimate(
        bias=bias,
        risk=entropy * (1 - bias),
        entropy=entropy,
        low=bias - half,
        high=bias + half,
        chance=math.nan,
        chance_high=math.nan,
        per_class=tuple(math.nan if p is None else p.bias for p in by_label),
        gain=gain,
        n=len(gain),
        decay=math.nan,
        width=parts[0].width,
    )


def _without_zeros(
    features: Rows,
    y: Tensor,
    weights: Tensor,
    folds: int,
    decays: tuple[float, ...],
    permutations: int,
    bootstrap: int,
    seed: int,
) -> BiasEstimate:
    """Leave out rows of weight 0; their gain is NaN."""
    weights = torch.as_tensor(weights)
    counted = weights != 0
    e = representation_bias(
        only(features if isinstance(features, Matrix) else torch.as_tensor(features), counted), torch.as_tensor(y)[counted],
        weights[counted],
        folds=folds, decays=decays, permutations=permutations, bootstrap=bootstrap, seed=seed,
    )  # fmt: skip
    gain = torch.full((len(counted),), math.nan, dtype=torch.float64)
    gain[counted] = e.gain
    return dataclasses.replace(e, gain=gain)


def _checked(features: Tensor, y: Tensor, weights: Tensor | None, folds: int) -> tuple[Tensor, Tensor, Tensor, str]:
    """Standardised features after a column of ones, class codes, weights that sum to 1, and a note."""
    features = torch.as_tensor(features)
    y, omega = _checked_labels(len(features), y, weights, folds)
    features = features.reshape(len(features), -1)
    bad = ~torch.isfinite(features).all(1)
    if bool(bad.any()):
        raise UserError(f"features have NaN or infinity in {int(bad.sum())} rows, first in row {int(bad.nonzero()[0])}")
    # Single precision gives the risk to a thousandth, and is twice as fast for a large matrix.
    # Centre in the original precision, so that a small spread on a large offset is not lost.
    original = features if features.dtype in (torch.float32, torch.float64) else features.double()
    varies = original.amax(0) > original.amin(0)
    note = "" if bool(varies.all()) else f"{int((~varies).sum())} of {len(varies)} features are constant"
    if not bool(varies.any()):
        return torch.ones(len(y), 1, dtype=torch.float64), y, omega, note
    centred = original[:, varies] - original[:, varies].mean(0)
    centred = centred / centred.abs().amax(0)  # before squaring, as 1e200 would overflow
    single = features.numel() > 2_000_000 or len(features) > SINGLE_ROWS
    x = (centred / centred.std(0)).to(torch.float32 if single else torch.float64)
    return torch.cat([x.new_ones(len(x), 1), x], 1), y, omega, note


def _checked_labels(rows: int, y: Tensor, weights: Tensor | None, folds: int) -> tuple[Tensor, Tensor]:
    """Class codes, and weights that sum to 1."""
    y = tensor_of(y, "labels").long()
    if rows != len(y) or not len(y):
        raise UserError(f"{rows} rows of features but {len(y)} labels")
    if folds < 2 or int(y.min()) < 0:
        raise UserError(f"needs at least two folds, one row and class codes from 0 on; got {folds} folds and {len(y)} rows")
    counts = y.bincount()
    if int((counts > 0).sum()) < 2:
        raise UserError(f"only one class in {len(y)} rows: nothing to predict")
    if int(counts[counts > 0].min()) < folds:
        c = int(torch.where(counts > 0, counts, len(y) + 1).argmin())
        raise UserError(f"class {c} has {int(counts[c])} rows, fewer than the {folds} folds; leave it out or use fewer folds")
    omega = torch.ones(len(y), dtype=torch.float64) if weights is None else torch.as_tensor(weights).double()
    if len(omega) != len(y) or not bool(torch.isfinite(omega).all()) or bool((omega < 0).any()) or float(omega.sum()) <= 0:
        raise UserError("weights must be one finite number per row, not negative, not all 0")
    return y, omega / omega.sum()


def held_out_loss(
    x: Tensor, y: Tensor, omega: Tensor, fold: Tensor, folds: int, decays: tuple[float, ...], num_classes: int
) -> tuple[Tensor, Tensor]:
    """Cross-entropies (n, decays, Q) of every row by the estimator that held it out, for Q columns of labels and weights (n, Q);
    and the risks (decays, Q) of the estimators on the rows they were fitted on."""
    w, fitted = _fit_folds(x, y, omega, fold, folds, decays, num_classes)
    return _losses(x, y, w, fold), fitted


def _fit_folds(
    x: Tensor, y: Tensor, omega: Tensor, fold: Tensor, folds: int, decays: tuple[float, ...], num_classes: int
) -> tuple[Tensor, Tensor]:
    """Estimators (folds, decays, Q, C, D), each without its fold, and their risks (decays, Q) on the rows they were fitted on."""
    copies = y.shape[1]
    # One problem per (fold, copy); one pass over the rows serves all.
    shares = omega[:, None, :].to(x.dtype)
    held = fold[:, None] == torch.arange(folds)
    outside, inside = ((rows[:, :, None] * shares).flatten(1) for rows in (~held, held))
    labels = y[:, 0] if copies == 1 else y.repeat(1, folds)
    w, fitted = fit_with_risks(x, labels, outside, decays, num_classes, judged=inside if len(decays) > 1 else None)
    w = w.view(len(decays), folds, copies, x.shape[1], num_classes).permute(1, 0, 2, 4, 3)
    return w, fitted.view(len(decays), folds, copies).mean(1)


def _losses(x: Tensor, y: Tensor, w: Tensor, fold: Tensor) -> Tensor:
    """(n, decays, Q) cross-entropies of the rows by the estimators that held them out."""
    folds, decays, copies, num_classes, _ = w.shape
    loss = torch.empty(decays, copies, len(x), dtype=torch.float64)
    for k in range(folds):
        flat = w[k].reshape(-1, x.shape[1])
        for rows in torch.split((fold == k).nonzero()[:, 0], max(1, 4 * PASS // len(flat))):
            logits = (flat @ x[rows].T).double().view(decays, copies, num_classes, len(rows))
            target = y[rows].T[None, :, None].expand(decays, -1, -1, -1)
            loss[:, :, rows] = logits.logsumexp(2) - logits.gather(2, target).squeeze(2)
    return loss.permute(2, 0, 1)


def _interval(loss: Tensor, y: Tensor, omega: Tensor, entropy: float, draws: int, seed: int) -> tuple[float, float]:
    """Bootstrap within each class, which keeps the class shares and so the entropy."""
    if draws == 0:
        return math.nan, math.nan
    if len(y) > BOOTSTRAP_ROWS:
        return _normal_interval(loss, y, omega, entropy)
    risk = torch.zeros(draws, dtype=torch.float64)
    sizes = y.bincount()
    classes = sizes.nonzero().flatten()
    for c, often in zip(classes.tolist(), drawn_within(tuple(sizes[classes].tolist()), draws, seed), strict=True):
        rows = (y == c).nonzero().flatten()
        lost, share = (omega * loss)[rows], omega[rows]
        equal = bool((share == share[0]).all())
        for part in torch.split(torch.arange(draws), max(1, 4_000_000 // len(rows))):
            count = often[part].double()
            # The drawn rows represent the whole class: their mean loss is weighted by the class's share.
            drawn = len(rows) * share[:1] if equal else (count @ share).clamp(min=1e-300)
            risk[part] += count @ lost / drawn * float(share.sum())
    ends = torch.quantile(1 - risk / entropy, torch.tensor([0.025, 0.975], dtype=torch.float64))
    return float(ends[0]), float(ends[1])


def _normal_interval(loss: Tensor, y: Tensor, omega: Tensor, entropy: float) -> tuple[float, float]:
    r"""What the bootstrap within classes tends to with many rows.

    .. math::  \hat R \pm 1.96 \sqrt{\textstyle\sum_i \omega_i^2 (\ell_i - \bar\ell_{y_i})^2}, \qquad
               \bar\ell_c = \sum_{i: y_i = c} \omega_i \ell_i \big/ \sum_{i: y_i = c} \omega_i
    """
    share, lost = (torch.zeros(int(y.max()) + 1, dtype=torch.float64).index_add_(0, y, v) for v in (omega, omega * loss))
    mean = lost / share.clamp(min=1e-300)
    half = Z95 * float((omega * (loss - mean[y])).square().sum().sqrt())
    risk = float(lost.sum())
    return 1 - (risk + half) / entropy, 1 - (risk - half) / entropy


def _permuted(x: Tensor, y: Tensor, omega: Tensor, decay: float, num_classes: int, permutations: int, seed: int) -> Tensor:
    """Bias with permuted labels, one value per permutation; weights move with their labels, which keeps the class shares."""
    if permutations == 0:
        return torch.zeros(0)
    generator = stream(seed, "permutations")
    if len(x) > BASELINE_ROWS:
        rows = torch.randperm(len(x), generator=generator)[:BASELINE_ROWS]
        x, y, omega = x[rows], y[rows], omega[rows] / omega[rows].sum()
    x = x.float()  # enough for what is nearly 0
    folds, biases = 2, []
    fold = torch.randint(0, folds, (len(x),), generator=generator)
    together = max(1, 2_000 // (folds * num_classes))  # columns of the matrix product: enough to fill it, not the memory
    for part in torch.split(torch.arange(permutations), together):
        order = torch.stack([torch.randperm(len(x), generator=generator) for _ in part], 1)  # (n, Q)
        labels, shares = y[order], omega[order]
        loss = held_out_loss(x, labels, shares, fold, folds, (decay,), num_classes)[0][:, 0]
        biases += [_bias_of(loss[:, q], labels[:, q], shares[:, q], num_classes) for q in range(len(part))]
    return torch.tensor(biases, dtype=torch.float64)


def _bias_of(loss: Tensor, y: Tensor, omega: Tensor, num_classes: int) -> float:
    prior = torch.zeros(num_classes, dtype=torch.float64).index_add_(0, y, omega)
    return 1 - float(omega @ loss) / float(-(prior * prior.clamp(min=1e-300).log()).sum())


def _of_class(loss: Tensor, surprise: Tensor, omega: Tensor, mask: Tensor) -> float:
    total = float((omega * surprise)[mask].sum())
    return 1 - float((omega * loss)[mask].sum()) / total if total > 0 else math.nan


FUNCTIONS = (representation_bias,)
RANGE = (-math.inf, 1.0)
HIGHER = "more of the label can be read; at or below 0, nothing"
