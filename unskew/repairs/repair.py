r"""repair: sample weights under which as little as possible of the class can be read from a representation.

.. math::
    \min_w \max_\theta V(w, \theta), \qquad
    V = 1 - \frac{\sum_i w_i \log P_\theta(y_i \mid \phi(x_i))}{\sum_i w_i \log p_{y_i}}, \qquad
    p_c = \frac{\sum_{i: y_i = c} w_i}{\sum_i w_i}, \qquad w_i = \sigma(\omega_i)

=========  =====================  =====================================================================================
phi        `phi`                  any representation by name, or several concatenated; by default what an audit finds first
theta      lr_estimator           linear softmax, SGD with momentum
omega      lr_weights             one number per row, plain SGD, starts at 0 (w = 0.5)
w          column `score`         in (0, 1); low: the representation gives the row's class away
kept rows  strategy               threshold (w >= 0.5), rank, class_rank (top half of all, of each class), sample (by w), uniform
=========  =====================  =====================================================================================

A step follows the exact gradient of V on a batch, at the cost of O(batch) and one elementwise pass. Write A = -sum_B w_i log P_i
and E = -sum_B w_i log p_{y_i}; the factor 1 / mean(w) of the mini-batch form cancels in V = 1 - A / E. With S_c the sum of the
weights of class c over all rows, S their sum, and W_c and W the same over the batch, log p_c = log S_c - log S gives

.. math::
    \frac{\partial V}{\partial w_j} =
    \underbrace{\frac{A}{E^2} \Big( \frac{W}{S} - \frac{W_{y_j}}{S_{y_j}} \Big)}_{\text{every row: one number per class}}
    + \underbrace{[j \in B] \Big( \frac{\log P_j}{E} - \frac{A}{E^2} \log p_{y_j} \Big)}_{\text{rows of the batch}}, \qquad
    \frac{\partial V}{\partial \omega_j} = \frac{\partial V}{\partial w_j} w_j (1 - w_j)

From a million rows on, a step costs O(batch): between the batches that a row is in, it only follows its class, and along that flow
G moves by the same amount for all rows of a class, so that one running number per class and one stored number per row suffice:

.. math::
    \dot\omega_j = -c_{y_j} w_j (1 - w_j) \;\Rightarrow\; \dot G(\omega_j) = -c_{y_j}, \qquad G(\omega) = 2 \omega + e^\omega - e^{-\omega},
    \qquad \dot S_c = -c_c \sum_{j: y_j = c} w_j^2 (1 - w_j)^2

The sums of a class are carried along by the last equation and by the exact changes of the batch, and summed anew in every epoch.
Features are fetched and standardised 64 batches at a time, so they may lie in a file that is larger than memory.

Source: Li and Vasconcelos, "REPAIR: removing representation bias by dataset resampling", CVPR 2019, equations 8 to 12; strategies
and MNIST schedule: section 4.1; video schedule: section 4.2.
Differs: nothing in the steps of the released code (theta first, then omega with the risk from before that step; momentum 0.9,
which the paper does not mention), below a million rows. Above, rows outside the batch follow their class by the flow, not by its
Euler steps, and the sums of a class are first-order within an epoch: on 70,000 rows after 200 epochs no weight differs by more than
1e-5 between the two forms (`make bench NAME=repair_forms`). Threshold keeps w >= 0.5 as in the paper (code: >). Features are
standardised, so that one learning rate suits all (`scale=none`: the paper's raw colours, on which the estimator of a small set does
not converge). The default strategy is weights: all rows, drawn in proportion to w, which is sample drawn anew for each batch. If the
bias has few values, threshold keeps only conflicting rows, so that the bias gives the class away again, in reverse; and threshold
and rank can empty a class, which is an error. Train, val and test rows are weighted together, as in the paper, if the test rows
are drawn like the training rows (`test_biased`, or carved from them); a separate test split is left alone unless `--splits` names
it. The paper's two schedules are 200 epochs at 10 (MNIST) and 20,000 steps at 1e-3 |D| (video): a row's weight changes about as
much in both. `schedule=auto` takes the first if 200 epochs are 20,000 to 200,000 steps, else the second: in a small set, 200
epochs are too few steps for the estimator to learn anything, and weights against an untrained estimator mean nothing. Bias before
and after is measured on rows the reader was not fitted on.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core import checkpoint, progress
from unskew.core.config import whole_names
from unskew.core.errors import UserError
from unskew.core.matrix import Matrix, Rows, passes, slices
from unskew.core.rng import stream
from unskew.repairs._contract import Outcome, Use, Work, one_class_per_row, unit_rows
from unskew.stats.groups import tensor_of
from unskew.stats.select import check_kept, select
from unskew.stats.streamed import Scaled

SPLITS = ("train", "val", "test")
SAVE_SECONDS = 10.0
STEPS = 20_000  # of the video schedule
TOGETHER = 64  # batches whose features are fetched at once
LARGE = 1_000_000  # rows from which on a step does not touch those outside its batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    phi: tuple[str, ...] = ()  # representations; empty: what an audit finds first
    strategy: Literal["threshold", "rank", "class_rank", "sample", "uniform", "weights"] = (
        "weights"  # weights: all rows, drawn by weight
    )
    keep: float = 0.5  # share of the rows, for rank, class_rank and uniform
    threshold: float = 0.5  # lowest weight that strategy=threshold keeps
    schedule: Literal["auto", "mnist", "video"] = "auto"  # one of the paper's two; auto: by the number of rows
    epochs: int | None = None  # none: the schedule's, 200 or as many as make 20,000 steps
    batch: int = 128  # rows per step
    lr_estimator: float = 1e-3  # learning rate of theta
    momentum: float = 0.9  # of theta's SGD
    lr_weights: float | None = None  # learning rate of omega; none: the schedule's, 10 or 1e-3 times the number of rows
    scale: Literal["unit", "none"] = "unit"  # of the features: standardised, or as they are (the paper's colours)

    def __post_init__(self) -> None:
        object.__setattr__(self, "phi", whole_names(self.phi))
        if (self.epochs or 0) < 0 or self.batch < 1 or not 0 <= self.momentum < 1 or not 0 < self.keep <= 1:
            raise UserError("repair: epochs must not be negative, batch must be at least 1, momentum in [0, 1), keep in (0, 1]")
        if self.lr_estimator <= 0 or (self.lr_weights is not None and self.lr_weights <= 0):
            raise UserError("repair: lr_estimator and lr_weights must be above 0")


def use(cfg: Config) -> Use:
    return "chance" if cfg.strategy == "weights" else "keep"


def apply(work: Work, cfg: Config) -> Outcome:
    data = work.data
    one_class_per_row(data, "repair")
    names = list(cfg.phi) or work.default_features()
    index, features = work.features(names)
    y = data.y[index]
    epochs, lr_weights = schedule_for(len(y), cfg)
    with progress.bar("repair", epochs) as advance:
        w = repair_weights(
            features if cfg.scale == "none" else unit_rows(features), y, epochs=epochs, batch=cfg.batch, lr_estimator=cfg.lr_estimator,
            momentum=cfg.momentum, lr_weights=lr_weights, seed=work.seed, state=work.state, advance=advance,
        )  # fmt: skip
    if cfg.strategy == "weights":
        return Outcome(index, w, w, representations=tuple(names))
    kept = select(w, y, cfg.strategy, threshold=cfg.threshold, keep=cfg.keep, seed=work.seed)
    number = f"threshold={cfg.threshold:g}" if cfg.strategy == "threshold" else f"keep={cfg.keep:g}"
    check_kept(kept, y, data.classes, f"strategy={cfg.strategy} {number if cfg.strategy != 'sample' else ''}".strip())
    weight = torch.zeros_like(w)
    weight[kept] = 1
    return Outcome(index, weight, w, representations=tuple(names))


def schedule_for(rows: int, cfg: Config) -> tuple[int, float]:
    """Epochs and learning rate of the weights for this number of rows.

    >>> schedule_for(70_000, Config()), schedule_for(1_280, Config()), schedule_for(1_280, Config(epochs=5))
    ((200, 10.0), (2000, 1.28), (5, 1.28))
    """
    per_epoch = -(-rows // cfg.batch)
    mnist = cfg.schedule == "mnist" or (cfg.schedule == "auto" and STEPS <= 200 * per_epoch <= 10 * STEPS)
    epochs, rate = (200, 10.0) if mnist else (max(1, round(STEPS / per_epoch)), 1e-3 * rows)
    return epochs if cfg.epochs is None else cfg.epochs, rate if cfg.lr_weights is None else cfg.lr_weights


def repair_weights(
    features: Rows | Scaled,
    y: Tensor,
    *,
    epochs: int = 200,
    batch: int = 128,
    lr_estimator: float = 1e-3,
    momentum: float = 0.9,
    lr_weights: float | None = 10.0,
    seed: int = 0,
    state: Path | None = None,
    advance: Callable[[int, str], None] | None = None,
) -> Tensor:
    """A weight in (0, 1) for every row; `state` names a file to resume from and to save progress in.

    >>> y = torch.tensor([0, 1]).repeat(200)
    >>> z = torch.where(torch.arange(400) < 380, y, 1 - y).float()[:, None]  # 5 % of the rows contradict the feature
    >>> w = repair_weights(z, y, epochs=40, lr_estimator=0.1)
    >>> bool(w[380:].min() > w[:380].max())
    True
    """
    y = tensor_of(y, "labels").long()
    features = features if isinstance(features, Matrix | Scaled) else torch.as_tensor(features)
    if len(features) != len(y) or not len(y):
        raise UserError(f"{len(features)} rows of features for {len(y)} labels")
    if isinstance(features, Tensor):
        features = features.reshape(len(features), -1) if features.ndim > 1 else features[:, None]
        features = features if features.dtype.is_floating_point else features.float()
    for part in passes(*features.shape) if not isinstance(features, Scaled) else ():  # what is scaled has been looked at
        wrong = ~torch.isfinite(features[part]).all(1)
        if bool(wrong.any()):
            raise UserError(f"features have NaN or infinity, first in row {part.start + int(wrong.nonzero()[0])}")
    codes, y = torch.unique(y, return_inverse=True)
    if len(codes) < 2:
        raise UserError(f"only one class in {len(y)} rows: nothing to predict")
    play: type[Players] = Game if len(y) < LARGE else LargeGame
    game = play(features, y, lr_estimator, momentum, 1e-3 * len(y) if lr_weights is None else lr_weights, seed)
    epoch = game.load(state, epochs) if state is not None else 0
    if advance and epoch:
        advance(epoch, "")
    saved = time.monotonic()
    while epoch < epochs:
        value = game.epoch(batch, stream(seed, "repair", epoch))
        epoch += 1
        if advance:
            advance(1, f"readable {value:.3f}")
        if state is not None and epoch < epochs and time.monotonic() - saved > SAVE_SECONDS:
            game.save(state, epoch)
            saved = time.monotonic()
    weights = game.weights()
    if not bool(torch.isfinite(weights).all()):
        raise UserError(
            f"repair: the weights became non-finite (the rarest class has {int(y.bincount().min())} of {len(y)} rows); "
            f"lower lr_weights to {1e-3 * len(y):.2g} or less, or raise lr_estimator or epochs"
        )
    return weights


class Players:
    """What the two forms of the game share: the estimator, and its step."""

    place: Tensor  # of each row's weight
    stored: tuple[str, ...]  # tensors that a resumed game needs

    def __init__(self, z: Rows | Scaled, y: Tensor, lr_estimator: float, momentum: float, lr_weights: float, seed: int) -> None:
        self.z, self.y = z, y
        self.like = z[:0] if isinstance(z, Tensor) else torch.zeros(0)  # type of the numbers
        self.lr_estimator, self.momentum, self.lr_weights = lr_estimator, momentum, lr_weights
        self.classes = int(y.max()) + 1
        bound = z.shape[1] ** -0.5
        generator = stream(seed, "repair", "estimator")
        drawn = torch.rand(z.shape[1] + 1, self.classes, generator=generator, dtype=torch.float64)
        self.theta = ((2 * drawn - 1) * bound).to(self.like)
        self.speed = torch.zeros_like(self.theta)

    def read(self, rows: Tensor) -> Tensor:
        """What the estimator sees of these rows: their features before a column of ones."""
        z = self.z[rows]
        return torch.cat([z, z.new_ones(len(z), 1)], 1)

    def weights(self) -> Tensor:
        raise NotImplementedError

    def step(self, z: Tensor, y: Tensor, place: Tensor) -> Tensor:
        """One step of both players on a batch; returns V."""
        raise NotImplementedError

    def epoch(self, batch: int, generator: torch.Generator) -> float:
        """One pass over all rows; returns the mean of V over the batches."""
        order = torch.randperm(len(self.y), generator=generator)
        total = self.like.new_zeros(())
        for rows in torch.split(order, TOGETHER * batch):  # fetched together, so that a file is opened for many batches
            z, y, place = self.read(rows), self.y[rows], self.place[rows]
            for part in slices(len(y), batch):
                total += self.step(z[part], y[part], place[part])
        return float(total) * batch / len(self.y)

    def move_theta(self, z: Tensor, y: Tensor, w: Tensor, total: Tensor) -> Tensor:
        """Descent of theta on mean_B(w / mean(w) * ce), with the weights from before the step; returns ce, from before it too."""
        log_p = F.log_softmax(z @ self.theta, 1)
        ce = -log_p.gather(1, y[:, None]).squeeze(1)
        error = log_p.exp_()
        error.scatter_add_(1, y[:, None], error.new_full((len(y), 1), -1.0))
        error *= (w * (len(self.y) / len(y) / total))[:, None]
        self.speed.mul_(self.momentum).addmm_(z.T, error)
        self.theta.sub_(self.speed, alpha=self.lr_estimator)
        return ce

    def save(self, path: Path, epoch: int) -> None:
        checkpoint.save(path, {name: getattr(self, name) for name in (*self.stored, "theta", "speed")}, {"epoch": epoch})

    def load(self, path: Path, epochs: int) -> int:
        if not path.is_file():
            return 0
        tensors, facts = checkpoint.read(path)
        names = {*self.stored, "theta", "speed"}
        if set(tensors) in ({"omega", "theta", "speed"}, {"anchor", "clock", "theta", "speed"}) and set(tensors) != names:
            return 0  # of the other form, by an earlier version
        epoch: int | None = facts.get("epoch")
        own = {name: getattr(self, name) for name in names}
        fits = set(tensors) == names and all(
            tensors[name].shape == t.shape and tensors[name].dtype == t.dtype for name, t in own.items()
        )
        if not fits or type(epoch) is not int or not 0 < epoch < epochs:
            raise UserError(f"{path} is not the state of this repair (epoch {epoch} of {epochs}); remove it to start again")
        for name, tensor in tensors.items():
            setattr(self, name, tensor)
        progress.say(f"resuming at epoch {epoch}")
        return epoch


class Game(Players):
    """Every row moves in every step. Weights are a matrix with one class per line: a number per class reaches its rows at once.

    A class with many rows has several lines of equal length, padded with omega = -inf, that is w = 0, which no step changes.
    """

    stored = ("omega",)

    def __init__(self, z: Rows | Scaled, y: Tensor, lr_estimator: float, momentum: float, lr_weights: float, seed: int) -> None:
        super().__init__(z, y, lr_estimator, momentum, lr_weights, seed)
        length = -(-len(y) // self.classes)
        order = y.argsort(stable=True)
        counts = y.bincount(minlength=self.classes)
        lines = -(-counts // length)  # of each class
        self.line_class = torch.repeat_interleave(torch.arange(self.classes), lines)
        first_line = lines.cumsum(0) - lines
        rank = torch.arange(len(y)) - (counts.cumsum(0) - counts)[y[order]]  # position of a row within its class
        self.place = torch.empty_like(y)  # position of each row in the flat matrix
        self.place[order] = first_line[y[order]] * length + rank
        self.omega = self.like.new_full((len(self.line_class) * length,), -torch.inf)
        self.omega[self.place] = 0
        self.omega = self.omega.view(-1, length)
        self.w = self.omega.sigmoid()
        self.slope = torch.empty_like(self.w)

    def weights(self) -> Tensor:
        return self.w.view(-1)[self.place].clone()

    def step(self, z: Tensor, y: Tensor, place: Tensor) -> Tensor:
        flat = self.w.view(-1)
        w = flat[place]
        by_class = w.new_zeros(self.classes).index_add_(0, self.line_class, self.w.sum(1))  # S_c
        total = by_class.sum()  # S
        ce, surprise = self.move_theta(z, y, w, total), -(by_class / total).log()[y]
        risk, entropy = w @ ce, w @ surprise  # A, E
        # omega: one number per class for every row, and a part for the batch.
        ratio = risk / entropy.square()
        in_batch = w.new_zeros(self.classes).index_add_(0, y, w)  # W_c
        per_class = ratio * (in_batch.sum() / total - in_batch / by_class)
        torch.addcmul(self.w, self.w, self.w, value=-1, out=self.slope)  # w (1 - w)
        own = (ratio * surprise - ce / entropy) * self.slope.view(-1)[place]
        self.omega.addcmul_(self.slope, per_class[self.line_class][:, None], value=-self.lr_weights)
        self.omega.view(-1).index_add_(0, place, own, alpha=-self.lr_weights)
        torch.sigmoid(self.omega, out=self.w)
        return 1 - risk / entropy

    def load(self, path: Path, epochs: int) -> int:
        epoch = super().load(path, epochs)
        self.w = self.omega.sigmoid()
        return epoch


class LargeGame(Players):
    """Rows outside the batch are not touched: G of a row's omega is `anchor` of the row plus `clock` of its class."""

    stored = ("anchor", "clock")

    def __init__(self, z: Rows | Scaled, y: Tensor, lr_estimator: float, momentum: float, lr_weights: float, seed: int) -> None:
        super().__init__(z, y, lr_estimator, momentum, lr_weights, seed)
        self.place = torch.arange(len(y))
        self.anchor = torch.zeros(len(y), dtype=torch.float64)
        self.clock = torch.zeros(self.classes, dtype=torch.float64)
        self._sum()

    def weights(self) -> Tensor:
        parts = torch.split(self.place, 1_000_000)
        return torch.cat([omega_at(self.anchor[p] + self.clock[self.y[p]]).sigmoid().to(self.theta) for p in parts])

    def epoch(self, batch: int, generator: torch.Generator) -> float:
        self._sum()
        return super().epoch(batch, generator)

    def _sum(self) -> None:
        """By class: the sum of w, and that of (w (1 - w))^2, with which the former changes as the clock moves."""
        self.by_class, self.squares = torch.zeros_like(self.clock), torch.zeros_like(self.clock)
        for p in torch.split(self.place, 1_000_000):
            w = omega_at(self.anchor[p] + self.clock[self.y[p]]).sigmoid()
            self.by_class.index_add_(0, self.y[p], w)
            self.squares.index_add_(0, self.y[p], (w * (1 - w)).square())

    def step(self, z: Tensor, y: Tensor, place: Tensor) -> Tensor:
        omega = omega_at(self.anchor[place] + self.clock[y])
        w = omega.sigmoid()
        slope = w * (1 - w)
        by_class, total = self.by_class, self.by_class.sum()
        ce = self.move_theta(z, y, w.to(z), total.to(z)).double()
        surprise = -(by_class / total).log()[y]
        risk, entropy = w @ ce, w @ surprise  # A, E
        ratio = risk / entropy.square()
        in_batch = torch.zeros_like(by_class).index_add_(0, y, w)  # W_c
        shift = -self.lr_weights * ratio * (in_batch.sum() / total - in_batch / by_class)
        self.clock += shift
        moved = shift[y]
        omega = (omega + slope * (moved - self.lr_weights * (ratio * surprise - ce / entropy))).clamp(-FROZEN, FROZEN)
        self.anchor[place] = flow_time(omega) - self.clock[y]
        new = omega.sigmoid()
        new_slope = new * (1 - new)
        # The rows of the batch are in the sums too: what the flow does to them is taken out again.
        self.by_class = by_class + shift * self.squares
        self.by_class.index_add_(0, y, new - w - moved * slope.square())
        self.squares.index_add_(0, y, new_slope.square() - slope.square())
        return (1 - risk / entropy).to(z)


FROZEN = 60.0  # |omega| above which w (1 - w) is 0 to rounding


def flow_time(omega: Tensor) -> Tensor:
    r"""G: when a row that follows its class arrives at omega.

    .. math::  G(\omega) = \int_0^\omega \frac{\mathrm{d}u}{\sigma(u) (1 - \sigma(u))} = 2 \omega + e^\omega - e^{-\omega}
    """
    return 2 * (omega + omega.sinh())


def omega_at(time: Tensor) -> Tensor:
    """The inverse of `flow_time`, by Newton's method.

    >>> omega_at(flow_time(torch.tensor([-8.0, 0.0, 0.3], dtype=torch.float64)))
    tensor([-8.0000,  0.0000,  0.3000], dtype=torch.float64)
    """
    half = 0.5 * time
    omega = (half - (0.5 * half).asinh()).asinh()
    for _ in range(3):
        omega = omega - (omega + omega.sinh() - half) / (1 + omega.cosh())
    return omega
