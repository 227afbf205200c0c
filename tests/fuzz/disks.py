"""python -m tests.fuzz.disks: every verb on a disk that is full, in a folder that is read-only, and on a disk that fills and is emptied.

Needs to mount a small tmpfs, so it needs root on Linux. Prints one JSON object: how each case ended.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.fuzz import templates
from tests.fuzz.campaign import warm
from tests.fuzz.harness import OURS, _child, _wait

DEPENDENCY = (
    "dependency", "planted:rows=200", "--phi", "input", "--model", "mlp", "train.steps=1", "repair.epochs=1", "--rates", "0.9",
)  # fmt: skip
VERBS = {
    "audit": (*templates.AUDIT, "--out", "disk/out"),
    "repair": (*templates.REPAIR, "--out", "disk/w.parquet"),
    "repair csv": (*templates.REPAIR, "--as", "csv", "--out", "disk/w.csv"),
    "train": (*templates.TRAIN, "--out", "disk/out"),
    "dependency": (*DEPENDENCY, "--out", "disk/out"),
    "evaluate": ("evaluate", "disk/run"),
    "report": ("report", "disk/run", "--out", "disk/page.html"),
    "data": ("data", "planted:rows=60", "--out", "disk/out"),
    "bench": ("bench", "toy.toml", "--only", "erm", "--seeds", "1", "--out", "disk/out"),
    "new": ("new", "method", "own.mine"),
    "export": ("export", "disk/run", "--as", "safetensors", "--out", "disk/net"),
    "auto": (*templates.AUTO, "--budget", "60s", "--out", "disk/out"),
}
FILLS = (
    "train",
    "toy:rows=60",
    "--model",
    "mlp",
    "train.batch=16",
    "train.steps=400",
    "train.checkpoint=2 steps",
    "--out",
    "disk/out",
)


@contextmanager
def disk(place: Path, kilobytes: int) -> Iterator[None]:
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k,nr_inodes=200", "tmpfs", str(place)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path) -> None:
    """Write until nothing fits."""
    with open(place / "filler", "ab", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue


def command(
    words: tuple[str, ...], home: Path, cache: Path, meanwhile: Callable[[], None] = lambda: None, inside: Path | None = None
) -> dict[str, Any]:
    """Run a command in `home`, or in a folder of it, and say how it ended, with what it left on the disk."""
    before = _files(home)
    started = time.monotonic()
    child = os.fork()
    if child == 0:

        def build(root: Path) -> list[str]:
            os.chdir(inside or root)
            return list(words)

        _child(build, home.parent, cache)
    meanwhile()
    status = _wait(child, started)
    said = (home.parent / "stderr").read_text(encoding="utf-8", errors="replace").splitlines()
    return {
        "status": status,
        "said": said[-1:],
        "lines": sum(s.startswith("unskew: ") for s in said),
        "left": sorted(_files(home) - before),
    }


def _files(home: Path) -> set[str]:
    return {str(p.relative_to(home)) for p in home.rglob("*") if p.name not in OURS}


def with_places(made: Path, full: bool, verb: str) -> dict[str, Any]:
    """One verb on a full disk, or in a read-only folder."""
    with tempfile.TemporaryDirectory(prefix="unskew-disk-") as name:
        home = Path(name) / "work"
        home.mkdir()
        _suite(home)
        with disk(home / "disk", 400):
            subprocess.run(["cp", "-r", str(made / "run"), str(home / "disk" / "run")], check=True)
            subprocess.run(
                ["rm", "-rf", str(home / "disk" / "run" / "predictions"), str(home / "disk" / "run" / "tensorboard")], check=True
            )
            if full:
                fill(home / "disk")
            else:
                subprocess.run(["mount", "-o", "remount,ro", str(home / "disk")], check=True)
            words = VERBS[verb]
            if verb == "new":  # writes into the current folder
                return command(words, home, made / "cache", inside=home / "disk")
            return command(words, home, made / "cache")


def _suite(home: Path) -> None:
    from tests.support.suites import GOOD, TABLE

    (home / "table.csv").write_text(TABLE)
    (home / "toy.toml").write_text(GOOD.replace("steps = 10", "steps = 1"))


def fills_and_resumes(made: Path) -> dict[str, Any]:
    """A disk that fills during a training: one line, the state stays; with space again, the result is that of an uninterrupted run."""
    with tempfile.TemporaryDirectory(prefix="unskew-disk-") as name:
        home = Path(name) / "work"
        home.mkdir()
        with disk(home / "disk", 1000):
            state = home / "disk" / "out" / "state.safetensors"

            def when_saved() -> None:
                while not state.exists():
                    time.sleep(0.005)
                fill(home / "disk")

            stopped = command(FILLS, home, made / "cache", when_saved)
            kept = state.exists()
            (home / "disk" / "filler").unlink()
            resumed = command(FILLS, home, made / "cache")
            said = (home.parent / "stderr").read_text()
            after = (home / "disk" / "out" / "model.safetensors").read_bytes()
            subprocess.run(["rm", "-rf", str(home / "disk" / "out")], check=True)
            command(FILLS, home, made / "cache")
            straight = (home / "disk" / "out" / "model.safetensors").read_bytes()
    return {
        "stopped": stopped["status"], "said": stopped["said"], "state kept": kept, "resumed": "resuming at step" in said,
        "status": resumed["status"], "equal": after == straight,
    }  # fmt: skip


def main() -> None:
    warm()
    with tempfile.TemporaryDirectory(prefix="unskew-made-") as name:
        made = templates.make(Path(name), sets=False)
        found = {f"{kind}: {verb}": with_places(made, kind == "full", verb) for kind in ("full", "read-only") for verb in VERBS}
        found["fills"] = fills_and_resumes(made)
    json.dump(found, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
