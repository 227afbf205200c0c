"""A suite on a Ray cluster of two nodes, of which one is killed midway, ends with the table of the local run."""

import json
import threading
import time

import pytest

import unskew as package
from tests.support.suites import GOOD, TABLE
from unskew.core.errors import UserError

pytest.importorskip("ray")


@pytest.fixture
def cluster():
    import ray
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    yield made
    ray.shutdown()
    made.shutdown()


def without_cost(found):
    return [{k: v for k, v in row.items() if k != "cost"} for row in found["table"]]


@pytest.mark.slow
def test_a_node_that_dies_costs_only_its_runs(tmp_path, cluster, monkeypatch):
    # The cluster has the machine's own address, which tests may not ask; Ray itself does not ask Python for its connections.
    monkeypatch.setattr("unskew.core.cluster.check_address", lambda address: None)
    (tmp_path / "table.csv").write_text(TABLE)
    suite = tmp_path / "toy.toml"
    suite.write_text(GOOD)
    longer = {"train.steps": "100"}
    local = package.bench(str(suite), out=tmp_path / "local", settings=longer).json()
    doomed, _ = cluster.add_node(num_cpus=1), cluster.add_node(num_cpus=1)
    results = tmp_path / "ray" / "results"
    dead = []

    def kill():
        deadline = time.time() + 600
        while not list(results.glob("*.json")) and time.time() < deadline:
            time.sleep(0.02)
        dead.append(len(list(results.glob("*.json"))))
        cluster.remove_node(doomed, allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    spread = package.bench(str(suite), out=tmp_path / "ray", on="ray", address=cluster.address, settings=longer).json()
    killer.join()
    assert 0 < dead[0] < 6  # midway
    assert spread["failed"] == []
    assert spread["done"] == 4
    assert without_cost(spread) == without_cost(local)
    steps = [
        {p.name: json.loads(p.read_text())["steps"] for p in (tmp_path / w / "results").glob("*.json")} for w in ("local", "ray")
    ]
    assert steps[0] == steps[1]  # a shared run's are not counted again where it was used
    # What is done stays done, whoever goes on.
    again = package.bench(str(suite), out=tmp_path / "ray", settings=longer).json()
    assert without_cost(again) == without_cost(local)


def test_a_cluster_that_is_not_there_is_told_in_one_line(tmp_path):
    suite = tmp_path / "toy.toml"
    suite.write_text(GOOD.replace('published = "table.csv"\n', ""))
    with pytest.raises(UserError, match=r"--address 127\.0\.0\.1:1: no Ray cluster answers there"):
        package.bench(str(suite), out=tmp_path / "out", on="ray", address="127.0.0.1:1")
    assert not (tmp_path / "out").exists()
    with pytest.raises(UserError, match=r"--address nonsense: cannot reach a Ray cluster"):
        package.bench(str(suite), out=tmp_path / "out", on="ray", address="nonsense")
