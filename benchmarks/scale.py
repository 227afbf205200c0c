"""Time and memory of audit and repair against the number of rows: 1e5, 1e6, 1e7 generated vectors in Parquet parts.

    python -m benchmarks scale [--rows 1e5,1e6,1e7] [--photos 1000,4000] [--work DIR] [--record]

Every step is a process of its own, measured when it ends and noted in DIR/steps.jsonl; run the same command again to resume.
`--record` puts what is done into docs/results/scale.jsonl, from which `python -m docs.scale` writes docs/results/scale.md and its plot.
`--photos` also audits so many generated JPEGs with two local worker processes; on a cluster: `python -m benchmarks cluster_speed`.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks import _registry
from benchmarks.audit_large import generate

RECORD = _registry.ROOT / "docs" / "results" / "scale.jsonl"
PART = 1_000_000  # rows of a Parquet part
WIDTH, CLASSES = 64, 10


def vectors(folder: Path, rows: int) -> None:
    """Ten classes; `place` is the class in nine rows of ten, and moves the vector further than the class does."""
    if (folder / "done").is_file():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    of_class, of_place = (np.random.default_rng(s).normal(0, scale, (CLASSES, WIDTH)) for s, scale in ((1, 0.15), (2, 0.4)))
    for number, first in enumerate(range(0, rows, PART)):
        rng, n = np.random.default_rng(100 + number), min(PART, rows - first)
        y = rng.integers(0, CLASSES, n)
        place = np.where(rng.random(n) < 0.9, y, rng.integers(0, CLASSES, n))
        x = rng.standard_normal((n, WIDTH), dtype=np.float32)
        x += of_class.astype(np.float32)[y] + of_place.astype(np.float32)[place]
        frame = pl.DataFrame({"label": y.astype(np.int16), "place": place.astype(np.int16)})
        frame = frame.with_columns(pl.Series("features", x, dtype=pl.Array(pl.Float32, WIDTH)))
        frame.write_parquet(folder / f"part-{number:04d}.parquet", compression="uncompressed")
    (folder / "done").touch()


def measured(words: list[str], cache: Path, log: Path) -> dict[str, float]:
    """Run the command line; its seconds, its processor seconds, and the most memory that it held."""
    env = {**os.environ, "UNSKEW_DATA": str(cache), "PYTHONPATH": str(_registry.ROOT)}
    with open(log, "wb") as out:
        started = time.monotonic()
        process = subprocess.Popen([sys.executable, "-m", "unskew", *words], env=env, stdout=out, stderr=out)
        _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"unskew {' '.join(words)} failed; see {log}")
    return {
        "seconds": round(time.monotonic() - started, 1),
        "processor": round(used.ru_utime + used.ru_stime, 1),
        "gigabytes": round(used.ru_maxrss / 1e6, 3),
    }


class Steps:
    """What is done, by name and size; a step that is done is not repeated."""

    def __init__(self, work: Path) -> None:
        self.path, self.done = work / "steps.jsonl", {}
        if self.path.is_file():
            self.done = {(s["what"], s["rows"]): s for s in map(json.loads, self.path.read_text().splitlines())}

    def step(self, what: str, rows: int, make) -> None:
        if (what, rows) not in self.done:
            self.done[what, rows] = {"what": what, "rows": rows, **make(), **_registry.about()}
            with open(self.path, "a") as file:
                file.write(json.dumps(self.done[what, rows]) + "\n")
        print(json.dumps(self.done[what, rows]), flush=True)

    def record(self) -> None:
        known = {}
        if RECORD.is_file():
            known = {(s["what"], s["rows"]): s for s in map(json.loads, RECORD.read_text().splitlines())}
        known |= self.done
        RECORD.write_text("".join(json.dumps(known[key]) + "\n" for key in sorted(known)))


def of_vectors(steps: Steps, work: Path, sizes: list[int]) -> None:
    cache = work / "cache"
    small = work / "vectors-100000"
    vectors(small, 100_000)
    if not (work / "gce" / "done.json").is_file():  # the biased network whose gradients are scored
        measured(
            ["train", str(small), "--method", "gce", "--model", "mlp", "--out", str(work / "gce"), "train.steps=400"],
            cache,
            work / "train.log",
        )
    for rows in sizes:
        source, out = work / f"vectors-{rows}", work / f"out-{rows}"
        vectors(source, rows)
        out.mkdir(exist_ok=True)
        asked = {
            "audit": ["audit", str(source), "--bias", "place", "--out", str(out / "audit")],
            "repair": ["repair", str(source), "phi=input", "--out", str(out / "repair.parquet")],
            "gradients": ["repair", str(source), "--with", "gradients", f"run={work / 'gce'}", "--force", "--measure", "input",
                          "--out", str(out / "gradients.parquet")],
        }  # fmt: skip
        for what, words in asked.items():
            steps.step(what, rows, lambda words=words, what=what, out=out: measured(words, cache, out / f"{what}.log"))


def of_photos(steps: Steps, work: Path, images: int) -> None:
    photos, out = work / f"photos-{images}", work / f"photos-out-{images}"
    if not (photos / "dog").is_dir():
        generate(photos, images)
    out.mkdir(exist_ok=True)
    words = ["audit", str(photos), "--no-trial", "--slices", "0", "data.workers=2", "--out", str(out / "audit")]
    steps.step("photos", images, lambda: measured(words, out / "cache", out / "log"))


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rows", default="1e5,1e6,1e7")
    asked.add_argument("--photos", default="")
    asked.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "unskew-scale")
    asked.add_argument("--record", action="store_true")
    given = asked.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    steps = Steps(given.work)
    if given.rows:
        of_vectors(steps, given.work, [int(float(n)) for n in given.rows.split(",")])
    for images in (int(float(n)) for n in given.photos.split(",") if n):
        of_photos(steps, given.work, images)
    if given.record:
        steps.record()


if __name__ == "__main__":
    main()
