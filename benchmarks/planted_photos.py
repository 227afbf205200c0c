"""Does an audit find what is planted in real photographs? 30 kinds at two alignments, and 40 clean sets.

    python -m benchmarks planted_photos [--only TEXT] [--out docs/results/planted-photos.csv]

Writes every set as a folder of JPEG or PNG files, audits it, and adds a row to the CSV, from which an interrupted run resumes; then
makes the page beside it. Constants of the probes were set on every second kind; the page reports the others apart.
"""

import csv
import shutil
import statistics
import time
from pathlib import Path
from typing import Any

import unskew
from benchmarks.planted.campaign import fill, words
from benchmarks.planted.folders import Folder, plan
from benchmarks.planted.judge import judged
from benchmarks.planted.kinds import KINDS

# Every second kind was used to set constants of the probes; these were looked at too while the probes were written, and contrast when
# it was decided what a pretrained network hardly sees.
ALSO_SEEN = {"logo", "moving time stamp", "lighting gradient", "white corner mark", "frame", "contrast"}
COLUMNS = (
    "name", "group", "kind", "base", "rows", "alignment", "share", "found", "shortcut", "first", "false", "questions", "leading",
    "bias", "right", "right bias", "above chance", "seconds",
)  # fmt: skip


def main() -> None:
    asked = words(__doc__, "docs/results/planted-photos.csv")
    asked.add_argument("--trial", action="store_true", help="with the trial on pretrained features, which takes minutes a folder")
    given = asked.parse_args()
    fill(given, COLUMNS, lambda folder, place: row(folder, place, given.trial))
    given.out.with_suffix(".md").write_text(page(given.out), encoding="utf-8")


def row(folder: Folder, place: Path, trial: bool) -> dict[str, Any]:
    started = time.process_time()
    out = place.with_name(place.name + "-audit")
    shutil.rmtree(out, ignore_errors=True)
    result = judged(folder, unskew.audit(str(place), out=out, trial=trial, slices=0))
    shutil.rmtree(out)
    known = {"name": folder.name, "group": folder.group, "base": folder.base, "rows": folder.rows, "share": folder.share}
    kind = {"kind": "" if folder.kind is None else folder.kind.name, "alignment": folder.alignment}
    print(folder.name, {k: v for k, v in result.items() if k != "above chance"}, flush=True)
    return {**known, **kind, **result, "seconds": f"{time.process_time() - started:.1f}"}


def page(table: Path) -> str:
    """The page of the table."""
    with open(table, newline="") as file:
        rows = list(csv.DictReader(file))
    other = cleanlab_rows(table)
    lines = [
        "# Planted photographs",
        "",
        "What an audit finds in folders of real photographs with one planted shortcut each.",
        "",
    ]
    tried = table.stem.endswith("-trial")
    lines += [
        "Command: `make bench NAME=planted_photos"
        + (" WORDS='--trial --only 85 content --out docs/results/planted-photos-trial.csv'`" if tried else "`"),
        "",
        "With the trial on pretrained features, which tells what a simple model follows."
        if tried
        else "Without the trial (`--no-trial`), so only what cannot be part of a picture is called a shortcut; the rest is asked about. "
        "[With the trial](planted-photos-trial.md).",
        "Questions are separate things that are asked about"
        + (", but for those that the simple model hardly goes by." if tried else "; without a trial, all of them."),
        "",
    ]
    numbers = {kind.name: k for k, kind in enumerate(KINDS)}
    seen = {name for name, k in numbers.items() if k % 2 == 0} | ALSO_SEEN
    for title, some_kinds in (("all kinds", set(numbers)), ("kinds that no constant was set on", set(numbers) - seen)):
        for alignment in ("1.0", "0.85"):
            some = [r for r in rows if r["group"] == "planted" and r["alignment"] == alignment and r["kind"] in some_kinds]
            if not some:
                continue
            counts = [sum(int(r[c]) for r in some) for c in ("found", "shortcut", "first")]
            lines.append(
                f"- {title}, {100 * float(alignment):.0f} % aligned: found {counts[0]} of {len(some)}, as a shortcut {counts[1]}, "
                f"named first {counts[2]}"
            )
    for group, what in (
        ("clean", "classes by lot"),
        ("names", "classes by lot, class-bearing names"),
        ("content", "real classes"),
    ):
        some = [r for r in rows if r["group"] == group]
        if not some:
            continue
        asked = statistics.median([int(r["questions"]) for r in some])
        lines.append(
            f"- clean sets, {what}: {sum(int(r['false']) for r in some)} of {len(some)} with a false shortcut; questions, median: {asked:g}"
        )
    lines += beside(other, rows)
    head = (
        "kind",
        "aligned",
        "photographs",
        "found",
        "shortcut",
        "named first",
        "leading finding",
        "readable",
        "right finding",
        "readable",
        *(["cleanlab raises"] if other else []),
    )
    ruler = "|---|---:|---|---|---|---|---|---:|---|---:|" + ("---|" if other else "")
    lines += ["", "| " + " | ".join(head) + " |", ruler]
    for r in sorted((r for r in rows if r["group"] == "planted"), key=lambda r: (numbers[r["kind"]], -float(r["alignment"]))):
        cells = [r["kind"] + (" *" if r["kind"] in seen else ""), f"{100 * float(r['alignment']):.0f} %", r["base"]]
        cells += ["yes" if r[c] == "1" else "no" for c in ("found", "shortcut", "first")]
        cells += [r["leading"], _percent(r["bias"]), r["right"], _percent(r["right bias"])]
        if other:
            cells.append(", ".join(word.partition("=")[0] for word in other[r["name"]]["properties"].split()) or "nothing")
        lines.append("| " + " | ".join(cells) + " |")
    lines += [
        "",
        "\\* constants of the probes were set with these kinds in view. Figures of the others were seen while the probes were written, so",
        "they are not a blind test either.",
        "",
    ]
    wrong = [r for r in rows if r["group"] != "planted" and r["false"] == "1"]
    lines += [
        "## False alarms",
        "",
        *(f"- {r['name']} ({r['base']}): {r['above chance']}" for r in wrong),
        "" if wrong else "none",
        "",
    ]
    return "\n".join(lines).rstrip() + "\n"


