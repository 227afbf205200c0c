"""The weights of a training, from a repair's table: whose they are, and whether they act on the loss or on sampling."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.workplace import digest
from unskew.data.dataset import DataSet
from unskew.records import Table

WORDS = {"sampler": "chance"}  # the word of version 0.1


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
        """The number that identified a table in version 0.1; two tables may share it."""
        return float((self.value * torch.arange(1, len(self.value) + 1)).sum())


def read_weights(given: str | Path | Table | None, data: DataSet, asked: str) -> Weights | None:
    """The weights of a table for this data set; `asked` is the setting train.weights."""
    if given is None:
        return None
    table = given if isinstance(given, Table) else Table.read(Path(given), ("index", "weight"))
    made_for = table.made_by.get("fingerprint")
    if made_for and not data.made(table.made_by):
        raise UserError(
            f"the weights were made for another source: its fingerprint is {made_for[:12]}…, "
            f"the fingerprint of {data.name} is {data.fingerprint[:12]}…"
        )
    index, column = table.index, table.column("weight").double()
    if len(index) and (int(index.min()) < 0 or int(index.max()) >= len(data)):
        wrong = int(index.min()) if int(index.min()) < 0 else int(index.max())
        raise UserError(f"the weights have a row for sample {wrong}, but {data.name} has samples 0 to {len(data) - 1}")
    if not bool(torch.isfinite(column).all()) or bool((column < 0).any()):
        raise UserError("weights must be finite and at least 0")
    weight = torch.zeros(len(data), dtype=torch.float64)
    weight[index] = column
    use = _use(str(table.made_by.get("use", "")), WORDS.get(asked, asked))
    return Weights((weight > 0).double() if use == "keep" else weight, use)


def _use(stated: str, asked: str) -> str:
    """The use that the table states; if it states none, the one the user asks for."""
    if stated not in ("", "loss", "chance", "keep"):
        raise UserError(f"the table of weights has use={stated}: must be loss, chance or keep")
    if stated and asked not in ("auto", stated):
        raise UserError(
            f"the table of weights has use={stated}, but train.weights={asked} asks for {asked}; leave out train.weights"
        )
    return stated or ("loss" if asked == "auto" else asked)
