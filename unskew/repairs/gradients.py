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
backward per row.

Source: "Mitigating Dataset Bias Using Per-Sample Gradients from a Biased Classifier", ICLR 2022 submission, section 4.
Differs: the equation for S is illegible in our copy of the paper; the form above agrees with everything the text says about it
(the harmonic mean of inverse scores, high when either score is high). The paper leaves open, with our default first: which
weights (last layer without its bias; `bias=true`, `layer=NAME`); K over all rows or per class (`dominant`); normalisation per
class and the minimum over all rows (`within`, `scale`), so that rows of smaller classes are accepted more often; eval or train
mode (`mode`); plain or augmented inputs (`augment`); lambda = 1. With last-layer gradients the direction score is useless alone:
within a class the mean resultant length is above 0.9 and kappa in the thousands, so all rows but those at the mode underflow (try
`lambda_=1e9`). `variant=norm` is the version published in 2023: p proportional to the norm.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from unskew.core import config, progress
from unskew.core.errors import UserError, suggest
from unskew.core.rng import seed_of
from unskew.data.augment import preset
from unskew.data.dataset import DataSet
from unskew.data.loader import rows_in_order
from unskew.repairs._contract import Outcome, Use, Work, one_class_per_row
from unskew.stats.independence import calibrate

SPLITS = ("train",)
METHOD = "gce"
TRAIN = {  # as in the paper's Table 4, but ten epochs: longer training makes the biased model less biased
    "optim.name": "sgd", "optim.lr": 0.01, "optim.momentum": 0.8, "optim.weight_decay": 0.001,
    "train.epochs": 10, "train.batch": 256, "select.every": "10 epochs",
}  # fmt: skip
BATCH = 1024  # rows of a forward pass
DENSE = 4_000_000  # numbers of per-sample gradients held at once, for layers without a closed form


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    run: str = ""  # a finished run whose model is used; empty: one is trained with gce
    lambda_: float = 1.0  # weight of the direction score
    k: int = 100  # dominant coordinates; the paper has 100 for MNIST, 500 for ResNet
    variant: Literal["scores", "norm"] = "scores"  # norm: the version of 2023
    layer: str = ""  # module for whose weights the gradient is taken; empty: the last linear layer
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
    opinion = work.logits(cfg.run, METHOD)[1].argmax(1)
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

    return _scored(model, chunks, y, cfg)[1]


def scored(model: nn.Module, data: DataSet, rows: Tensor, cfg: Config) -> tuple[Tensor, Tensor, dict[str, Any]]:
    change = preset(cfg.augment)

    def chunks() -> Iterator[tuple[Tensor, Tensor]]:
        return rows_in_order(data, rows, BATCH, workers=2, change=change)

    return _scored(model, chunks, data.y, cfg)


Chunks = Callable[[], Iterator[tuple[Tensor, Tensor]]]  # (ids, inputs) of all rows, from the beginning each time it is called


def _scored(model: nn.Module, chunks: Chunks, y: Tensor, cfg: Config) -> tuple[Tensor, Tensor, dict[str, Any]]:
    if cfg.mode == "train" and not find_layer(model, cfg.layer).closed:
        raise UserError("gradients: mode=train works only for the last linear layer; other layers see one row at a time")
    was_training, buffers = model.training, {name: b.clone() for name, b in model.named_buffers()}
    model.train(cfg.mode == "train")
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed_of(0, "gradients"))  # the same dropout every time
            return _probabilities(model, chunks, y, cfg)
    finally:
        model.train(was_training)
        for name, b in model.named_buffers():  # a pass in train mode changes the running statistics
            b.copy_(buffers[name])


