"""Verbs on two Ray nodes: the tables of one process, to the bit, also if a node or a worker is killed midway."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest
import torch

import unskew as package
from unskew.core import cluster as connection
from unskew.core.checkpoint import read
from unskew.core.errors import UserError
from unskew.core.executor import running
from unskew.verbs.train_ray import _work, train_on_ray

pytest.importorskip("ray")
pytestmark = pytest.mark.usefixtures("own_cache")
SOURCE = "planted:rows=2600,bias=0.9"


@pytest.fixture
def cluster(monkeypatch):
    import ray
    from ray.cluster_utils import Cluster

    monkeypatch.setattr(connection, "check_address", lambda address: None)
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    made.doomed, _ = made.add_node(num_cpus=1), made.add_node(num_cpus=1)
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture
def everything(tmp_path, monkeypatch):
    """The tables of audit, repair and evaluate, computed with a cache of their own: nothing is read from another's."""
    run = package.train(SOURCE, out=tmp_path / "run", settings={"train.steps": 20})

    def tables(name):
        monkeypatch.setenv("UNSKEW_DATA", str(tmp_path / name / "cache"))
        out = tmp_path / name
        audit = package.audit(SOURCE, out=out / "audit", trial=False, slices=0)
        repaired = package.repair(SOURCE, "gradients", out=out / "weights.parquet", settings={"run": str(run.path)}, force=True)
        judged = package.evaluate(run, split="train")
        return audit.scores, repaired.table.frame, judged.predictions.frame

    return tables


def same_tables(one, other):
    assert len(one) == len(other) == 3
    assert all(len(mine) > 1000 and mine.equals(theirs) for mine, theirs in zip(one, other, strict=True))


def test_a_lost_node_changes_no_table(tmp_path, cluster, everything):
    local = everything("local")
    landed = threading.Event()

    def kill():
        deadline = time.time() + 200
        while not list((tmp_path / "ray" / "cache").rglob("*.safetensors")) and time.time() < deadline:  # the first features
            time.sleep(0.02)
        cluster.remove_node(cluster.doomed, allow_graceful=False)
        landed.set()

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    with running("ray", cluster.address):
        spread = everything("ray")
    assert landed.is_set()  # midway, not after the end
    killer.join()
    same_tables(local, spread)


@pytest.mark.slow
def test_tables_of_two_nodes_are_those_of_one_process(cluster, everything):
    local = everything("local")
    with running("ray", cluster.address):
        spread = everything("ray")
    same_tables(local, spread)


@pytest.mark.slow
def test_a_training_that_loses_a_worker_ends_with_the_same_weights(tmp_path, cluster):
    settings = {"train.steps": 300, "train.checkpoint": "20 steps"}
    asked = {"workers": 2, "address": cluster.address, "settings": settings}
    whole = train_on_ray(SOURCE, out=tmp_path / "whole", **asked)
    state = tmp_path / "cut" / "state.safetensors"
    killed = []

    def kill():
        deadline = time.time() + 300
        while not state.is_file() and time.time() < deadline:
            time.sleep(0.01)
        for process in _training_workers():
            os.kill(process, signal.SIGKILL)
            killed.append(process)
            return

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    cut = train_on_ray(SOURCE, out=tmp_path / "cut", **asked)
    killer.join()
    assert killed
    first, second = (read(run.path / "model.safetensors")[0] for run in (whole, cut))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cut", "whole"]  # nothing of Ray's is left
    with pytest.raises(UserError, match="--workers 9: needs 9 CPUs, and the cluster has 2"):
        train_on_ray(SOURCE, out=tmp_path / "bad", workers=9, address=cluster.address)
    assert not (tmp_path / "bad").exists()


def test_a_request_that_is_wrong_is_not_tried_again(tmp_path, monkeypatch):
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    asked = {"given": {"source": "nosuch:rows=3", "out": tmp_path / "run"}, "place": str(tmp_path)}
    with pytest.raises(UserError, match="unknown source 'nosuch"):
        _work(asked)
    monkeypatch.delenv("TORCHELASTIC_RUN_ID")
    _work(asked)  # a worker that is started after it ends at once
    assert "unknown source" in (tmp_path / "refused.txt").read_text()
    assert not (tmp_path / "run").exists()


def _training_workers():
    """Processes on this machine in which Ray Train runs a worker."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_text()
            except OSError:
                continue
            if "ray::" in words and "Worker" in words and "IDLE" not in words:
                found.append(int(folder.name))
    return found
