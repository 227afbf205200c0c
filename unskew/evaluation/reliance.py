r"""reliance: what the run's answers depend on: colour, border, centre, detail, arrangement, order of frames.

.. math::  U_\phi = P\big(f(x + \epsilon_\phi) = f(x)\big) - P\big(f(x_{\setminus \phi}) = f(x)\big)

phi is taken away from the judged rows and the answers are compared with those after a random change of the same energy. At most
`reliance_rows` rows, each class in its share.

Source: see the card of the measure `reliance`.
Differs: see the card of the measure `reliance`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from unskew.core import progress
from unskew.core.errors import UserError
from unskew.data.dataset import DataSet
from unskew.evaluation._contract import Judged
from unskew.measure.reliance import ROWS, Reliance, compare, in_words
from unskew.measure.reliance import check as need_images
from unskew.methods._contract import Method
from unskew.stats.neutralise import changes_for
from unskew.stats.sample import stratified
from unskew.training.predict import predict

KEYS = ("reliance",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    reliance: bool = False  # take nuisances away
    reliance_rows: int = ROWS  # rows to ask about, at most

    def __post_init__(self) -> None:
        if self.reliance_rows < 20:
            raise UserError(f"reliance_rows={self.reliance_rows}: must be at least 20")


@dataclass(frozen=True, slots=True)
class Record:
    """What was taken away, the most used first."""

    kinds: dict[str, Reliance]
    rows: int

    def json(self) -> dict[str, Any]:
        kinds = {name: r.json() for name, r in self.kinds.items()}
        return {"reliance": {"kinds": kinds, "rows": self.rows, "sentence": in_words(self.kinds)}}


def check(data: DataSet, options: Options) -> None:
    need_images(data)


def ask(judged: Judged, options: Options) -> Record:
    return relied_on(
        judged.method, judged.data, judged.index, most=options.reliance_rows, seed=judged.seed, workers=judged.workers
    )  # fmt: skip


def relied_on(method: Method, data: DataSet, rows: Tensor, *, most: int = ROWS, seed: int = 0, workers: int = 0) -> Record:
    """What a trained method relies on, on these rows."""
    rows = rows[stratified(data.y[rows], most, seed=seed, least=1)]

    def answer(alter: Callable[[Tensor, Tensor], Tensor] | None) -> tuple[Tensor, Tensor]:
        index, logits = predict(method, data, rows, workers=workers, alter=alter)
        return index, logits.argmax(1)

    with progress.bar("taking away", 1 + 2 * len(changes_for(data.shape))) as advance:
        return Record(compare(answer, data, seed=seed, advance=advance), len(rows))
