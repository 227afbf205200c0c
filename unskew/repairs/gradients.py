r"""gradients: the less a biased model's gradient on a row resembles those of its class, the more often the row is drawn (PGD).

.. math::
    M_i = \frac{1 / \lVert \nabla_i \rVert}{\sum_{j \sim i} 1 / \lVert \nabla_j \rVert}, \qquad
    D_i = \frac{e^{\kappa\, u^\top v_i}}{\sum_{j \sim i} e^{\kappa\, u^\top v_j}}, \qquad
    S_i = \frac{M_i + \lambda D_i}{1 + \lambda}, \qquad
    p_i = \frac{\min_j S_j}{S_i}

    v_i = \frac{\nabla_i^K}{\lVert \nabla_i^K \rVert}, \qquad
    u = \frac{\sum_{j \sim i} v_j}{\lVert \sum_{j \sim i} v_j \rVert}, \qquad
    \bar r = \frac{\lVert \sum_{j \sim i} v_j \rVert}{N_{y_i}}, \qquad
    \kappa = \frac{\bar r (k - \bar r^2)}{1 - \bar r^2}

=========  ================  ===========================================================================================
nabla_i    `layer`           gradient of the cross-entropy of row i, for the last layer's weights of a model trained with GCE
j ~ i      within=class      the rows of the same class; `within=all`: all rows
K          k, dominant       the k coordinates with the largest sum of |gradient|, over all rows or per class
M, D       -                 magnitude score, von Mises-Fisher direction score (its normaliser cancels)
p          column `score`    acceptance probability; min over all rows (`scale=all`) or per class
=========  ================  ===========================================================================================

With two classes these probabilities put nearly all weight on the rows that lack the shortcut, and a model trained on them is
inverted. `calibrate=independence` (default) raises p to the largest power at which class and the biased model's opinion are no
further apart than independent; `calibrate=none` is the paper's literal form.

The gradient of the last layer's weights is (softmax - onehot) times the features, so its norm is a product of two norms, the sum
of its absolute values is a matrix product, and one forward pass serves all rows. Other layers use torch.func, one vectorised
backward per row. Many rows take three passes (norms, mean directions, scores) and hold three numbers per row.

Source: "Mitigating Dataset Bias Using Per-Sample Gradients from a Biased Classifier", ICLR 2022 submission, section 4.
Differs: the equation for S is illegible in our copy of the paper; the form above agrees with everything the text says about it
(the harmonic mean of inverse scores, high when either score is high). The paper leaves open, with our default first: which
weights (last layer without its bias; `bias=true`, `layer=NAME`); K over all rows or per class (`dominant`); normalisation per
class and the minimum over all rows (`within`, `scale`), so that rows of smaller classes are accepted more often; eval or train
mode (`mode`); plain or augmented inputs (`augment`); lambda = 1. With last-layer gradients the direction score is useless alone:
within a class the mean resultant length is above 0.9 and kappa in the thousands, so all rows but those at the mode underflow (try
`lambda_=1e9`). `variant=norm` is the version published in 2023: p proportional to the norm. Three variants put another number in
the place of the inverse norm in M, for the paper's comparison of scores, whose form it does not print: the probability of the
label (`softmax`), one over the loss (`loss`), and e to the label's logit (`logit`). `layer=all` takes all parameters.
"""

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from unskew.core import config, progress
from unskew.core.errors import UserError
from unskew.core.executor import map_rows, on_cluster
from unskew.core.matrix import Column
from unskew.core.rng import seed_of
from unskew.data.augment import preset
from unskew.data.dataset import DataSet
from unskew.data.loader import rows_in_order
from unskew.parts.per_sample import Gradients, Layer, find_layer, gradients, row_norm
from unskew.repairs._contract import Outcome, Use, Work, one_class_per_row
from unskew.stats.independence import calibrate