def cleanlab_rows(table: Path) -> dict[str, dict[str, str]]:
    """What planted_cleanlab found in the same folders, by name; nothing beside a page with the trial, or if folders are lacking."""
    path = table.with_name("planted-cleanlab.csv")
    if table.stem != "planted-photos" or not path.exists():
        return {}
    with open(path, newline="") as file:
        rows = {r["name"]: r for r in csv.DictReader(file)}
    return rows if all(folder.name in rows for folder in plan()) else {}


def beside(other: dict[str, dict[str, str]], ours: list[dict[str, str]]) -> list[str]:
    """Lines on what cleanlab raises in the same folders; an audit asks where cleanlab raises, so its questions are counted too."""
    if not other:
        return []
    rows = list(other.values())
    found = []
    for alignment in ("1.0", "0.85"):
        some = [r for r in rows if r["group"] == "planted" and r["alignment"] == alignment]
        found.append(f"{sum(int(r['raised']) for r in some)} of {len(some)} at {100 * float(alignment):.0f} %")
    clean = [r for r in rows if r["group"] != "planted"]
    even = [r for r in clean if float(r["share"]) < 0.7]
    asked = sum(int(r["questions"]) > 0 or r["false"] == "1" for r in ours if r["group"] != "planted")
    alarms, of_even = (sum(int(r["false"]) for r in some) for some in (clean, even))
    return [
        f"- cleanlab {rows[0]['version']} in the same folders, any property raised: {', '.join(found)}; false alarms in {alarms} of "
        f"{len(clean)} clean sets, in {of_even} of the {len(even)} whose larger class has less than 70 %",
        f"- an audit's questions, which are the nearest thing to what cleanlab raises: in {asked} of the {len(clean)} clean sets",
        "",
        "cleanlab's column: the image properties that Datalab's default scan for spurious correlations raises (scores below 0.3), each",
        "counted as found, whether or not it is the one that was planted. Its score is in effect the error of a reader of one property:",
        "the accuracy it is compared with is taken from the number of the largest class, not from its share, so in a set with a class of",
        "more than 70 % every property is raised. It has no properties for marks, encoders, cameras or tags. Made by",
        "`make bench NAME=planted_cleanlab`; every score below the threshold is in [planted-cleanlab.csv](planted-cleanlab.csv).",
    ]


def _percent(text: str) -> str:
    return f"{100 * float(text):.0f} %" if text else ""


if __name__ == "__main__":
    main()
