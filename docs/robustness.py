"""The tables of docs/results/fuzz.md and kills.md, from the CSV files beside them; the text around them is written by hand.

python -m docs.generate
"""

import csv
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent / "results"
START, END = "<!-- made by make docs from {} -->", "<!-- until here -->"
Rows = list[dict[str, str]]


def pages() -> dict[str, str]:
    """Both pages below docs/, with their tables as the files have them."""
    return {"results/fuzz.md": _filled("fuzz", fuzz_table), "results/kills.md": _filled("kills", kills_table)}


def _filled(name: str, table: Callable[[Rows], str]) -> str:
    text = (HERE / f"{name}.md").read_text(encoding="utf-8")
    start = START.format(f"{name}.csv")
    before, _, rest = text.partition(start)
    _, _, after = rest.partition(END)
    with (HERE / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return f"{before}{start}\n\n{table(rows)}\n{END}{after}"


def fuzz_table(rows: Rows) -> str:
    """Kinds and counts, their sum, and what each kind is."""
    counts = list(rows[0])[2:]
    lines = ["| kind | " + " | ".join(c.replace("_", " ") for c in counts) + " |", "|---|" + "---:|" * len(counts)]
    lines += ["| " + " | ".join([r["kind"], *(r[c] for c in counts)]) + " |" for r in rows]
    lines.append("| all | " + " | ".join(str(sum(int(r[c]) for r in rows)) for c in counts) + " |")
    kinds = [f"- *{r['kind']}*: {r['what'][0].lower() + r['what'][1:]}" for r in rows]
    return "\n".join([*lines, "", *kinds, ""])


def kills_table(rows: Rows) -> str:
    """Commands with the kills that landed, and their sum."""
    signals = ("SIGKILL", "SIGTERM", "SIGINT")
    landed = sum(int(r[s]) for r in rows for s in signals)
    lines = [f"{landed} kills landed in {len(rows)} commands.", ""]
    lines += [
        "| command | seconds | SIGKILL | SIGTERM | SIGINT | equal to the bit | files compared |",
        "|---|---:|---:|---:|---:|---|---:|",
    ]
    for r in rows:
        equal = "yes" if r["equal_to_the_bit"] == "True" else "**no**"
        lines.append("| " + " | ".join([r["command"], r["seconds"], *(r[s] for s in signals), equal, r["files_compared"]]) + " |")
    whole = "yes" if all(r["equal_to_the_bit"] == "True" for r in rows) else "**no**"
    totals = " | ".join(str(sum(int(r[s]) for r in rows)) for s in signals)
    return "\n".join([*lines, f"| all {len(rows)} | | {totals} | {whole} | |", ""])