SPLITS = ("train",)
METHOD = "gce"
TRAIN = {  # as in the paper's Table 4, but ten epochs: longer training makes the biased model less biased
    "optim.name": "sgd", "optim.lr": 0.01, "optim.momentum": 0.8, "optim.weight_decay": 0.001,
    "train.epochs": 10, "train.batch": 256, "select.every": "10 epochs",
}  # fmt: skip
BATCH = 1024  # rows of a forward pass
SENT = 16 * BATCH  # rows sent to a worker of a cluster at a time
KEPT = 2**26  # numbers of gradients that are kept from one pass to the next; more are computed again
DENSE = 4_000_000  # numbers of per-sample gradients held at once, for layers without a closed form


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    run: str = ""  # a finished run whose model is used; empty: one is trained with gce
    lambda_: float = 1.0  # weight of the direction score
    k: int = 100  # dominant coordinates; the paper has 100 for MNIST, 500 for ResNet
    variant: Literal["scores", "norm", "softmax", "loss", "logit"] = "scores"  # norm: the version of 2023; others: no gradient
    layer: str = ""  # module for whose weights the gradient is taken, or all; empty: the last linear layer
    bias: bool = False  # include the layer's bias
    dominant: Literal["all", "class"] = "all"  # rows over which dominant coordinates are chosen
    within: Literal["class", "all"] = "class"  # rows over which scores are normalised
    scale: Literal["all", "class"] = "all"  # rows whose lowest score is accepted with probability 1
    mode: Literal["eval", "train"] = "eval"  # of dropout and batch normalisation; train only for the last layer
    augment: str = "none"  # augmentation of the inputs; the 2023 code uses pgd
    floor: float = 1e-8  # smallest norm
    calibrate: Literal["independence", "none"] = "independence"  # none: the paper's probabilities as they are

    def __post_init__(self) -> None:
        if self.lambda_ < 0 or self.k < 2 or self.floor <= 0:
            raise UserError("gradients: lambda_ must not be negative, k must be at least 2 and floor above 0")


def use(cfg: Config) -> Use:
    return "chance"


def apply(work: Work, cfg: Config) -> Outcome:
    one_class_per_row(work.data, "gradients")
    model = work.network(cfg.run, METHOD)
    index, p, figures = scored(model, work.seen_by(model), work.rows, cfg)
    opinion = work.opinion(cfg.run, METHOD)[1]
    if cfg.calibrate == "none":
        return Outcome(index, p, p, figures=figures, opinion=opinion)
    tempered = calibrate(p, work.data.y[index], opinion, len(work.data.classes))
    figures |= {"power": tempered.power, "effective_rows": tempered.effective, "notes": [tempered.words()]}
    progress.say(tempered.words())
    return Outcome(index, tempered.weight, p, figures=figures, opinion=opinion)


def gradient_probabilities(model: nn.Module, data: Any, rows: Tensor | None = None, **settings: Any) -> Tensor:
    """The acceptance probability of every row of `data`: a DataSet (or its `rows`), or a pair of tensors (x, y).

    Settings are those of Config: lambda_, k, layer, variant and so on. Works for any nn.Module that ends in a linear layer.
    """
    cfg = config.build(Config, settings)
    if isinstance(data, DataSet):
        index, p, _ = scored(model, data, torch.arange(len(data)) if rows is None else rows, cfg)
        wanted = len(data) if rows is None else len(rows)
        if len(index) < wanted:
            raise UserError(f"{wanted - len(index)} of {wanted} rows cannot be decoded; leave them out")
        return p
    x, y = (torch.as_tensor(part) for part in data)
    y = y.long()
    if len(x) != len(y):
        raise UserError(f"{len(x)} rows of inputs for {len(y)} labels")

    def chunks() -> Iterator[tuple[Tensor, Tensor]]:
        return zip(torch.split(torch.arange(len(x)), BATCH), torch.split(x, BATCH), strict=True)

    return _scored(model, lambda layer: _Here(model, layer, chunks, y, cfg), y, cfg)[1]


