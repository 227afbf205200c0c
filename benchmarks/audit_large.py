"""Audit a folder of 10,000 generated 224-pixel JPEGs: time, and memory of the process and its workers together.

    python -m benchmarks audit_large [--images 10000]

Halfway through the features the audit is killed and started again, to show that it resumes.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks._registry import Figure

SIDE = 224


def generate(root: Path, images: int) -> None:
    """Two classes of smooth noise; the second has a lighter border."""
    rng = np.random.default_rng(0)
    for k in range(images):
        coarse = rng.integers(0, 255, (8, 8, 3), dtype=np.uint8)
        picture = np.array(Image.fromarray(coarse).resize((SIDE, SIDE), Image.Resampling.BILINEAR))
        if k % 2:
            picture[:20] = np.clip(picture[:20].astype(int) + 40, 0, 255)
        path = root / ("cat" if k % 2 else "dog") / f"{k:05d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(path, quality=85)


def memory_of(pid: int) -> int:
    """Kilobytes held by a process and its children, each shared page counted once (Pss)."""
    try:
        children = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()
        total = 0
        for one in (pid, *map(int, children)):
            with open(f"/proc/{one}/smaps_rollup") as file:
                total += next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        return total
    except (OSError, StopIteration):
        return 0


def figures(words):
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--images", type=int, default=10_000)
    given = asked.parse_args(words)
    home = Path(tempfile.mkdtemp(prefix="unskew-audit-"))
    generate(home / "photos", given.images)
    environment = {**__import__("os").environ, "UNSKEW_DATA": str(home / "cache")}
    command = [sys.executable, "-m", "unskew", "audit", str(home / "photos"), "--out", str(home / "out")]
    peak, started = 0, time.monotonic()
    for attempt in range(2):
        process = subprocess.Popen(command, env=environment)
        watching = threading.Event()

        def watch(process: subprocess.Popen = process, watching: threading.Event = watching) -> None:
            nonlocal peak
            while not watching.wait(0.2):
                peak = max(peak, memory_of(process.pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        if attempt == 0:
            while len(list((home / "cache").rglob("*.safetensors"))) < 5 * 8 and process.poll() is None:
                time.sleep(0.1)
            process.kill()
        process.wait()
        watching.set()
        watcher.join()
    shutil.rmtree(home)
    what = f"an audit of {given.images:,} JPEGs, killed halfway and started again: largest memory of all its processes"
    more = {"exit status": process.returncode, "seconds in all": time.monotonic() - started}
    yield Figure("audit, memory", what, None, value=round(peak / 1e6, 3), unit="GB", most=2.0, more=more)