def _probabilities(model: nn.Module, chunks: Chunks, y: Tensor, cfg: Config) -> tuple[Tensor, Tensor, dict[str, Any]]:
    layer = find_layer(model, cfg.layer)
    classes = int(y.max()) + 1
    per_class = cfg.dominant == "class" and cfg.variant == "scores"
    ids: list[Tensor] = []
    norms: list[Tensor] = []
    kept: list[Gradients | Tensor] = []
    total: Tensor | None = None
    direction = cfg.variant == "scores" and cfg.lambda_ > 0
    for part, g in _gradients(model, layer, chunks, y, cfg.bias):
        ids.append(part)
        norms.append(g.norm())
        if direction:
            added = g.absolute_sum(y[part] if per_class else torch.zeros_like(part), classes if per_class else 1)
            total = added if total is None else total + added
            if g.small(cfg.k):
                kept.append(g)
    if not ids:
        raise UserError("gradients: no rows to score")
    index, norm = torch.cat(ids), torch.cat(norms).clamp(min=cfg.floor)
    label = y[index]
    if cfg.variant == "norm":
        return index, norm / norm.max(), {"mean_norm": float(norm.mean())}
    group = label if cfg.within == "class" else torch.zeros_like(label)
    magnitude = share_within(1 / norm, group)
    if not direction:
        return index, acceptance(magnitude, label, cfg.scale), {}
    assert total is not None
    k = min(cfg.k, total.shape[1])
    chosen = total.topk(k, dim=1).indices  # (1 or classes, k)
    which = label if per_class else None
    spans = [slice(end - len(i), end) for i, end in zip(ids, torch.tensor([len(i) for i in ids]).cumsum(0).tolist(), strict=True)]

    def directions() -> Iterator[tuple[slice, Tensor]]:
        """Unit vectors on the dominant coordinates, for a part of the rows at a time."""
        for span, g in zip(spans, kept, strict=True):
            yield span, unit(g if isinstance(g, Tensor) else g.only(chosen, None if which is None else which[span]), cfg.floor)

    if len(kept) < len(ids):  # too large to keep: a second pass keeps the k coordinates of every row
        kept = [g.only(chosen, y[i] if per_class else None).float() for i, g in _gradients(model, layer, chunks, y, cfg.bias)]
    size = int(group.max()) + 1
    resultant = torch.zeros(size, k, dtype=torch.float64)
    for span, v in directions():
        resultant.index_add_(0, group[span], v)
    mean, kappa, length = von_mises_fisher(resultant, group.bincount(minlength=size))
    exponent = torch.cat([kappa[group[span]] * (v * mean[group[span]]).sum(1) for span, v in directions()])
    score = (magnitude + cfg.lambda_ * softmax_within(exponent, group)) / (1 + cfg.lambda_)
    figures = {"kappa": kappa.tolist(), "mean_resultant_length": length.tolist(), "coordinates": k}
    return index, acceptance(score, label, cfg.scale), figures


