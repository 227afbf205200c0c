"""`unskew demo`: watch a network take a shortcut, on digits that are inside the installed packages."""

import shlex
from pathlib import Path
from typing import Any

from unskew import progress
from unskew.evaluate.run import evaluate
from unskew.report.run import report
from unskew.report.text import group_table
from unskew.train.run import train

SOURCE = "colored-mnist:base=digits,ratio=0.98"
SETTINGS = {"train.epochs": 30, "train.batch": 64, "train.log_every": 20}


def demo(out: Path, seed: int) -> tuple[dict[str, Any], str]:
    """Train plainly on digits whose colour tells the class, judge where it does not, write the page."""
    source = f"{SOURCE},seed={seed}"
    words = " ".join(f"{k}={v}" for k, v in SETTINGS.items())
    command = f"unskew train {source} --method erm {words} --seed {seed} --out {shlex.quote(str(out / 'erm'))}"
    progress.say(f"1/3  {command}")
    run = train(source, "erm", out=out / "erm", seed=seed, settings=dict(SETTINGS), command=command)
    progress.say(f"2/3  unskew evaluate {run.path}")
    found = evaluate(run)
    progress.say(f"3/3  unskew report {run.path} --out {out / 'report.html'}")
    page = report(run, out / "report.html")
    return {"page": str(page), **found.metrics}, f"{group_table(found)}\n\npage: {page.resolve()}"
