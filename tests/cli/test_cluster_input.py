"""What can be wrong with a cluster or a shard is one line on the command line, and nothing is left, in the folder or in the cache."""

import socket

import numpy as np
import polars as pl
import pytest

from tests.support.shards import tar_rows, write_parquet, write_tar

pytest.importorskip("ray")
VERBS = {  # one for each way to a cluster: repair and evaluate ask as audit does
    "audit": ["audit", "toy", "--out", "out"],
    "train": ["train", "toy", "--out", "out", "--workers", "2"],
    "bench": ["bench", "repair-table3", "--scale", "smoke", "--out", "out"],
    "auto": ["auto", "toy", "--out", "out"],
}


def refused(unskew, tmp_path, words):
    """The one line of a request that is refused; it leaves what was there, and no file in the cache."""
    before, cache = sorted(tmp_path.rglob("*")), tmp_path.parent / f"{tmp_path.name}-cache"
    done = unskew(*words, expect=2, env={"UNSKEW_DATA": str(cache)})
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert sorted(tmp_path.rglob("*")) == before
    assert [path for path in cache.rglob("*") if path.is_file()] == []
    return lines[0]


@pytest.mark.parametrize("verb", VERBS)
def test_an_address_where_nobody_answers(tmp_path, unskew, verb):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    line = refused(unskew, tmp_path, [*VERBS[verb], "--executor", "ray", "--address", f"127.0.0.1:{port}"])
    assert line.startswith(f"unskew: --address 127.0.0.1:{port}: no Ray cluster answers there")


def cut_tar(folder):
    return write_tar(folder / "train-0.tar", tar_rows(range(40)))


def cut_pictures(folder):
    pytest.importorskip("pyarrow")
    return write_parquet(folder / "train-0.parquet", range(40))


def cut_vectors(folder):
    folder.mkdir()
    for number in range(2):
        x = np.random.default_rng(number).normal(size=(3000, 8)).astype(np.float32)
        frame = pl.DataFrame({"label": [0, 1] * 1500, "features": pl.Series(x, dtype=pl.Array(pl.Float32, 8))})
        frame.write_parquet(folder / f"part-{number}.parquet")
    return folder / "part-1.parquet"


@pytest.mark.parametrize("make", [cut_tar, cut_pictures, cut_vectors])
def test_a_shard_that_was_cut(tmp_path, unskew, make):
    shard = make(tmp_path / "set")
    raw = shard.read_bytes()
    shard.write_bytes(raw[: int(0.7 * len(raw.rstrip(b"\0")))])
    line = refused(unskew, tmp_path, ["audit", "set", "--out", "out"])
    assert str(shard.relative_to(tmp_path)) in line


WITHOUT = """
import sys

class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "unskew":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Nowhere())
"""


@pytest.mark.slow
def test_a_cluster_without_the_package(tmp_path, tmp_path_factory, unskew):
    from ray.cluster_utils import Cluster

    elsewhere = tmp_path_factory.mktemp("node")
    (elsewhere / "sitecustomize.py").write_text(WITHOUT)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        cluster.add_node(num_cpus=1, env_vars={"PYTHONPATH": str(elsewhere)})
        for verb in ("audit", "train"):
            line = refused(unskew, tmp_path, [*VERBS[verb], "--executor", "ray", "--address", cluster.address])
            assert line.startswith("unskew: --executor ray: the node ")
            assert "does not have unskew; install unskew" in line
    finally:
        cluster.shutdown()
