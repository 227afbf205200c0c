"""The verb `dependency`: how much a model lives on a representation that the data's classes can be read from.

REPAIR weighs the rows against the representation. The model is trained on the rows with the largest weights, at several keep rates, and
on as many rows at random, each judged on what is kept of the judged split. Beta (the card of measure.bias_dependency) is the mean
difference. For clips, the temporal structure score of each model, on the test split, is given too.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from unskew.data._dataset import DataSet
from unskew.data._sources import load
from unskew.engine import check_device
from unskew.errors import UserError
from unskew.evaluate.predict import predict
from unskew.evaluate.run import trained_method
from unskew.evaluate.temporal import temporal_structure
from unskew.files import write_json
from unskew.measure.bias_dependency import beta_of, check_rates, subsets
from unskew.records import Table
from unskew.repair._run import repair
from unskew.representations._base import spec
from unskew.stages import check_training
from unskew.train.run import train
from unskew.verbs import callable_module

OWN = ("weights", "random-", "repaired-", "dependency.json")  # what its folder holds


def dependency(
    source: Any,
    *,
    phi: str,
    out: str | Path,
    model: str = "",
    method: str = "erm",
    rates: Sequence[float] = (0.25, 0.5, 0.75),
    split: str = "",
    seed: int = 0,
    device: str = "auto",
    settings: dict[str, Any] | None = None,
    command: str = "",
) -> dict[str, Any]:
    """Beta of `model` for the representation `phi`; runs and weights stay in the folder `out`, and given again it goes on there.

    Settings of the repair begin with `repair.`; the rest is training's. `split` is what accuracy is taken on: by default test where
    the repair weighs it, being drawn as the training rows are, else val.
    """
    if not phi:
        raise UserError("dependency: name with --phi what the shortcut is read from, such as color or frame")
    check_rates(rates)
    out, given = Path(out), dict(settings or {})
    if out.is_file() or (out.is_dir() and any(not p.name.strip(".").startswith(OWN) for p in out.iterdir())):
        raise UserError(f"{out} exists and is no dependency; choose another --out")
    weighing = {k.removeprefix("repair."): v for k, v in given.items() if k.startswith("repair.")}
    training = {k: v for k, v in given.items() if not k.startswith("repair.")}
    reading = {k: v for k, v in training.items() if k.startswith("data.") and k != "data.augment"}
    if not set(weighing).isdisjoint({"phi", "strategy"}):
        raise UserError("dependency: the repair's phi and strategy are its own; name the representation with --phi")
    spec(phi)
    check_training(method, model, training, one_stage=True)  # what is wrong is told before the work
    table = repair(
        source, "repair", out=out / "weights.parquet", seed=seed, device=device, command=command,
        settings=reading | weighing | {"phi": phi, "strategy": "weights"},
    ).table  # fmt: skip
    data = load(source, **{k.removeprefix("data."): v for k, v in reading.items()})
    readable = torch.isfinite(table.column("score"))  # rows that cannot be read have no score
    weighed, score = table.index[readable], table.column("score")[readable]
    split = split or ("test" if _weighed(data, table, "test") else "val")
    if split not in data.splits or not _weighed(data, table, split):
        raise UserError(
            f"dependency: the repair gives the {split} split no weights; choose a split that is drawn as the training rows are"
        )
    right: dict[tuple[str, float], float] = {}
    temporal: dict[str, dict[str, Any]] = {"random": {}, "repaired": {}}
    for (kind, rate), places in subsets(score, data.y[weighed], rates=rates, seed=seed).items():
        kept = weighed[places]
        rows, judged = (kept[data.split[kept] == data.splits.index(name)] for name in ("train", split))
        if not len(rows) or not len(judged):
            raise UserError(
                f"dependency: keeping {rate:g} of the rows leaves {len(rows)} to train on and {len(judged)} of {split} to judge"
            )
        chosen = Table(
            pl.DataFrame({"index": rows.numpy(), "weight": np.ones(len(rows))}), {"name": kind, "fingerprint": data.fingerprint}
        )
        run = train(
            source, method, model=model, out=out / f"{kind}-{rate:g}", weights=chosen, seed=seed, device=device,
            settings=training, command=command,
        )  # fmt: skip
        trained = trained_method(run).to(check_device(device))
        index, logits = predict(trained, data, judged)
        right[kind, rate] = float((logits.argmax(1) == data.y[index]).double().mean())
        if len(data.shape) == 4:
            temporal[kind][f"{rate:g}"] = temporal_structure(trained, data, data.rows("test"))
    found = beta_of(right)
    result = {
        "source": data.source or data.name, "phi": phi, "model": model, "method": method, "split": split, "seed": seed,
        "beta": found.beta, "rates": found.rates, "random": found.random, "repaired": found.repaired,
        **({"temporal": temporal} if len(data.shape) == 4 else {}), "command": command,
    }  # fmt: skip
    write_json(out / "dependency.json", result)
    return result


def _weighed(data: DataSet, table: Table, split: str) -> bool:
    return data.has(split) and bool(torch.isin(data.rows(split), table.index).all())


callable_module(__name__, dependency)  # unskew.dependency(...)