def scored(model: nn.Module, data: DataSet, rows: Tensor, cfg: Config) -> tuple[Tensor, Tensor, dict[str, Any]]:
    change = preset(cfg.augment)
    if on_cluster() and cfg.mode == "eval" and cfg.augment == "none":  # else one row's draws depend on those before it
        return _scored(model, lambda layer: _There(model, layer, data, rows, cfg), data.y, cfg)

    def chunks() -> Iterator[tuple[Tensor, Tensor]]:
        return rows_in_order(data, rows, BATCH, workers=2, change=change)

    return _scored(model, lambda layer: _Here(model, layer, chunks, data.y, cfg), data.y, cfg)


class Passes(Protocol):
    """Passes over the rows of one model: `work(ids, gradients)` or `work(ids, logits)` of a few rows at a time, in order."""

    def gradients(self, work: Callable[[Tensor, Gradients], Any]) -> Iterator[Any]: ...

    def logits(self, work: Callable[[Tensor, Tensor], Any]) -> Iterator[Any]: ...


@dataclass
class _Here:
    """In this process. Gradients are kept for the next pass if they are small and few."""

    model: nn.Module
    layer: Layer | None  # None: only logits are asked for
    chunks: Callable[[], Iterator[tuple[Tensor, Tensor]]]  # (ids, inputs) of all rows, from the beginning at every call
    y: Tensor
    cfg: Config
    kept: list[tuple[Tensor, Gradients]] | None = None  # of all rows, once a pass is over

    def gradients(self, work: Callable[[Tensor, Gradients], Any]) -> Iterator[Any]:
        if self.kept is not None:
            yield from (work(ids, g) for ids, g in self.kept)
            return
        assert self.layer is not None
        kept: list[tuple[Tensor, Gradients]] | None = []
        numbers = 0
        for ids, g in _gradients(self.model, self.layer, self.chunks(), self.y, self.cfg.bias):
            numbers += len(ids) * 4 * self.cfg.k
            if kept is not None and g.small(self.cfg.k) and numbers <= KEPT:
                kept.append((ids, g))
            else:
                kept = None
            yield work(ids, g)
        self.kept = kept

    def logits(self, work: Callable[[Tensor, Tensor], Any]) -> Iterator[Any]:
        with torch.no_grad():
            yield from (work(ids, self.model(x).double()) for ids, x in self.chunks())


@dataclass(frozen=True)
class _There:
    """On a cluster: parts of the rows are sent to workers, each of which has the model."""

    model: nn.Module
    layer: Layer | None
    data: DataSet
    rows: Tensor
    cfg: Config

    def gradients(self, work: Callable[[Tensor, Gradients], Any]) -> Iterator[Any]:
        for found in map_rows(_Part(self.model, self.layer, self.data, self.cfg, work), torch.split(self.rows, SENT)):
            yield from found

    def logits(self, work: Callable[[Tensor, Tensor], Any]) -> Iterator[Any]:
        for found in map_rows(_Part(self.model, None, self.data, self.cfg, work), torch.split(self.rows, SENT)):
            yield from found


@dataclass(frozen=True)
class _Part:
    """What a worker does with its part of the rows."""

    model: nn.Module
    layer: Layer | None  # None: the work is on logits
    data: DataSet
    cfg: Config
    work: Callable[..., Any]

    def __call__(self, rows: Tensor) -> list[Any]:
        chunks = rows_in_order(self.data, rows, BATCH)
        if self.layer is None:
            with torch.no_grad():
                return [self.work(ids, self.model(x).double()) for ids, x in chunks]
        return [self.work(ids, g) for ids, g in _gradients(self.model, self.layer, chunks, self.data.y, self.cfg.bias)]


