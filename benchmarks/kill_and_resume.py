"""Kill a training ten times with SIGKILL, start it again each time with the same command, and compare with an uninterrupted run.

python -m benchmarks kill_and_resume [--epochs 10] [--kills 10] [--seed 0]
"""

import argparse
import hashlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--source", default="colored-mnist:ratio=0.99")
    words.add_argument("--epochs", type=int, default=10)
    words.add_argument("--kills", type=int, default=10)
    words.add_argument("--seed", type=int, default=0)
    given = words.parse_args()
    home = Path(tempfile.mkdtemp(prefix="unskew-kill-"))
    base = [
        sys.executable,
        "-m",
        "unskew",
        "train",
        given.source,
        "--method",
        "erm",
        "--model",
        "convnet1",
        f"train.epochs={given.epochs}",
    ]

    started = time.monotonic()
    subprocess.run([*base, "--out", str(home / "straight")], check=True, stdout=subprocess.DEVNULL)
    straight = time.monotonic() - started
    print(f"uninterrupted: {straight:.0f} s", flush=True)

    chance = random.Random(given.seed)
    resumed_from, landed = [], 0
    for kill in range(given.kills):
        process = subprocess.Popen(
            [*base, "--out", str(home / "killed")], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        # Importing and reading data take a while; most of these moments fall within the training itself.
        time.sleep(chance.uniform(0.05, 0.35) * straight)
        process.send_signal(signal.SIGKILL)
        _, said = process.communicate()
        landed += process.returncode == -signal.SIGKILL  # a run may end before it is killed
        resumed_from += [line for line in said.splitlines() if "resuming" in line]
        print(f"kill {kill + 1}: {said.splitlines()[-1] if said.strip() else 'before the first word'}", flush=True)
    subprocess.run([*base, "--out", str(home / "killed")], check=True, stdout=subprocess.DEVNULL)

    digests = [hashlib.sha256((home / name / "model.safetensors").read_bytes()).hexdigest() for name in ("straight", "killed")]
    shutil.rmtree(home)
    print(f"{landed} of {given.kills} kills landed; resumed from a saved state {len(resumed_from)} times")
    print(f"weights equal to the bit: {digests[0] == digests[1]} ({digests[0][:12]}, {digests[1][:12]})")
    sys.exit(digests[0] != digests[1])


if __name__ == "__main__":
    main()
