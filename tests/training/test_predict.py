"""Parts of predictions, put together, are the predictions; in one process and in two."""

import os
import socket

import numpy as np
import pytest
import torch
import torch.distributed as td
import torch.multiprocessing as mp

import unskew as package
from unskew.records import Run
from unskew.training import predict as module
from unskew.training.finished import open_run
from unskew.training.predict import most_likely, predict, predict_parts


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    home = tmp_path_factory.mktemp("predict")
    rng = np.random.default_rng(0)
    np.savez(home / "d.npz", x=rng.standard_normal((300, 5)).astype(np.float32), y=rng.integers(0, 3, 300))
    return package.train(str(home / "d.npz"), out=home / "r", model="mlp", settings={"train.epochs": 1})


def by_hand(method, data, rows):
    method.eval()
    with torch.inference_mode():
        return torch.stack([method.predict((data.inputs.rows(torch.tensor([k]))[0]).float())[0] for k in rows.tolist()])


def test_parts_are_in_order_and_hold_every_row_once(run, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 7)
    monkeypatch.setattr(module, "TOGETHER", 3)
    method, data = open_run(run)
    rows = torch.arange(0, 300, 3)
    method.train()
    parts = []
    for index, logits in predict_parts(method, data, rows):
        assert not torch.is_inference_mode_enabled()  # whoever works between two parts is not in it
        parts.append((index, logits))
    assert [len(index) for index, _ in parts] == [21, 21, 21, 21, 16]
    assert torch.cat([index for index, _ in parts]).tolist() == rows.tolist()
    torch.testing.assert_close(torch.cat([said for _, said in parts]), by_hand(method, data, rows), rtol=1e-5, atol=1e-6)
    method.train()
    index, said = predict(method, data, rows.flip(0), summary=most_likely)
    assert method.training
    assert index.tolist() == rows.tolist()
    assert said.tolist() == by_hand(method, data, rows).argmax(1).tolist()


def test_no_rows_are_one_empty_part(run):
    method, data = open_run(run)
    ((index, logits),) = predict_parts(method, data, torch.zeros(0, dtype=torch.long))
    assert (len(index), logits.shape) == (0, (0, 3))


def _worker(rank, port, path, out):
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    td.init_process_group("gloo", rank=rank, world_size=2)
    module.BATCH, module.TOGETHER = 7, 3
    method, data = open_run(Run(path))
    rows = torch.arange(0, 300, 3)[:99]  # one process has a row more
    found = {"parts": list(predict_parts(method, data, rows)), "whole": predict(method, data, rows.flip(0))}
    torch.save(found, f"{out}-{rank}")
    td.destroy_process_group()


def test_two_processes_have_the_same_parts_in_order(run, tmp_path):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(_worker, args=(port, run.path, str(tmp_path / "found")), nprocs=2)
    found = [torch.load(tmp_path / f"found-{rank}") for rank in range(2)]
    method, data = open_run(run)
    rows = torch.arange(0, 300, 3)[:99]
    for one in found:
        assert [index.tolist() for index, _ in one["parts"]] == [rows[k : k + 42].tolist() for k in (0, 42, 84)]
        torch.testing.assert_close(torch.cat([z for _, z in one["parts"]]), by_hand(method, data, rows), rtol=1e-5, atol=1e-6)
        assert one["whole"][0].tolist() == rows.tolist()
        assert torch.equal(one["whole"][1].argsort(), torch.cat([z for _, z in one["parts"]]).argsort())
