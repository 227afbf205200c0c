"""docs/results/scale.md and scale.svg from docs/results/scale.jsonl: `python -m docs.scale`, also a part of `make docs`.

`python -m benchmarks scale --record` adds lines to the file.
"""

import json
import math
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "results"
STEPS = ("audit", "repair", "gradients")
PHOTOS = "photos"
COLOURS = {"audit": "#4a6fa5", "repair": "#62b2a5", "gradients": "#de6e56"}
MOST_MEMORY, MOST_RATIO = 4.0, 12.0  # gigabytes at 1e7 rows, and times the seconds of 1e6
HEAD = """# Scale

Made by `python -m docs.scale` from scale.jsonl, a line per step, as `python -m benchmarks scale --rows 1e5,1e6,1e7 --record` keeps it.
Rows are generated vectors of 64 numbers in Parquet parts, ten classes, one bias column. `audit` is the whole verb (trial and slices
as well), `repair` is REPAIR on the vectors, `gradients` scores them by the gradients of a small network trained on 100,000 rows; each
measures what can be read before and after. `photos` is an audit of generated 224-pixel JPEGs, probes only, with two worker processes.
Seconds are those of the clock; processor seconds are those of all threads and leave out what else the machine did; gigabytes are the
largest resident memory of the process. Throughput on a cluster, and folders of 200,000 files: [speed.md](speed.md).

![Processor seconds and memory against rows](scale.svg)
"""


