"""What the probes of an audit cost: 300 JPEGs, and many JPEGs beside cleanvision's scan of the same files.

    python -m benchmarks audit_probes [--images 10000] [--rounds 3]

Processor seconds of a process of its own, with all it starts: of the probes alone, after everything was imported; of the whole verb,
less those of a process that only imports. Trial and slices are left out, as they read a pretrained network's features. The two take
turns, each in one process, and the ratio is the median of the rounds: cores that share a processor make two processes of either cost
half as much again. As both run by default, in as many processes as they like, they are compared once. Seconds depend on the machine, so
cleanvision's for the same 300 files stand beside ours. `--images 0` measures the probes alone.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks._registry import Figure, ratio
from benchmarks.audit_large import generate

FEW = 300
IMPORT = "import unskew.verbs.audit, unskew.training.reference, altair, vl_convert, sklearn.decomposition"
PROBES = f"""
import os, sys
{IMPORT}
from unskew.data.sources import load
from unskew.features import compute_many, standard
from unskew.parts.probing import read
from unskew.verbs.audit import audited_rows
before = os.times()
data = load(sys.argv[1])
chosen, _ = standard(data)
index, features = compute_many(data, chosen, audited_rows(data))
for one in chosen:
    read(features[one.name], data.y[index])
print(sum(os.times()[:4]) - sum(before[:4]))
"""
AUDIT = """
import sys, unskew
alone = {"data.workers": 0} if sys.argv[3] == "1" else {}
unskew.audit(sys.argv[1], out=sys.argv[2], trial=False, slices=0, settings=alone)
"""
SCAN = """
import sys
from cleanvision import Imagelab
Imagelab(data_path=sys.argv[1], verbose=False).find_issues(n_jobs=1 if sys.argv[2] == "1" else None, verbose=False)
"""
LIBRARY = "import cleanvision"


def spent(program: str, *words: str, **variables: str) -> tuple[float, float]:
    """(processor seconds, largest resident memory in GB) of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    process = subprocess.Popen([sys.executable, "-c", program, *words], env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{program.strip().splitlines()[0]} ... ended with status {status}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds or used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20


def _work(place: str, cache: str) -> float:
    """Processor seconds of the probes."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "UNSKEW_DATA": cache}
    said = subprocess.run([sys.executable, "-c", PROBES, place], env=environment, capture_output=True, text=True, check=True)
    return float(said.stdout.split()[-1])


def figures(words):
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--images", type=int, default=10_000)
    asked.add_argument("--rounds", type=int, default=3)
    given = asked.parse_args(words)
    home = Path(tempfile.mkdtemp(prefix="unskew-probes-"))
    try:
        yield from _figures(home, given.images, given.rounds)
    finally:
        shutil.rmtree(home)


def _figures(home: Path, images: int, rounds: int):
    generate(home / "few", FEW)
    few = sorted(_work(str(home / "few"), str(home / f"cache-{k}")) for k in range(3))
    their_start = spent(LIBRARY)[0]
    scan = spent(SCAN, str(home / "few"), "1")[0] - their_start
    what = f"reading {FEW} JPEGs of 224 pixels and all probes of them, once all is imported: processor seconds, median of 3"
    more = {"all": few, "cleanvision (s)": scan}
    yield Figure("probes of 300 photographs", what, None, value=round(few[1], 2), unit="s", most=3.0, more=more)
    if not images:
        return
    start = min(spent(IMPORT)[0] for _ in range(2))
    generate(home / "many", images)
    ours, theirs, memory = [], [], 0.0
    for k in range(rounds + 1):
        alone = "1" if k < rounds else "all"
        seconds, peak = spent(AUDIT, str(home / "many"), str(home / f"out-{k}"), alone, UNSKEW_DATA=str(home / f"cache-many-{k}"))
        ours.append(seconds - start)
        memory = max(memory, peak)
        theirs.append(spent(SCAN, str(home / "many"), alone)[0] - their_start)
    what = f"an audit of {images:,} JPEGs over cleanvision's scan of the same files, each in one process, beyond importing"
    more = {
        "ours (s)": ours[:-1],
        "cleanvision (s)": theirs[:-1],
        "as many processes as by default": {"ours (s)": ours[-1], "cleanvision (s)": theirs[-1]},
        "memory (GB)": memory,
    }
    yield Figure("audit beside cleanvision", what, round(ratio(ours[:-1], theirs[:-1]), 3), most=1.5, more=more)
