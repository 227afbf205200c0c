"""Throughput of `audit --executor ray` on two one-core nodes of a warm cluster, over that of two local worker processes.

    python -m benchmarks cluster_speed [--images 20000] [--rounds 1] [--record]

Both audit the same generated 224-pixel JPEGs (probes only, no slices, no trial), in turn, each with an empty cache. It needs a machine
with two idle cores: the load before each run is among the figures, and so are the processor seconds, which other work moves less.
The run that counts takes at least three minutes.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks import _registry
from benchmarks._registry import Figure
from benchmarks.audit_large import generate

LEAST = 0.85
SECONDS = 180.0  # of a run that counts


class Workers:
    """Processor seconds of the workers of this process's Ray nodes while it is open.

    Sampled, as they end with their job and nobody waits for them.
    """

    def __init__(self) -> None:
        self.nodes = {b"RAY_RAYLET_PID=%s" % one.encode() for one in children(os.getpid())}
        self.before, self.after = self.ticks(), {}
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def __enter__(self) -> "Workers":
        self.thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.stopped.set()
        self.thread.join()

    def watch(self) -> None:
        while not self.stopped.wait(0.5):
            self.after |= self.ticks()

    def ticks(self) -> dict[str, int]:
        """What every worker that is there has used so far."""
        found = {}
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    if self.nodes & set((folder / "environ").read_bytes().split(b"\0")):
                        fields = (folder / "stat").read_text().rpartition(")")[2].split()
                        found[folder.name] = sum(map(int, fields[11:13]))
                except OSError:  # it has just ended
                    continue
        return found

    @property
    def seconds(self) -> float:
        return sum(used - self.before.get(one, 0) for one, used in self.after.items()) / os.sysconf("SC_CLK_TCK")


def children(pid: int) -> list[str]:
    return subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()


def audit(photos: Path, home: Path, words: list[str]) -> dict[str, float]:
    """Seconds by the clock and of the processor of one audit; those of the cluster's workers are added by the caller."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    load = os.getloadavg()[0]
    env = {**os.environ, "UNSKEW_DATA": str(home / "cache"), "PYTHONPATH": str(_registry.ROOT)}
    command = [
        sys.executable,
        "-m",
        "unskew",
        "audit",
        str(photos),
        "--no-trial",
        "--slices",
        "0",
        "--out",
        str(home / "out"),
        *words,
    ]
    with open(home / "log", "wb") as log:
        started = time.monotonic()
        process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - started
    if status:
        raise SystemExit((home / "log").read_text())
    return {"seconds": seconds, "processor": used.ru_utime + used.ru_stime, "load before": load}


def figures(words):
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--images", type=int, default=20_000)
    asked.add_argument("--rounds", type=int, default=1)
    asked.add_argument("--folder", type=Path, help="for the photographs, which are kept there")
    given = asked.parse_args(words)
    from ray.cluster_utils import Cluster

    os.environ["OMP_NUM_THREADS"] = "1"  # as a worker of a cluster has it
    home = Path(tempfile.mkdtemp(prefix="unskew-cluster-"))
    photos = (given.folder or home) / f"photos-{given.images}"
    if not (photos / "done").is_file():
        generate(photos, given.images)
        (photos / "done").touch()
    few = home / "few"
    generate(few, 64)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=1)
        there = ["--executor", "ray", "--address", cluster.address]
        audit(few, home / "warm", there)
        runs: dict[str, list[dict[str, float]]] = {"local": [], "ray": []}
        for _ in range(given.rounds):
            runs["local"].append(audit(photos, home / "local", ["data.workers=2"]))
            with Workers() as workers:
                run = audit(photos, home / "ray", there)
            run["processor"] += workers.seconds
            runs["ray"].append(run)
            same = (home / "local" / "out" / "scores.parquet", home / "ray" / "out" / "scores.parquet")
            assert scores(same[0]).equals(scores(same[1]))
    finally:
        cluster.shutdown()
        shutil.rmtree(home)
    seconds, processor = (
        statistics.median(here[key] / there[key] for here, there in zip(runs["local"], runs["ray"], strict=True))
        for key in ("seconds", "processor")
    )
    shortest = min(run["seconds"] for each in runs.values() for run in each)
    more = {name: [{key: round(value, 1) for key, value in run.items()} for run in each] for name, each in runs.items()} | {
        "rows a second": {name: round(given.images / each[-1]["seconds"], 1) for name, each in runs.items()}
    }
    length = "" if shortest >= SECONDS else f"; a run takes {shortest:.0f} s, too short to count"
    what = f"rows a second of an audit of {given.images:,} JPEGs on two Ray nodes of one core, over those of two local processes{length}"
    counts = LEAST if shortest >= SECONDS else None
    yield Figure("audit on a cluster, throughput", what, round(seconds, 3), least=counts, more=more)
    what = (
        f"processor seconds of the same audit with two local processes, over those of the driver and nodes of the cluster{length}"
    )
    yield Figure("audit on a cluster, processor", what, round(processor, 3))


def scores(path: Path):
    import polars as pl

    return pl.read_parquet(path)
