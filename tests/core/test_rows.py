"""A pass over rows gives the same results in the same order, here, in worker processes and on two Ray nodes of which one is killed."""

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from unskew.core import cluster as connection
from unskew.core.errors import UserError
from unskew.core.executor import Resources, check_nodes, map_rows, running


@dataclass(frozen=True)
class Squares:
    """Squares of the ids; every call leaves a line in `log`."""

    log: Path
    seconds: float = 0.0

    def __call__(self, ids):
        with open(self.log, "a") as file:
            file.write(f"{int(ids[0])} {os.getpid()}\n")
        time.sleep(self.seconds)
        if int(ids[0]) < 0:
            raise UserError("ids begin at 0")
        return ids, ids.square()


def calls(log):
    """Ids of the first row of every part that was computed, and by how many processes."""
    lines = [line.split() for line in log.read_text().splitlines()]
    return [int(first) for first, _ in lines], {process for _, process in lines}


PARTS = list(torch.split(torch.arange(30), 3))


@pytest.mark.parametrize("workers", [0, 2])
def test_results_come_in_order_from_one_process_or_several(tmp_path, workers):
    log = tmp_path / "log"
    found = list(map_rows(Squares(log), PARTS, Resources(workers=workers)))
    assert torch.cat([ids for ids, _ in found]).tolist() == list(range(30))
    assert torch.cat([squares for _, squares in found]).tolist() == [k * k for k in range(30)]
    first, processes = calls(log)
    assert sorted(first) == list(range(0, 30, 3))
    assert len(processes) == max(1, workers)
    assert (str(os.getpid()) in processes) is (workers == 0)


def test_what_does_not_go_together_is_refused():
    with pytest.raises(UserError, match="--executor slurm: must be local or ray"):
        Resources("slurm")
    with pytest.raises(UserError, match="--address and --gpus are for --executor ray"):
        Resources(address="10.0.0.1:6379")


def test_an_address_where_nobody_answers_is_one_line():
    with pytest.raises(UserError, match=r"--address 127\.0\.0\.1:1: no Ray cluster answers there"), running("ray", "127.0.0.1:1"):
        raise AssertionError("not reached")


@pytest.fixture
def cluster(monkeypatch):
    pytest.importorskip("ray")
    import ray
    from ray.cluster_utils import Cluster

    # The cluster has the machine's own address, which tests may not ask; Ray itself does not ask Python for its connections.
    monkeypatch.setattr(connection, "check_address", lambda address: None)
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.mark.slow
def test_a_lost_node_costs_only_its_parts(tmp_path, cluster, monkeypatch):
    doomed, _ = cluster.add_node(num_cpus=1), cluster.add_node(num_cpus=1)
    log = tmp_path / "log"
    log.touch()

    def kill():
        while len(calls(log)[0]) < 4:
            time.sleep(0.02)
        cluster.remove_node(doomed, allow_graceful=False)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    with running("ray", cluster.address):
        found = list(map_rows(Squares(log, seconds=1.0), PARTS))
        killer.join()
        assert torch.cat([squares for _, squares in found]).tolist() == [k * k for k in range(30)]
        first, processes = calls(log)
        assert set(first) == set(range(0, 30, 3))
        assert len(processes) >= 2
        assert len(first) <= len(PARTS) + 4  # what the lost node had, and no more, was computed again
        cluster.add_node(num_cpus=1, num_gpus=1)  # as far as Ray is concerned
        with_gpu = Resources("ray", cluster.address, gpus=1)
        assert [int(s.sum()) for _, s in map_rows(Squares(log), PARTS[:3], with_gpu)] == [0 + 1 + 4, 9 + 16 + 25, 36 + 49 + 64]
        # What a worker refuses is refused here, in the same words.
        with pytest.raises(UserError, match=r"^ids begin at 0$"):
            list(map_rows(Squares(log), [torch.tensor([-1])]))
        monkeypatch.setattr(connection, "VERSION", "99.9")
        with pytest.raises(UserError, match=r"has unskew .*; install unskew 99\.9 on every node"):
            check_nodes(cluster.address)


def test_a_node_without_the_package_is_one_line():
    with pytest.raises(
        UserError, match=r"the node 10\.0\.0\.2 does not have unskew; install unskew .* on every node of the cluster$"
    ):
        connection.check_version("10.0.0.2", "")
    connection.check_version("10.0.0.2", connection.VERSION)