def _scored(
    model: nn.Module, passes: Callable[[Layer | None], Passes], y: Tensor, cfg: Config
) -> tuple[Tensor, Tensor, dict[str, Any]]:  # fmt: skip
    layer = None if cfg.variant in SIMPLE and cfg.mode == "eval" else find_layer(model, cfg.layer)
    if cfg.mode == "train" and layer is not None and not layer.closed:
        raise UserError("gradients: mode=train works only for the last linear layer; other layers see one row at a time")
    was_training, buffers = model.training, {name: b.clone() for name, b in model.named_buffers()}
    model.train(cfg.mode == "train")
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed_of(0, "gradients"))  # the same dropout every time
            return _probabilities(passes(layer), y, cfg)
    finally:
        model.train(was_training)
        for name, b in model.named_buffers():  # a pass in train mode changes the running statistics
            b.copy_(buffers[name])


@dataclass(frozen=True)
class _Norms:
    """First pass: norms, and the sums of |gradient| from which the dominant coordinates are chosen."""

    y: Tensor
    classes: int  # groups of the sums: 1 for all rows together; 0: no sums
    floor: float

    def __call__(self, ids: Tensor, g: Gradients) -> tuple[Tensor, Tensor, Tensor | None]:
        group = self.y[ids] if self.classes > 1 else torch.zeros_like(ids)
        return ids, g.norm().clamp(min=self.floor), g.absolute_sum(group, self.classes) if self.classes else None


@dataclass(frozen=True)
class _Directions:
    """Unit vectors on the dominant coordinates: their sums by group (second pass), or, given those, the exponents (third)."""

    y: Tensor
    cfg: Config
    chosen: Tensor  # (1 or classes, k)
    size: int  # groups
    mean: Tensor | None = None  # (groups, k)
    kappa: Tensor | None = None

    def __call__(self, ids: Tensor, g: Gradients) -> Tensor:
        v = g.only(self.chosen, self.y[ids] if len(self.chosen) > 1 else None)
        v = unit(v if g.small(self.cfg.k) else v.float(), self.cfg.floor)
        group = self.y[ids] if self.cfg.within == "class" else torch.zeros_like(ids)
        if self.mean is None or self.kappa is None:
            return torch.zeros(self.size, v.shape[1], dtype=torch.float64).index_add_(0, group, v)
        return self.kappa[group] * (v * self.mean[group]).sum(1)


def _probabilities(passes: Passes, y: Tensor, cfg: Config) -> tuple[Tensor, Tensor, dict[str, Any]]:
    """Three passes at most. What is held of a row is its norm, its exponent and its score."""
    if cfg.variant in SIMPLE:
        return _simple(passes, y, cfg)
    direction = cfg.variant == "scores" and cfg.lambda_ > 0
    classes = 0 if not direction else int(y.max()) + 1 if cfg.dominant == "class" else 1
    ids, norms, total = Column(), Column(), None
    for part, length, added in passes.gradients(_Norms(y, classes, cfg.floor)):
        ids.add(part)
        norms.add(length)
        total = added if total is None else total + added
    if not len(ids):
        raise UserError("gradients: no rows to score")
    index, norm = ids.whole(), norms.whole()
    label = y[index]
    if cfg.variant == "norm":
        return index, norm / norm.max(), {"mean_norm": float(norm.mean())}
    group = label if cfg.within == "class" else torch.zeros_like(label)
    magnitude = share_within(1 / norm, group)
    if not direction:
        return index, acceptance(magnitude, label, cfg.scale), {}
    assert total is not None
    k, size = min(cfg.k, total.shape[1]), int(group.max()) + 1
    second = _Directions(y, cfg, total.topk(k, dim=1).indices, size)
    resultant = torch.zeros(size, k, dtype=torch.float64)
    for added in passes.gradients(second):
        resultant += added
    mean, kappa, length = von_mises_fisher(resultant, group.bincount(minlength=size))
    exponent = Column()
    for part in passes.gradients(dataclasses.replace(second, mean=mean, kappa=kappa)):
        exponent.add(part)
    score = (magnitude + cfg.lambda_ * softmax_within(exponent.whole(), group)) / (1 + cfg.lambda_)
    figures = {"kappa": kappa.tolist(), "mean_resultant_length": length.tolist(), "coordinates": k}
    return index, acceptance(score, label, cfg.scale), figures


