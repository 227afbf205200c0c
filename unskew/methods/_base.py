"""The contract every training method fulfils, and nothing else."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from unskew.data._dataset import DataSet
from unskew.errors import UserError
from unskew.records import Batch, Facts


class Update(Protocol):
    """What `Method.step` gets to work with: one descent on the loss terms of a part, by the named optimisers."""

    def __call__(self, batch: Batch, part: str = "", optimizers: Iterable[str] | None = None) -> dict[str, Tensor]: ...


class Method(nn.Module):
    """A training method: which numbers are minimised on a batch, and how to predict afterwards.

    A method owns its networks and all of its state, as submodules and as buffers sized in `__init__`. Device moves,
    checkpoints, resume and several processes then need no line of code of their own.
    """

    Config: ClassVar[type]  # the method's hyperparameters, defaults from the paper
    sees: frozenset[str] = frozenset()  # labels beyond y it may read while training: {"bias"}
    parts: ClassVar[tuple[str, ...]] = ()  # of an alternating method: part p has its terms in `loss_p`
    multi_label: ClassVar[bool] = False  # whether it can train on rows with several labels

    age: Tensor  # () updates done so far, for warm-ups and schedules; survives a resume

    def __init__(self, cfg: Any, facts: Facts, make_model: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.cfg = cfg
        self.facts = facts
        self.sees = self.labels(cfg)
        if facts.multi_label and not self.multi_label:
            raise UserError(
                f"method {type(self).__module__.rpartition('.')[2]!r} needs one class per row, this task has several labels"
            )
        self.model = make_model()
        self.register_buffer("age", torch.zeros((), dtype=torch.long))

    @classmethod
    def labels(cls, cfg: Any) -> frozenset[str]:
        """What it sees with these settings: `sees`, or less."""
        return cls.sees

    @classmethod
    def training_data(cls, cfg: Any, data: DataSet) -> DataSet:
        """The data set to train on; a method that adds rows of another source says so here."""
        return data

    @classmethod
    def check(cls, cfg: Any, data: DataSet) -> tuple[str, ...]:
        """Refuse data that the method cannot use; what a reader should know of how it uses them."""
        return ()

    def begin(self, steps: int, steps_per_epoch: int) -> None:
        """Called before the first step, and again after a resume: how long the training will be."""

    @property
    def prelude(self) -> int:
        """Steps at the start in which the network that is kept does not learn yet: nothing is selected before."""
        return 0

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
        # Several processes exchange gradients around `forward`, so it is the whole method that they wrap.
        terms: dict[str, Tensor] = getattr(self, f"loss_{part}" if part else "loss")(Batch(**columns))
        return terms
