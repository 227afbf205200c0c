"""The page of runs of `unskew auto`, from committed results; `python -m docs.auto_runs FOLDER` adds the run in a folder.

make docs writes the page again from docs/results/auto.csv.
"""

import csv
import json
import sys
import textwrap
from pathlib import Path

HERE = Path(__file__).parent / "results"
TABLE = HERE / "auto.csv"
TEST = ("class_balanced", "worst_group", "aligned", "conflicting")
FIELDS = (
    "source", "seed", "command", "gate", "kind", "name", "settings", "fate", "share", "score", "balanced", "class_balanced", "known",
    *(f"test_{name}" for name in TEST), "seconds", "reason", "commit",
)  # fmt: skip
Rows = list[dict[str, str]]


def collect(folder: Path) -> None:
    """Replace the lines of a run: one per candidate and rung, one per final model."""
    found = json.loads((folder / "auto.json").read_text(encoding="utf-8"))
    # The places of the machine that it ran on say nothing.
    command = found["command"].split(" --out")[0] + " --out auto" if found["command"] else "unskew.auto(...)"
    about = {"source": found["source"], "seed": str(found["seed"]), "command": command, "commit": found["commit"]}
    about["gate"] = f"{'open' if found['gate']['open'] else 'closed'}: {found['gate']['reason']}"
    new: Rows = []
    for t in found["tried"]:
        own = " ".join(f"{k}={v}" for k, v in t["settings"].items())
        for r in t["rungs"] or [{}]:
            figures = {name: shown(r.get(name)) for name in ("score", "balanced", "known")}
            line = {"kind": "candidate", "name": t["name"], "settings": own, "fate": t["fate"], "reason": t["reason"]}
            spent = f"{r['seconds']:.0f}" if r else ""
            new.append({**about, **line, **figures, "share": f"{r['share']:g}" if r else "", "seconds": spent})
    for f in found["finalists"]:
        figures = {name: shown(f[name]) for name in ("score", "balanced", "class_balanced", "known")}
        test = {f"test_{name}": shown(f["test"].get(name, {}).get("value")) for name in TEST}
        fate = "recommended" if f["name"] == found["recommended"] else "not recommended"
        new.append(
            {**about, "kind": "final", "name": f["name"], "fate": fate, **figures, **test, "seconds": f"{f['seconds']:.0f}"}
        )
    reason = " ".join([found["verdict"], found["missing_labels"], *(f"Budget: {text}." for text in found["cut"])]).strip()
    new.append({**about, "kind": "verdict", "name": found["recommended"], "seconds": f"{found['seconds']:.0f}", "reason": reason})
    kept = [r for r in read() if (r["source"], r["seed"]) != (about["source"], about["seed"])]
    with open(TABLE, "w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, FIELDS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows([*kept, *new])


def shown(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"


def read() -> Rows:
    return list(csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines())) if TABLE.is_file() else []


def page() -> str:
    rows = read()
    lines = [
        "# Runs of `unskew auto`",
        "",
        "Every candidate with its cost and what became of it, as on the page that the command writes. Made by `make docs` from",
        "[auto.csv](auto.csv), which has the commit of every run; `python -m docs.auto_runs auto` adds the run in the folder auto.",
        "Figures in per cent. Score: worst group over class x a biased model's opinion; balanced: class-balanced accuracy where the",
        "opinion tells nothing; both on training rows held out for the choice, or on validation rows for the final models. Known: the",
        "worst (class, bias) group on the same rows, which nothing used. Seconds on one core of a machine that others used as well, with",
        "features that earlier attempts had cached.",
    ]
    for source, seed in dict.fromkeys((r["source"], r["seed"]) for r in rows):
        mine = [r for r in rows if (r["source"], r["seed"]) == (source, seed)]
        verdict = next(r for r in mine if r["kind"] == "verdict")
        lines += ["", f"## {source}", "", f"    {verdict['command']}", "", *_wrapped(verdict["reason"]), ""]
        lines += [*_wrapped(f"Gate {verdict['gate']}. {verdict['seconds']} s in all."), ""]
        tried = [r for r in mine if r["kind"] == "candidate"]
        if tried:
            lines += ["| candidate | share of the steps | score | balanced | known | seconds | what became of it |"]
            lines += ["|---|---:|---:|---:|---:|---:|---|", *(_candidate(r) for r in tried), ""]
        names = " | ".join(f"test {name.replace('_', ' ')}" for name in TEST)
        lines += [f"| final model | score | balanced | class-balanced, as it is | known | {names} | seconds |"]
        lines += [f"|---|{'---:|' * (5 + len(TEST))}"]
        for r in (r for r in mine if r["kind"] == "final"):
            values = [r[k] for k in ("score", "balanced", "class_balanced", "known", *(f"test_{n}" for n in TEST), "seconds")]
            star = " (recommended)" if r["fate"] == "recommended" else ""
            lines.append(f"| {r['name']}{star} | {' | '.join(v or '–' for v in values)} |")
    return "\n".join([*lines, ""])


def _candidate(r: dict[str, str]) -> str:
    values = [r[k] or "–" for k in ("share", "score", "balanced", "known", "seconds")]
    name = f"{r['name']} {r['settings']}".strip()
    return f"| {name} | {' | '.join(values)} | {r['fate']}: {r['reason']} |"


def _wrapped(text: str, width: int = 130) -> list[str]:
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    collect(Path(sys.argv[1]))
