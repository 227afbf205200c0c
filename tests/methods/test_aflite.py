"""AFLite as a method: the rows kept, by a representation and by a network's features."""

import torch

import unskew as package
from unskew.records import Run, Table

SOURCE = "colored-mnist:base=digits,ratio=0.95"
SHORT = {"train.steps": "12", "train.batch": "64"}


def test_aflite_keeps_some_rows_and_trains_on_those(tmp_path):
    settings = SHORT | {"phi": "color:kind=max", "models": "8", "size": "0.5", "tau": "0.6"}
    run = package.train(SOURCE, "aflite", model="convnet1", out=tmp_path / "run", settings=settings)
    kept = int((Table.read(tmp_path / "run-kept.parquet").column("weight") > 0).sum())
    assert 0.5 * 1296 <= kept < 1296
    assert run.finished
    network = package.train(
        SOURCE, "aflite", model="convnet1", out=tmp_path / "net", settings=SHORT | {"models": "8", "epochs": "1", "tau": "0.3"}
    )
    assert Run(tmp_path / "net-features").finished
    assert network.finished
    known, table = Table.read(tmp_path / "net-features" / "trained.parquet").index, Table.read(tmp_path / "net-kept.parquet")
    assert len(known) == round(0.1 * 1296)  # the network that describes the rows has not seen the others
    assert float(table.column("weight")[torch.isin(table.index, known)].sum()) == 0
    assert len(table) == 1297  # every row is in the table
