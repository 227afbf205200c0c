"""What the verb `repair` hands to a repair: features, logits and networks, computed, trained or read from the cache."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from unskew.core.errors import UserError
from unskew.core.files import dumps
from unskew.core.matrix import Rows, beside
from unskew.core.settings import Settings
from unskew.core.workplace import digest
from unskew.data.dataset import DataSet
from unskew.features import Spec, compute_many, spec
from unskew.methods._contract import Method
from unskew.parts.nuisance import leading_nuisance
from unskew.records import Run
from unskew.representations import _contract as representations
from unskew.training.finished import trained_method
from unskew.training.frozen import is_frozen, with_features
from unskew.training.predict import most_likely, predict
from unskew.training.reference import reference
from unskew.training.run import train_once


@dataclass
class Workbench:
    """Features and networks for a repair (repairs._contract.Work)."""

    data: DataSet
    rows: Tensor
    seed: int
    out: Path
    identity: Mapping[str, Any]
    given: Settings
    model: str
    device: str
    used: str = field(default="", init=False)  # the run whose network was used
    _named: list[str] = field(default_factory=list, init=False)

    @property
    def state(self) -> Path:
        tag = digest(dumps(dict(self.identity)))[:8]
        return self.out.absolute().with_name(f".{self.out.name}.{tag}.state")

    @property
    def workers(self) -> int:
        return 0 if self.data.reading is None else int(self.data.reading.workers)

    def default_features(self) -> list[str]:
        """What an audit of these rows would name first: the simplest nuisance that reads most of the class."""
        if not self._named:
            fallback = {3: "color:kind=mean", 1: "input"}.get(len(self.data.shape), "frame")
            self._named = [leading_nuisance(self.data, self.rows, self.seed, self.workers) or fallback]
        return self._named

    def features(self, names: Sequence[str]) -> tuple[Tensor, Rows]:
        index, blocks = compute_many(self.data, [spec(n) for n in names], self.rows, workers=self.workers)
        return index, beside([blocks[n] for n in names])

    def network(self, run: str, method: str) -> nn.Module:
        return self._trained(run, method).model

    def seen_by(self, network: nn.Module) -> DataSet:
        return with_features(self.data, network, self.rows, self.workers) if is_frozen(network) else self.data

    def reference(self, steps: int, folds: int) -> tuple[Tensor, Tensor, Tensor | None]:
        return reference(
            self.data, self.rows, self.out.absolute(), steps=steps, folds=folds, seed=self.seed, device=self.device,
            model=self.model, settings=self.given.training().shared().dotted(), workers=self.workers,
        )  # fmt: skip

    def layer(self, run: str, method: str) -> tuple[Tensor, Rows]:
        network = self._trained(run, method).model
        if is_frozen(network):
            data = self.seen_by(network)
            x, there = data.inputs.rows(self.rows)
            with torch.no_grad():
                return self.rows[there], network.features(x[there])
        kind = representations.load("layer")
        one = Spec("layer", kind, kind.config(run=self.used))  # not as text: a path may hold a comma
        index, blocks = compute_many(self.data, [one], self.rows, workers=self.workers)
        return index, blocks["layer"]

    def opinion(self, run: str, method: str) -> tuple[Tensor, Tensor]:
        return predict(self._trained(run, method), self.data, self.rows, workers=self.workers, summary=most_likely)

    def logits(self, run: str, method: str) -> tuple[Tensor, Tensor]:
        return predict(self._trained(run, method), self.data, self.rows, workers=self.workers)

    def _trained(self, run: str, method: str) -> Method:
        """The method of the named run; without a name, one is trained and kept beside the table."""
        if not run:
            place = self.out.absolute().with_name(f"{self.out.stem}-model")
            trained = train_once(
                self.data, method, model=self.model, out=place, seed=self.seed, device=self.device,
                settings=self.given.training().shared().dotted(), command=f"the {method} model of {self.out.name}",
            )  # fmt: skip
            run = str(trained.path)
        self.used = run
        network = trained_method(Run(Path(run)))
        facts = network.facts
        if tuple(facts.shape) != self.data.shape or facts.num_classes != len(self.data.classes):
            raise UserError(
                f"{run} was trained for inputs of shape {tuple(facts.shape)} and {facts.num_classes} classes; "
                f"{self.data.name} has {self.data.shape} and {len(self.data.classes)}"
            )
        return network
