"""`unskew demo`: find a shortcut, watch a network take it, repair the data, train one that does not. All on embedded digits."""

import shlex
from pathlib import Path
from typing import Any

from unskew.core import progress
from unskew.data.sources import load
from unskew.pages.text import audit_table, group_table
from unskew.verbs.audit import audit
from unskew.verbs.evaluate import evaluate
from unskew.verbs.repair import repair
from unskew.verbs.report import report
from unskew.verbs.train import train

SOURCE = (
    "colored-mnist:base=digits,digits=3,5,8,ratio=0.98"  # three classes, three colours: every group of the test has 36 rows or so
)
SETTINGS = {"train.steps": 300, "train.log_every": 20}
LOOKS = ("color:kind=max", "color:kind=histogram", "crop:where=border", "crop:where=center", "texture", "spectrum")
SHORTCUT = "color:kind=max"  # what the audit names


def demo(out: Path, seed: int) -> tuple[dict[str, Any], str]:
    """Find what gives the class away, weight the rows so that it does not, train three ways, judge, and write one page.

    The three: on the rows as they are, on the weighted ones, and as a trial advises.
    """
    source, words = f"{SOURCE},seed={seed}", " ".join(f"{k}={v}" for k, v in SETTINGS.items())
    place = {name: out / name for name in ("audit", "weights.parquet", "erm", "repaired", "advised", "report.html")}
    shown = {name: shlex.quote(str(path)) for name, path in place.items()}
    looks = " ".join(f"--representation {name}" for name in LOOKS)
    runs = [shown[name] for name in ("erm", "repaired", "advised")]
    steps = {
        "audit": f"unskew audit {source} {looks} --seed {seed} --out {shown['audit']}",
        "repair": f"unskew repair {source} --with repair phi={SHORTCUT} --seed {seed} --out {shown['weights.parquet']}",
        "erm": f"unskew train {source} --method erm {words} --seed {seed} --out {shown['erm']}",
        "repaired": f"unskew train {source} --weights {shown['weights.parquet']} {words} --seed {seed} --out {shown['repaired']}",
        "advised": f"unskew train {source} --method advised {words} --seed {seed} --out {shown['advised']}",
        "report": f"unskew report {' '.join(runs)} --audit {shown['audit']} --repair {shown['weights.parquet']} "
        f"--out {shown['report.html']}",
    }

    def say(step: str) -> str:
        progress.say(f"{list(steps).index(step) + 1}/{len(steps)}  {steps[step]}")
        return steps[step]

    # Nothing uses the colours before the evaluation: the audit does not get the column, and repair and methods do not read it.
    audited = audit(load(source).only_bias([]), representations=LOOKS, out=place["audit"], seed=seed, command=say("audit"))
    table = repair(source, "repair", out=place["weights.parquet"], seed=seed, settings={"phi": SHORTCUT}, command=say("repair"))
    common: dict[str, Any] = {"seed": seed, "settings": SETTINGS}
    trained = [
        train(source, "erm", out=place["erm"], command=say("erm"), **common),
        train(source, "erm", out=place["repaired"], weights=table.table, command=say("repaired"), **common),
        train(source, "advised", out=place["advised"], command=say("advised"), **common),
    ]
    judged = {run.path.name: evaluate(run) for run in trained}
    say("report")
    page = report(trained, place["report.html"], audit=place["audit"], repairs=[place["weights.parquet"]])
    text = [audit_table(audited), "", "Plain training:", group_table(judged["erm"]), "", f"{'':14} aligned conflicting"]
    text += [
        f"{name:14} {100 * j.groups.aligned.value:6.1f} {100 * j.groups.conflicting.value:10.1f}" for name, j in judged.items()
    ]
    lost = 100 * (judged["erm"].groups.aligned.value - judged["advised"].groups.aligned.value)
    text += ["", f"Gained where colour misleads, at the price of {max(lost, 0):.1f} points where it agrees with the class."]
    text += ["", f"audit page: {audited.page.resolve()}", f"repair page: {table.page.resolve()}", f"page: {page.resolve()}"]
    return {"page": str(page), "audit": audited.json(), "runs": {name: j.json() for name, j in judged.items()}}, "\n".join(text)
