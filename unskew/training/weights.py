"""A repair's table as weights of a training: who they belong to, and whether they act on the loss or on the draws."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.workplace import digest
from unskew.data.dataset import DataSet
from unskew.records import Table

WORDS = {"sampler": "chance"}  # what version 0.1 called it


@dataclass(frozen=True)
class Weights:
    """(N,) weight by sample id, 0 where the table has no row, and how it is used: loss, chance or keep."""

    value: Tensor
    use: str

    @property
    def digest(self) -> str:
        """Identity of the table: SHA-256 of its weights and of how they are used."""
        return digest(self.value.contiguous().numpy().tobytes(), self.use)

    @property
    def former_digest(self) -> float:
        """The number by which version 0.1 told tables apart; two tables may share it."""
        return float((self.value * torch.arange(1, len(self.value) + 1)).sum())


def read_weights(given: str | Path | Table | None, data: DataSet, asked: str) -> Weights | None:
    """The weights of a table for this data set; `asked` is the setting train.weights."""
    if given is None:
        return None
    table = given if isinstance(given, Table) else Table.read(Path(given))
    made_for = table.made_by.get("fingerprint")
    if made_for and not data.is_source(made_for):
        raise UserError(
            f"the weights were made for another source: their fingerprint is {made_for[:12]}…, this one's {data.fingerprint[:12]}…"
        )
    index, column = table.index, table.column("weight").double()
    if len(index) and (int(index.min()) < 0 or int(index.max()) >= len(data)):
        raise UserError(f"the weights name sample {int(index.max())}, but {data.name} has {len(data)} rows")
    if not bool(torch.isfinite(column).all()) or bool((column < 0).any()):
        raise UserError("weights must be finite and not negative")
    weight = torch.zeros(len(data), dtype=torch.float64)
    weight[index] = column
    use = _use(str(table.made_by.get("use", "")), WORDS.get(asked, asked))
    return Weights((weight > 0).double() if use == "keep" else weight, use)


def _use(stated: str, asked: str) -> str:
    """What the table states; what the user asks for where it states nothing, or the same."""
    if stated not in ("", "loss", "chance", "keep"):
        raise UserError(f"the weights say use={stated}: must be loss, chance or keep")
    if stated and asked not in ("auto", stated):
        raise UserError(
            f"the table says that its weights are used as {stated}, and train.weights={asked} asks for {asked}; leave out train.weights"
        )
    return stated or ("loss" if asked == "auto" else asked)
