"""The rows that a run was trained on, and its logits on them: what it learnt by heart shows beside what it learnt."""

from collections.abc import Callable

import torch
from torch import Tensor

from unskew.core.rng import stream
from unskew.data.dataset import DataSet
from unskew.methods._contract import Method
from unskew.records import Run, Table
from unskew.training.predict import predict, predictions_frame

MOST = 5000  # training rows to predict; of more, a random sample
LEAST = 2000  # if fewer rows are judged; else no more training rows than rows judged, so that the work at most doubles
ROWS = "trained.parquet"  # in a run's folder: the sample ids it was trained on, if a table of weights left some out


def trained_rows(run: Run, data: DataSet) -> tuple[Tensor, str]:
    """The ids of the training rows that the run used, and what is not known about them."""
    rows = data.rows("train")
    if data.unreadable:
        rows = rows[~torch.isin(rows, torch.tensor([k for k, _ in data.unreadable]))]
    if (run.path / ROWS).is_file():
        return rows[torch.isin(rows, Table.read(run.path / ROWS).index)], ""
    if run.config["weights"] is not None:  # version 0.2 did not keep the ids
        return rows, "all training rows: the run does not say which ones its table of weights left out"
    return rows, ""


def train_logits(run: Run, method: Callable[[], Method], data: DataSet, judged: int, workers: int) -> tuple[Table, int, str]:
    """Logits of training rows, how many the run was trained on, and a note. Kept in the run's folder for the next evaluation."""
    rows, note = trained_rows(run, data)
    wanted = min(len(rows), MOST, max(LEAST, judged))
    path = run.path / "predictions" / ROWS
    if path.is_file():
        there = Table.read(path)
        if data.is_source(there.made_by.get("fingerprint")) and there.made_by.get("sampled", 0) >= wanted:
            return there, len(rows), note
    seed = int(run.config["config"]["seed"])
    sample = rows[torch.randperm(len(rows), generator=stream(seed, "judge training rows"))[:wanted]].sort().values
    index, logits = predict(method(), data, sample, workers=workers)
    table = Table(
        predictions_frame(index, data.y[index], logits),
        {"name": "evaluate", "run": str(run.path), "fingerprint": data.fingerprint, "split": "train", "sampled": wanted},
    )
    table.save(path)
    return table, len(rows), note
