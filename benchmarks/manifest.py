"""Folders of many small JPEGs: listing them the first and the second time, and the memory of an audit as the rows grow.

    python -m benchmarks manifest [--files 20000,200000] [--side 32] [--no-audit]

Files are written below --folder (a temporary one) in four class folders, 32 pixels a side; from 64 on, every probe applies. The first
reading opens every file, the second starts from the manifest. The audit runs its probes only, without slices and trial.
"""

import argparse
import io
import json
import os
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
from benchmarks.audit_large import memory_of

CLASSES = 4
SECONDS, GIGABYTES = 5.0, 0.3
LISTING = """
import json, resource, sys, time
from unskew.data import load
seconds, processor = time.perf_counter(), time.process_time()
data = load(sys.argv[1], mode="stream", duplicates=False)
print(json.dumps({"rows": len(data), "seconds": time.perf_counter() - seconds, "processor": time.process_time() - processor,
                  "peak GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, "fingerprint": data.fingerprint}))
"""


def write(root: Path, files: int, side: int) -> None:
    """Coarse noise; one class is a little lighter. What is there already stays, so that sizes may follow one another."""
    for c in range(CLASSES):
        (root / f"class {c}").mkdir(parents=True, exist_ok=True)
    for k in range(files):
        path = root / f"class {k % CLASSES}" / f"{k:08d}.jpg"
        if not path.exists():
            coarse = np.random.default_rng(k).integers(0, 200, (4, 4, 3), dtype=np.uint8) + np.uint8(20 * (k % CLASSES == 0))
            out = io.BytesIO()
            Image.fromarray(coarse).resize((side, side), Image.Resampling.BILINEAR).save(out, "JPEG", quality=85)
            path.write_bytes(out.getvalue())


def listing(root: Path, environment: dict[str, str]) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", LISTING, str(root)], env=environment, cwd=Path(__file__).parent.parent, capture_output=True, text=True
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def audit(root: Path, out: Path, environment: dict[str, str]) -> tuple[float, float]:
    """Largest memory in GB of the process and its workers, and seconds."""
    words = ["audit", str(root), "--no-trial", "--slices", "0", "--out", str(out)]
    peak, started = 0, time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "unskew", *words], env=environment, cwd=Path(__file__).parent.parent, stdout=subprocess.DEVNULL
    )
    stopped = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not stopped.wait(0.5):
            peak = max(peak, memory_of(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    status = process.wait()
    stopped.set()
    watcher.join()
    if status:
        raise SystemExit(f"the audit ended with status {status}")
    return peak / 1e6, time.monotonic() - started


def figures(words):
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--files", default="20000,200000")
    asked.add_argument("--side", type=int, default=32)
    asked.add_argument("--folder", type=Path)
    asked.add_argument("--no-audit", action="store_true")
    given = asked.parse_args(words)
    sizes = [int(n) for n in given.files.split(",")]
    home = Path(tempfile.mkdtemp(prefix="unskew-manifest-")) if given.folder is None else given.folder
    audits = {}
    for files in sizes:
        root, cache = home / f"photos-{files}", home / f"cache-{files}"
        shutil.rmtree(cache, ignore_errors=True)
        environment = {**os.environ, "UNSKEW_DATA": str(cache)}
        write(root, files, given.side)
        first = listing(root, environment)
        again = min((listing(root, environment) for _ in range(3)), key=lambda one: one["seconds"])
        assert again["fingerprint"] == first["fingerprint"]
        kept = sum(p.stat().st_size for p in cache.rglob("*.parquet"))
        more = {
            "first reading (s)": first["seconds"], "of the processor, second (s)": again["processor"], "peak (GB)": again["peak GB"],
            "manifest (bytes a row)": kept / files,
        }  # fmt: skip
        what = f"reading a folder of {files:,} JPEGs the second time, from its manifest: the fastest of three"
        yield Figure(
            f"manifest, {files:,} files", what, None, value=round(again["seconds"], 2), unit="s", most=SECONDS, more=more
        )
        if not given.no_audit:
            shutil.rmtree(home / f"out-{files}", ignore_errors=True)
            audits[files] = audit(root, home / f"out-{files}", environment)
            what = f"largest memory of an audit (probes only, no slices) of {files:,} JPEGs and its workers"
            more = {"seconds": audits[files][1], "pixels of a side": given.side}
            yield Figure(
                f"manifest, audit of {files:,} files", what, None, value=round(audits[files][0], 3), unit="GB", more=more
            )
    if len(audits) > 1:
        few, many = min(audits), max(audits)
        what = f"memory of an audit (probes only, no slices) of {many:,} JPEGs beyond that of {few:,}"
        more = {f"{n:,} files": {"GB": round(gb, 3), "seconds": round(s, 1)} for n, (gb, s) in audits.items()}
        more |= {"pixels of a side": given.side}
        growth = round(audits[many][0] - audits[few][0], 3)
        yield Figure("manifest, memory of an audit", what, None, value=growth, unit="GB", most=GIGABYTES, more=more)
    if given.folder is None:
        shutil.rmtree(home)