def lines() -> list[dict[str, Any]]:
    path = HERE / "scale.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def page() -> str:
    known = {(line["what"], line["rows"]): line for line in lines()}
    parts = [
        HEAD,
        "| step | rows | seconds | processor seconds | gigabytes | times the step before |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for what in (*STEPS, PHOTOS):
        before = None
        for line in (known[key] for key in sorted(known) if key[0] == what):
            ratio = "" if before is None else f"{line['processor'] / before['processor']:.1f}"
            rows = f"{line['rows']:,}"
            parts.append(
                f"| {what} | {rows} | {line['seconds']:.0f} | {line['processor']:.0f} | {line['gigabytes']:.2f} | {ratio} |"
            )
            before = line
    parts += ["", *_bounds(known), *_slopes(known), *_steps(), "", *_arithmetic(known), "Measured on:", ""]
    where = sorted(
        {f"{line['machine']}, Python {line['python']}, torch {line['torch']}, commit {line['commit']}" for line in known.values()}
    )
    return "\n".join([*parts, *(f"- {place}" for place in where), ""])


def _bounds(known: dict[tuple[str, int], dict[str, Any]]) -> list[str]:
    """What 1e7 rows must keep to, once they are measured."""
    told = []
    for what in STEPS:
        large, before = known.get((what, 10**7)), known.get((what, 10**6))
        if large is None or before is None:
            told.append(f"- {what}, 1e7 rows: not measured yet.")
            continue
        ratio, clock = (large[key] / before[key] for key in ("processor", "seconds"))
        memory = f"{large['gigabytes']:.2f} GB (must be under {MOST_MEMORY:g}: {_met(large['gigabytes'] < MOST_MEMORY)})"
        told.append(
            f"- {what}, 1e7 rows: {memory}, {ratio:.1f} times the processor seconds of 1e6 "
            f"(must be within {MOST_RATIO:g}: {_met(ratio <= MOST_RATIO)}), {clock:.1f} times those of the clock."
        )
    return told


def _met(holds: bool) -> str:
    return "met" if holds else "NOT met"


def slope(known: dict[tuple[str, int], dict[str, Any]], what: str, key: str) -> float | None:
    """What another million rows add, from the two largest sizes."""
    sizes = sorted(rows for name, rows in known if name == what)
    if len(sizes) < 2:
        return None
    low, high = (known[what, rows] for rows in sizes[-2:])
    return float(high[key] - low[key]) / (high["rows"] - low["rows"]) * 1e6


def _slopes(known: dict[tuple[str, int], dict[str, Any]]) -> list[str]:
    told = []
    for what in (*STEPS, PHOTOS):
        seconds, memory = slope(known, what, "processor"), slope(known, what, "gigabytes")
        if seconds is None or memory is None:
            continue
        if what == PHOTOS:  # so few rows hold no memory that could be told from what a batch of them takes
            told.append(f"- {what}: another million take {seconds:,.0f} processor seconds, {seconds / 3600:.1f} core hours.")
        else:
            told.append(f"- {what}: another million rows take {seconds:.1f} processor seconds and {memory:.2f} GB.")
    return told


def _arithmetic(known: dict[tuple[str, int], dict[str, Any]]) -> list[str]:
    """What 1e8 and 1e9 rows would take, if the slopes hold."""
    told = [
        "## Arithmetic for 1e8 and 1e9 rows",
        "",
        "Straight lines through the two largest sizes above, no more than that. A vector of 64 numbers has 256 bytes: in the parts,",
        "once more in the cache, and over the network to every node that reads it (at 125 MB/s, a gigabit).",
        "",
        *_checked(known),
        "",
        "| step | rows | core hours | memory of the process (GB) | vectors (GB) | hours to send them once |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for what in (*STEPS, PHOTOS):
        seconds, memory = slope(known, what, "processor"), slope(known, what, "gigabytes")
        if seconds is None or memory is None:
            continue
        last = max((line for (name, _), line in known.items() if name == what), key=lambda line: line["rows"])
        for rows in (1e8, 1e9):
            more = (rows - last["rows"]) / 1e6
            hours, held = (last["processor"] + more * seconds) / 3600, last["gigabytes"] + more * max(memory, 0.0)
            cells = ["", "", ""]
            if what != PHOTOS:
                cells = [f"{held:,.0f}", f"{256 * rows / 1e9:,.0f}", f"{256 * rows / 125e6 / 3600:.1f}"]
            told.append(f"| {what} | {rows:.0e} | {hours:,.1f} | {' | '.join(cells)} |".replace("e+0", "e"))
    return [*told, ""]


def _checked(known: dict[tuple[str, int], dict[str, Any]]) -> list[str]:
    """What the line through 1e5 and 1e6 rows says of 1e7, beside what was measured."""
    told = []
    for what in ("audit", "gradients"):  # REPAIR's steps do not grow with its rows
        small, middle, large = (known.get((what, 10**k)) for k in (5, 6, 7))
        if small is None or middle is None or large is None:
            continue
        said = {
            key: middle[key] + 10 * (middle[key] - small[key]) for key in ("processor", "gigabytes")
        }  # 9e6 more rows are ten times 9e5
        told.append(
            f"- Checked: the line through 1e5 and 1e6 says of {what} at 1e7: {said['processor']:.0f} processor seconds and "
            f"{said['gigabytes']:.1f} GB; measured: {large['processor']:.0f} and {large['gigabytes']:.1f}."
        )
    return told


def _steps() -> list[str]:
    """How many steps REPAIR makes, by its own schedule."""
    from unskew.repairs.repair import Config, schedule_for

    cfg = Config()
    told = []
    for power in (5, 6, 7, 8, 9):
        epochs = schedule_for(10**power, cfg)[0]
        told.append(f"1e{power}: {epochs} x {-(-(10**power) // cfg.batch):,}")
    return [
        f"- REPAIR's time follows its steps (epochs x batches of {cfg.batch}). Its schedule bounds them: 20,000 to 200,000 up to 128,000",
        "  rows (the paper's 200 epochs where they fit), then 20,000 or one pass, whichever is more.",
        f"  Steps: {'; '.join(told)}.",
    ]


def picture() -> str:
    """Two logarithmic panels: processor seconds and gigabytes against rows."""
    known, width, height = lines(), 720, 300
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for panel, (key, title, decades) in enumerate(
        (("processor", "processor seconds", (0, 4)), ("gigabytes", "gigabytes", (-1, 1)))
    ):
        left, top, wide, tall = 50 + 360 * panel, 30, 280, 220

        def x(rows: float, left: int = left, wide: int = wide) -> float:
            return left + wide * (math.log10(rows) - 4.8) / 2.4

        def y(value: float, decades: tuple[int, int] = decades, top: int = top, tall: int = tall) -> float:
            return top + tall * (1 - (math.log10(max(value, 1e-9)) - decades[0]) / (decades[1] - decades[0]))

        parts.append(f'<text x="{left}" y="18" fill="#1d2730">{title}</text>')
        parts += [
            f'<line x1="{left}" x2="{left + wide}" y1="{y(10.0**d):.1f}" y2="{y(10.0**d):.1f}" stroke="#e4e7eb"/>'
            f'<text x="{left - 6}" y="{y(10.0**d) + 4:.1f}" text-anchor="end" fill="#52606d">{10.0**d:g}</text>'
            for d in range(decades[0], decades[1] + 1)
        ]
        parts += [
            f'<text x="{x(10.0**d):.1f}" y="{top + tall + 16}" text-anchor="middle" fill="#52606d">1e{d}</text>'
            for d in (5, 6, 7)
        ]
        for k, what in enumerate(STEPS):
            points = [(x(line["rows"]), y(line[key])) for line in sorted(known, key=lambda s: s["rows"]) if line["what"] == what]
            path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[what]}" stroke-width="2"/>')
            parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="4" fill="{COLOURS[what]}"/>' for a, b in points]
            if panel == 0:
                parts.append(f'<text x="{left + 10 + 90 * k}" y="{height - 8}" fill="{COLOURS[what]}">{what}</text>')
    return "\n".join([*parts, "</svg>", ""])


def pages() -> dict[str, str]:
    """The page and its plot, below docs/."""
    return {"results/scale.md": page(), "results/scale.svg": picture()}


if __name__ == "__main__":
    for name, content in pages().items():
        (HERE.parent / name).write_text(content, encoding="utf-8")
