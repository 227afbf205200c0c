"""Label noise: a share of the labels flipped to another class, regardless of the bias (PGD, section 5)."""

import polars as pl
import torch

from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.data.dataset import DataSet


def with_noise(data: DataSet, share: float, seed: int) -> DataSet:
    """Flip round(share * n) training labels, uniformly to one of the other classes; `clean_label` keeps the truth.

    The same share of validation labels is flipped, since a real validation set would be as noisy; test labels never are.
    """
    if not 0 <= share < 1:
        raise UserError(f"noise={share}: must lie in [0, 1)")
    if share == 0:
        return data
    if data.multi_label:
        raise UserError("noise needs one class per row, but this task has several labels per row")
    y = data.y.clone()
    for name in ("train", "val"):
        if not data.has(name):
            continue
        rows = data.rows(name)
        generator = stream(seed, "noise", name)
        chosen = rows[torch.randperm(len(rows), generator=generator)[: round(share * len(rows))]]
        step = torch.randint(1, len(data.classes), (len(chosen),), generator=generator)
        y[chosen] = (y[chosen] + step) % len(data.classes)
    clean = pl.Series("clean_label", data.y.numpy())
    columns = data.columns.with_columns(clean) if data.columns.width else pl.DataFrame([clean])
    return data.derived(
        f" noise {share} {seed}",
        y=y,
        columns=columns,
        notes=(*data.notes, f"{share:.1%} of the train and val labels flipped to another class, seed {seed}"),
    )
