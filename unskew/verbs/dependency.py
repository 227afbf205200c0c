"""The verb `dependency`: how much a model depends on a representation from which the classes can be read.

REPAIR weights the rows against the representation. At several keep rates, the model is trained on the rows with the largest
weights and on as many random rows, and each is judged on the kept rows of the judged split. Beta (see the card of the measure
`bias_dependency`) is the mean difference. For clips, the temporal structure score of each model on the test split is given too.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from unskew.core.engine import check_device
from unskew.core.errors import UserError
from unskew.core.files import read_json, write_json
from unskew.core.settings import Settings
from unskew.core.workplace import alone, check_place, claim, identity
from unskew.data.dataset import DataSet
from unskew.data.sources import load
from unskew.evaluation.temporal import temporal_structure
from unskew.features import spec
from unskew.measure.bias_dependency import beta_of, check_rates, subsets
from unskew.records import Dependency, Estimate, Table
from unskew.training.finished import trained_method
from unskew.training.predict import predict
from unskew.training.run import train_once
from unskew.training.settings import check_training
from unskew.verbs.repair import repair

OWN = ("weights", "random-", "repaired-", "dependency.json")  # what its folder holds


def dependency(
    source: Any,
    *,
    phi: str,
    out: str | Path = "dependency",
    model: str = "",
    method: str = "erm",
    rates: Sequence[float] = (0.25, 0.5, 0.75),
    split: str = "",
    seed: int = 0,
    device: str = "auto",
    settings: Mapping[str, Any] | None = None,
    command: str = "",
) -> Dependency:
    """Beta of `model` for the representation `phi`; runs and weights stay in the folder `out`. Called again, it resumes."""
    if not phi:
        raise UserError("dependency needs --phi, the representation to read the shortcut from, such as color or frame")
    check_rates(rates)
    out = Path(out)
    check_place(out, "the result of dependency", OWN)
    weighing, training = Settings.of(settings).under("repair")
    if not set(weighing.own).isdisjoint({"phi", "strategy"}):
        raise UserError("dependency sets the repair's phi and strategy itself; name the representation with --phi")
    spec(phi)
    check_training(method, model, training.dotted(), one_stage=True)
    data = load(source, **training.reading()["data"])
    asked = identity(phi=phi, model=model, method=method, seed=seed, rates=rates, fingerprint=data.fingerprint)
    with alone(out, "dependency"):
        _check_claim(out, asked)
        table = repair(
            source, "repair", out=out / "weights.parquet", seed=seed, device=device, command=command,
            settings=training.reading().dotted() | weighing.dotted() | {"phi": phi, "strategy": "weights"},
        ).table  # fmt: skip
        readable = torch.isfinite(table.column("score"))  # rows that cannot be read have no score
        weighed, score = table.index[readable], table.column("score")[readable]
        split = _judged_split(data, table, split)
        right: dict[tuple[str, float], float] = {}
        temporal: dict[str, dict[str, Estimate]] = {"random": {}, "repaired": {}}
        for (kind, rate), places in subsets(score, data.y[weighed], rates=rates, seed=seed).items():
            chosen, judged = _kept(data, weighed[places], kind, rate, split)
            run = train_once(
                source, method, model=model, out=out / f"{kind}-{rate:g}", weights=chosen, seed=seed, device=device,
                settings=training.dotted(), command=command,
            )  # fmt: skip
            trained = trained_method(run).to(check_device(device))
            index, logits = predict(trained, data, judged)
            right[kind, rate] = float((logits.argmax(1) == data.y[index]).double().mean())
            if len(data.shape) == 4:
                temporal[kind][f"{rate:g}"] = temporal_structure(trained, data, data.rows("test"))
        dependence = beta_of(right)
        result = Dependency(
            source=data.source or data.name, phi=phi, model=model, method=method, split=split, seed=seed, beta=dependence.beta,
            rates=dependence.rates, random=dependence.random, repaired=dependence.repaired,
            temporal=temporal if len(data.shape) == 4 else None, command=command,
        )  # fmt: skip
        write_json(out / "dependency.json", {**result.json(), "identity": asked})
    return result


def _check_claim(out: Path, asked: Mapping[str, Any]) -> None:
    """Refuse a folder with the result of another request. Weights and runs are checked one by one as they are made."""
    path = out / "dependency.json"
    there = read_json(path, "the result of dependency").get("identity") if path.is_file() else None
    if there is not None and not isinstance(there, dict):
        raise UserError(f"{path} is damaged or not the result of dependency: its identity is not a table; choose another --out")
    claim(out, "dependency", there, asked)


def _judged_split(data: DataSet, table: Table, asked: str) -> str:
    """The split to measure accuracy on: by default test if the repair weights it (drawn like the training rows), else val."""
    split = asked or ("test" if _weighed(data, table, "test") else "val")
    if split not in data.splits or not _weighed(data, table, split):
        raise UserError(
            f"dependency: the repair gives the {split} split no weights; choose a split that is drawn like the training rows"
        )
    return split


def _kept(data: DataSet, kept: Tensor, kind: str, rate: float, split: str) -> tuple[Table, Tensor]:
    """The training rows among those kept, as a table, and the rows to judge."""
    rows, judged = (kept[data.split[kept] == data.splits.index(name)] for name in ("train", split))
    if not len(rows) or not len(judged):
        raise UserError(
            f"dependency: keeping {rate:g} of the rows leaves {len(rows)} to train on and {len(judged)} of {split} to judge; "
            "raise --rates"
        )
    frame = pl.DataFrame({"index": rows.numpy(), "weight": np.ones(len(rows))})
    return Table(frame, {"name": kind, "fingerprint": data.fingerprint, "use": "keep"}), judged


def _weighed(data: DataSet, table: Table, split: str) -> bool:
    return data.has(split) and bool(torch.isin(data.rows(split), table.index).all())
