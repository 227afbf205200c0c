"""How long a verb takes before it works: `unskew list methods`, help, and a verb that needs torch beyond torch's own import.

python -m benchmarks start [--rounds 7]

Processor seconds of whole processes, smallest of the rounds.
"""

import argparse
import os
import subprocess
import sys

from benchmarks._registry import ROOT, Figure

WORDS = {
    "list": ["-m", "unskew", "list", "methods"],
    "explain": ["-m", "unskew", "explain", "rebias"],
    "check": ["-m", "unskew", "data", "bar", "--root", "nowhere", "--check"],
    "torch": ["-c", "import torch"],
    "train": ["-c", "import unskew.verbs.train, unskew.verbs.audit, unskew.verbs.evaluate"],
}


def figures(words):
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rounds", type=int, default=7)
    given = asked.parse_args(words)
    spent = {name: [] for name in WORDS}
    for _ in range(given.rounds):
        for name, line in WORDS.items():
            before = os.times()
            subprocess.run([sys.executable, *line], cwd=ROOT, capture_output=True)
            after = os.times()
            spent[name].append(after.children_user + after.children_system - before.children_user - before.children_system)
    least = {name: round(min(seconds), 3) for name, seconds in spent.items()}
    yield Figure(
        "start: lists",
        "`unskew list methods`: seconds of one processor",
        None,
        value=least["list"],
        unit="s",
        most=0.4,
        more=least,
    )
    beyond = least["train"] - least["torch"]
    what = "importing the verbs train, audit and evaluate, beyond torch's own import"
    yield Figure("start: verbs", what, None, value=round(beyond, 3), unit="s", most=1.0)
