"""What a file in this folder defines: a training method of one or several stages.

A method of one stage is a subclass of `Method`. A method of several stages is a `Config` and a function `train(stage, cfg)`, a
short plan made of the stage's `run`, `repair` and `predict`. Either way the file name is the method's name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from unskew.core import config, registry
from unskew.core.errors import UserError
from unskew.data.dataset import DataSet
from unskew.records import Batch, Facts, Run, Table, Update


@dataclass(frozen=True)
class Problem:
    """What a method that is solved rather than stepped works on: its training rows, and the features of its last layer."""

    data: DataSet  # the source's data set: inputs, labels, and the bias if the method sees it
    rows: Tensor  # (n,) sample ids
    features: Tensor  # (n, D) what the network's last layer reads
    weight: Tensor | None  # (n,) of a table
    seed: int
    workers: int


class Method(nn.Module):
    """A training method: what is minimised on a batch, and how to predict afterwards.

    A method owns its networks and all its state, as submodules and as buffers sized in `__init__`. Device moves, checkpoints,
    resuming and several processes then need no extra code.
    """

    Config: ClassVar[type]  # the method's hyperparameters, defaults from the paper
    sees: frozenset[str] = frozenset()  # labels beyond y it may read while training: {"bias"}
    parts: ClassVar[tuple[str, ...]] = ()  # of an alternating method: `loss_p` has the terms of part p
    multi_label: ClassVar[bool] = False  # whether it can train on rows with several labels

    solved: ClassVar[bool] = False  # true: `solve` sets the weights, without steps

    age: Tensor  # () updates done so far, for warm-ups and schedules; survives a resume

    def __init__(self, cfg: Any, facts: Facts, make_model: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.cfg = cfg
        self.facts = facts
        self.sees = self.labels(cfg)
        if facts.multi_label and not self.multi_label:
            name = type(self).__module__.rpartition(".")[2]
            raise UserError(f"method {name!r} needs one class per row, but this task has several labels per row")
        self.model = make_model()
        self.register_buffer("age", torch.zeros((), dtype=torch.long))

    @classmethod
    def labels(cls, cfg: Any) -> frozenset[str]:
        """The labels it sees with these settings: `sees`, or fewer."""
        return cls.sees

    @classmethod
    def settled(cls, cfg: Any, data: DataSet) -> Any:
        """The settings with every `auto` decided for this data set."""
        return cfg

    @classmethod
    def reads_inputs(cls, cfg: Any) -> bool:
        """Whether it works on the pixels themselves, so that features of a frozen network, computed once, will not do."""
        return False

    @classmethod
    def training_data(cls, cfg: Any, data: DataSet) -> DataSet:
        """The data set to train on; a method that adds rows of another source does so here."""
        return data

    @classmethod
    def check(cls, cfg: Any, data: DataSet) -> tuple[str, ...]:
        """Raise if the method cannot use the data; return notes on how it uses them."""
        return ()

    def begin(self, steps: int, steps_per_epoch: int) -> None:
        """Called with the length of the training before the first step, and again when it resumes."""

    @property
    def prelude(self) -> int:
        """Steps at the start in which the final network does not learn yet; no weights are selected before."""
        return 0

    def solve(self, problem: Problem) -> dict[str, float]:
        """Set the weights of the network's last layer to their optimum; returns figures for the log. Only if `solved`."""
        raise NotImplementedError(f"{type(self).__name__} is trained by steps")

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Named scalar terms. Their sum is minimised; each is logged under its name."""
        raise NotImplementedError(f"{type(self).__name__} defines no loss")

    def predict(self, x: Tensor) -> Tensor:
        """Logits, (B, C)."""
        logits: Tensor = self.model(x)
        return logits

    def parameter_sets(self) -> dict[str, list[nn.Parameter]]:
        """Parameters by the optimiser that moves them. One optimiser for all, unless a method alternates."""
        return {"main": [p for p in self.parameters() if p.requires_grad]}

    def step(self, batch: Batch, update: Update) -> dict[str, Tensor]:
        """One step. Override only for alternating (min-max) optimisation, as a sequence of updates."""
        return update(batch)

    def forward(self, columns: dict[str, Tensor], part: str = "") -> dict[str, Tensor]:
        # DDP exchanges gradients around `forward`, so it wraps the whole method.
        terms: dict[str, Tensor] = getattr(self, f"loss_{part}" if part else "loss")(Batch(**columns))
        return terms


class Budget(Protocol):
    """What a plan may know about the requested training."""

    @property
    def epochs(self) -> float: ...
    @property
    def steps(self) -> int | None: ...
    @property
    def batch(self) -> int: ...
    @property
    def weights(self) -> str: ...


@dataclass(frozen=True)
class Advice:
    """A method that a trial supports, or erm, with the reason."""

    method: str
    settings: Mapping[str, Any]
    reason: str
    why: Mapping[str, Any]  # the trial's figures


class Stage(Protocol):
    """Passed to a plan: the request, and the verbs it may use. A plan imports no verb."""

    out: Path  # folder of the final run
    seed: int
    given: Mapping[str, Any]  # settings of its runs, as the user gave them

    @property
    def frozen(self) -> bool:
        """Whether its runs learn only the last layer of a frozen network, whose features are computed once."""
        ...

    @property
    def budget(self) -> Budget:
        """The requested training."""
        ...

    def data(self) -> DataSet:
        """The source's data set."""
        ...

    def beside(self, name: str) -> Path:
        """The path of an intermediate result: OUT-name."""
        ...

    def run(self, place: Path, method: str, settings: Mapping[str, Any] | None = None, weights: Table | None = None) -> Run:
        """Train one part of the method into the folder `place`."""
        ...

    def train(self, place: Path, method: str, settings: Mapping[str, Any]) -> Run:
        """Train a whole method, of one stage or several, into the folder `place`."""
        ...

    def advice(self) -> Advice:
        """The method that a quick trial on the training rows supports."""
        ...

    def repair(self, place: Path, name: str, settings: Mapping[str, Any]) -> Table:
        """Write the table `place` with a repair."""
        ...

    def predict(self, run: Run, split: str) -> tuple[Tensor, Tensor]:
        """(ids, logits) of a finished run on a split of the source."""
        ...

    def buffer(self, run: Run, name: str) -> Tensor:
        """A buffer of a finished run's method, such as the weights of a game."""
        ...