@dataclass(frozen=True)
class _Simple:
    """The number of a variant without gradients, of a few rows."""

    y: Tensor
    cfg: Config

    def __call__(self, ids: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        return ids, SIMPLE[self.cfg.variant](z, self.y[ids], self.cfg.floor)


def _simple(passes: Passes, y: Tensor, cfg: Config) -> tuple[Tensor, Tensor, dict[str, Any]]:
    """The scores of a variant without gradients, from the logits alone."""
    ids, values = Column(), Column()
    for part, number in passes.logits(_Simple(y, cfg)):
        ids.add(part)
        values.add(number)
    if not len(ids):
        raise UserError("gradients: no rows to score")
    index, value = ids.whole(), values.whole()
    if cfg.variant == "logit":  # shifted by the largest of all rows, so that it cannot overflow
        value = (value - value.max()).exp().clamp(min=cfg.floor)
    label = y[index]
    group = label if cfg.within == "class" else torch.zeros_like(label)
    return index, acceptance(share_within(value, group), label, cfg.scale), {}


def of_label(z: Tensor, y: Tensor) -> Tensor:
    """The entry of each row's label."""
    return z.gather(1, y[:, None]).squeeze(1)


# Higher for rows that the biased model finds easy, as the inverse norm is.
SIMPLE: dict[str, Callable[[Tensor, Tensor, float], Tensor]] = {
    "softmax": lambda z, y, floor: of_label(z.softmax(1), y).clamp(min=floor),
    "loss": lambda z, y, floor: 1 / (-of_label(z.log_softmax(1), y)).clamp(min=floor),
    "logit": lambda z, y, floor: of_label(z, y),
}


def _gradients(
    model: nn.Module, layer: Layer, chunks: Iterator[tuple[Tensor, Tensor]], y: Tensor, bias: bool
) -> Iterator[tuple[Tensor, Gradients]]:
    """Gradients by chunk; fewer rows at a time without a closed form."""
    most = BATCH if layer.closed else max(1, DENSE // max(layer.numbers, 1))
    for index, x in chunks:
        for part, part_x in zip(torch.split(index, most), torch.split(x, most), strict=True):
            yield part, gradients(model, layer, part_x, y[part], bias)


# Formulas, as plain functions.


def share_within(values: Tensor, group: Tensor) -> Tensor:
    """Each value divided by the sum of its group."""
    sums = values.new_zeros(int(group.max()) + 1).index_add_(0, group, values)
    return values / sums[group]


def softmax_within(exponent: Tensor, group: Tensor) -> Tensor:
    """Softmax within each group; shifted by the group's maximum, so that it cannot overflow."""
    top = exponent.new_full((int(group.max()) + 1,), -torch.inf).scatter_reduce_(0, group, exponent, "amax")
    return share_within((exponent - top[group]).exp(), group)


def unit(v: Tensor, floor: float = 1e-8) -> Tensor:
    return v.double() / row_norm(v).clamp(min=floor)[:, None]


def von_mises_fisher(resultant: Tensor, counts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""Mean direction u, concentration kappa and mean resultant length of groups, from the sums (G, k) of their unit vectors.

    .. math::  \bar r = \lVert \textstyle\sum v \rVert / N, \qquad \kappa \approx \bar r (k - \bar r^2) / (1 - \bar r^2)
    """
    norm = torch.linalg.vector_norm(resultant, dim=1)
    length = (norm / counts.clamp(min=1)).clamp(max=1 - 1e-12)
    kappa = length * (resultant.shape[1] - length.square()) / (1 - length.square())
    return resultant / norm.clamp(min=1e-300)[:, None], kappa, length


def acceptance(score: Tensor, y: Tensor, scale: str = "all") -> Tensor:
    """The lowest score, of all rows or of the row's class, divided by the row's own: in (0, 1]."""
    if scale == "all":
        return score.min() / score
    lowest = score.new_full((int(y.max()) + 1,), torch.inf).scatter_reduce_(0, y, score, "amin")
    return lowest[y] / score
