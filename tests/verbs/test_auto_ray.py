"""auto on a Ray cluster makes the choice of the local run, to the bit."""

import json

import pytest

import unskew as package
from tests.support.planted import planted_vectors

pytest.importorskip("ray")
TIMES = ("seconds", "training", "run", "command", "audit")


def without_times(found):
    if isinstance(found, dict):
        return {k: without_times(v) for k, v in found.items() if k not in TIMES}
    return [without_times(v) for v in found] if isinstance(found, list) else found


@pytest.fixture
def cluster():
    import ray
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    made.add_node(num_cpus=2)
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.mark.slow
def test_on_ray_the_choice_is_that_of_the_local_run(tmp_path, cluster, monkeypatch):
    # The cluster has the machine's own address, which tests may not ask; Ray itself does not ask Python for its connections.
    monkeypatch.setattr("unskew.core.cluster.check_address", lambda address: None)
    source = planted_vectors(tmp_path / "rows.npz")
    asked = {"settings": {"train.steps": 60}}
    local = package.auto(source, out=tmp_path / "local", workers=1, **asked)
    spread = package.auto(source, out=tmp_path / "ray", executor="ray", address=cluster.address, **asked)
    ours, theirs = (without_times(json.loads((tmp_path / name / "auto.json").read_text())) for name in ("ray", "local"))
    assert ours == theirs
    assert spread.recommended == local.recommended != "erm"
    for one in spread.finalists:
        assert one.run.is_relative_to(tmp_path / "ray")
        weights = [(tmp_path / place / "models" / one.name / "model.safetensors").read_bytes() for place in ("ray", "local")]
        assert weights[0] == weights[1]
    assert package.evaluate(spread.run).groups.plain.n > 0  # the model came back whole