@dataclass(frozen=True)
class TrainingMethod:
    """A loaded file of this folder; it defines either `method` or `train`."""

    name: str
    method: type[Method] | None = field(default=None, metadata={"subclass_of": Method})
    config: type | None = None
    train: Callable[[Stage, Any], Run] | None = None
    weighs_errors: bool = False  # favours rows that a biased model gets wrong; where there is no shortcut, those are merely hard

    def __post_init__(self) -> None:
        if (self.method is None) == (self.train is None):
            raise UserError("a method must be one subclass of Method, or a Config and a function train(stage, cfg)")
        if self.method is not None:
            object.__setattr__(self, "config", self.method.Config)
        if self.config is None:
            raise UserError("a method of several stages needs a Config")

    @property
    def staged(self) -> bool:
        return self.train is not None

    def settings(self, given: Mapping[str, Any]) -> Any:
        """The method's settings, checked."""
        assert self.config is not None  # checked on construction
        return config.build(self.config, dict(given), "method.")


def load(name: str) -> TrainingMethod:
    """The method of this name; a dotted name is a user's module."""
    return registry.load("methods", name, TrainingMethod)


def method_class(name: str) -> type[Method]:
    """The class of a method of one stage."""
    method = load(name).method
    if method is None:
        raise UserError(f"method {name!r} has several stages; choose a method of one stage here")
    return method