def _gradients(model: nn.Module, layer: "Layer", chunks: Chunks, y: Tensor, bias: bool) -> Iterator[tuple[Tensor, "Gradients"]]:
    """Gradients by chunk; fewer rows at a time without a closed form."""
    most = BATCH if layer.closed else max(1, DENSE // max(layer.numbers, 1))
    for index, x in chunks():
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
    return v.double() / _norm(v).clamp(min=floor)[:, None]


def _norm(v: Tensor) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(v.double(), dim=1)
    return length


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


# Per-sample gradients, in closed form or by torch.func.


class Gradients(Protocol):
    """Gradients of a batch of rows, stored as compactly as the layer allows."""

    def norm(self) -> Tensor: ...

    def absolute_sum(self, group: Tensor, size: int) -> Tensor:
        """(size, P) sums of |gradient| by group."""
        ...

    def only(self, chosen: Tensor, group: Tensor | None) -> Tensor:
        """(b, k) these coordinates of every row."""
        ...

    def small(self, k: int) -> bool:
        """Whether a row takes O(k) numbers, so that all rows can be kept."""
        ...


@dataclass(frozen=True, slots=True)
class Outer:
    """Gradient of a linear layer's weights: error (b, C) times input (b, F), never multiplied out."""

    error: Tensor  # softmax - onehot
    h: Tensor

    def norm(self) -> Tensor:
        return _norm(self.error) * _norm(self.h)

    def absolute_sum(self, group: Tensor, size: int) -> Tensor:
        e, h = self.error.abs().double(), self.h.abs().double()
        if size == 1:
            return (e.T @ h).reshape(1, -1)
        return torch.stack([(e[group == c].T @ h[group == c]).flatten() for c in range(size)])

    def only(self, chosen: Tensor, group: Tensor | None) -> Tensor:
        width = self.h.shape[1]
        if group is None:
            which = chosen[0]
            return self.error[:, which // width].double() * self.h[:, which % width].double()
        which = chosen[group]
        return self.error.gather(1, which // width).double() * self.h.gather(1, which % width).double()

    def small(self, k: int) -> bool:
        return self.error.shape[1] + self.h.shape[1] <= 4 * k


@dataclass(frozen=True, slots=True)
class Dense:
    """Gradients (b, P) multiplied out: any layer."""

    g: Tensor

    def norm(self) -> Tensor:
        return _norm(self.g)

    def absolute_sum(self, group: Tensor, size: int) -> Tensor:
        return self.g.new_zeros(size, self.g.shape[1]).index_add_(0, group, self.g.abs()).double()

    def only(self, chosen: Tensor, group: Tensor | None) -> Tensor:
        return (self.g[:, chosen[0]] if group is None else self.g.gather(1, chosen[group])).double()

    def small(self, k: int) -> bool:
        return self.g.shape[1] <= 4 * k


@dataclass(frozen=True, slots=True)
class Layer:
    name: str
    closed: bool  # whether it is the last linear layer, whose output is the logits
    numbers: int  # parameters


def find_layer(model: nn.Module, name: str = "") -> Layer:
    modules = {n: m for n, m in model.named_modules() if n and any(True for _ in m.parameters())}
    linear = [n for n, m in modules.items() if isinstance(m, nn.Linear)]
    if not name and not linear:
        raise UserError(f"{type(model).__name__} has no linear layer; name the module to take gradients of with layer=NAME")
    if name and name not in modules:
        raise UserError(f"no layer {name!r}{suggest(name, modules)}")
    chosen = name or linear[-1]
    return Layer(chosen, bool(linear) and chosen == linear[-1], sum(p.numel() for p in modules[chosen].parameters()))


def gradients(model: nn.Module, layer: Layer, x: Tensor, y: Tensor, bias: bool = False) -> Gradients:
    """The gradients of each row's cross-entropy with respect to one layer's weights."""
    if layer.closed:
        outer = _outer(model, layer.name, x, y, bias)
        if outer is not None:
            return outer
    return Dense(_dense(model, layer.name, x, y, bias))


def _outer(model: nn.Module, name: str, x: Tensor, y: Tensor, bias: bool) -> Outer | None:
    seen: list[tuple[Tensor, Tensor]] = []
    handle = model.get_submodule(name).register_forward_hook(lambda m, inputs, output: seen.append((inputs[0], output)))
    try:
        with torch.no_grad():
            logits = model(x)
    finally:
        handle.remove()
    if len(seen) != 1 or seen[0][1] is not logits or seen[0][0].ndim != 2:
        return None  # something else turns this layer's output into the logits
    h = seen[0][0]
    error = logits.double().softmax(1)
    # 1 - p of the true class as the sum of the others: exact even if p is nearly 1.
    error.scatter_(1, y[:, None], 0.0)
    error.scatter_(1, y[:, None], -error.sum(1, keepdim=True))
    h = torch.cat([h, h.new_ones(len(h), 1)], 1) if bias else h
    return Outer(error.to(h.dtype), h)


def _dense(model: nn.Module, name: str, x: Tensor, y: Tensor, bias: bool) -> Tensor:
    from torch.func import functional_call, grad, vmap

    chosen = {
        f"{name}.{n}": p.detach() for n, p in model.get_submodule(name).named_parameters() if bias or not n.endswith("bias")
    }
    rest = {n: t.detach() for n, t in [*model.named_parameters(), *model.named_buffers()] if n not in chosen}

    def loss(part: dict[str, Tensor], one: Tensor, label: Tensor) -> Tensor:
        logits = functional_call(model, {**rest, **part}, (one[None],))
        return nn.functional.cross_entropy(logits, label[None])

    by_name = vmap(grad(loss), in_dims=(None, 0, 0), randomness="different")(chosen, x, y)
    whole: Tensor = torch.cat([by_name[n].flatten(1) for n in chosen], 1).detach()
    return whole
