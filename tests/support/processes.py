"""Python programs of the tests, each in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def python(module, *words, timeout=1200):
    """Run a module of the checkout; two seconds of imports are its own."""
    env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", module, *words], cwd=ROOT, env=env, capture_output=True, text=True, timeout=timeout, check=False
    )
