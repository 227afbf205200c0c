"""`unskew demo`: find a shortcut and watch a network take it, on digits that are inside the installed packages."""

import shlex
from pathlib import Path
from typing import Any

from unskew import progress
from unskew.audit.run import audit
from unskew.data import load
from unskew.evaluate.run import evaluate
from unskew.report.run import report
from unskew.report.text import audit_table, group_table
from unskew.train.run import train

SOURCE = "colored-mnist:base=digits,ratio=0.98"
SETTINGS = {"train.epochs": 30, "train.batch": 64, "train.log_every": 20}
LOOKS = ("color:kind=max", "color:kind=histogram", "crop:where=border", "crop:where=center", "texture", "spectrum")


def demo(out: Path, seed: int) -> tuple[dict[str, Any], str]:
    """Ask what gives the class away, train plainly on it, judge where it does not, write the pages."""
    source = f"{SOURCE},seed={seed}"
    place = {name: shlex.quote(str(out / name)) for name in ("audit", "erm", "report.html")}
    commands = [
        f"unskew audit {source} {' '.join(f'--representation {name}' for name in LOOKS)} --seed {seed} --out {place['audit']}",
        f"unskew train {source} --method erm {' '.join(f'{k}={v}' for k, v in SETTINGS.items())} --seed {seed} --out {place['erm']}",
        f"unskew evaluate {place['erm']}",
        f"unskew report {place['erm']} --out {place['report.html']}",
    ]
    progress.say(f"1/4  {commands[0]}")
    # The bias column stays unused: an audit needs none.
    asked = load(source).only_bias([])
    seen = audit(asked, representations=LOOKS, out=out / "audit", seed=seed, command=commands[0])
    progress.say(f"2/4  {commands[1]}")
    run = train(source, "erm", out=out / "erm", seed=seed, settings=dict(SETTINGS), command=commands[1])
    progress.say(f"3/4  {commands[2]}")
    found = evaluate(run)
    progress.say(f"4/4  {commands[3]}")
    page = report(run, out / "report.html")
    text = [audit_table(seen.json), "", "Plain training on it:", group_table(found), ""]
    text += [f"audit page: {seen.page.resolve()}", f"page: {page.resolve()}"]
    return {"page": str(page), "audit": seen.json, **found.metrics}, "\n".join(text)
