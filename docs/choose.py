"""The measured part of docs/choose.md, from the field test's committed results: `make docs` writes it between the page's two marks."""

import statistics
from pathlib import Path

from docs import field_test

PAGE = Path(__file__).parent / "choose.md"
BEGIN, END = "<!-- measured -->", "<!-- end of measured -->"
WORTH = 1.0  # points below which a change is none


def page() -> str:
    return filled(PAGE, table(field_test.read()))


def filled(path: Path, measured: str) -> str:
    """The page with what is between its two marks made again."""
    before, rest = path.read_text(encoding="utf-8").split(BEGIN)
    return f"{before}{BEGIN}\n\n{measured}\n\n{END}{rest.split(END)[1]}"


def table(rows: field_test.Rows) -> str:
    """One line per method: what it changes beside the better of two plain trainings, where there is a shortcut and where there is none."""
    lines = ["| method | gains, with a shortcut | harms, with a shortcut | without one |", "|---|---|---|---|"]
    for method in field_test.METHODS:
        if method in ("erm", "plain"):
            continue
        biased = changes(rows, method, unbiased=False)
        twins = changes(rows, method, unbiased=True)
        if biased or twins:
            gains = {name: v for name, v in biased.items() if v >= WORTH}
            harms = {name: v for name, v in biased.items() if v <= -WORTH}
            shown = f"{len(gains)} of {len(biased)}: {_range(gains)}" if gains else f"0 of {len(biased)}" if biased else "–"
            harmed = f"{len(harms)} of {len(biased)}: {_range(harms)}" if len(harms) > 2 else _listed(harms) or "none"
            lines.append(f"| `{method}` | {shown} | {harmed if biased else '–'} | {_range(twins) or '–'} |")
    return "\n".join(lines)


def changes(rows: field_test.Rows, method: str, unbiased: bool) -> dict[str, float]:
    """Points that a method is above the better one of erm and plain, by set and alignment; the mean over seeds that all have."""
    found = {}
    for data, at in sorted({(r["data"], r["at"]) for r in rows}):
        figure = field_test.metric(data, at)
        plain = [v for m in ("erm", "plain") if (v := field_test.cell(rows, data, at, m, figure))]
        own = field_test.cell(rows, data, at, method, figure)
        if own and plain and (at in field_test.UNBIASED) is unbiased:
            name = data if unbiased else f"{data} {100 * float(at):g} %"
            found[name] = statistics.mean(own) - max(statistics.mean(v) for v in plain)
    return found


def _listed(found: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:+.1f}" for name, value in sorted(found.items(), key=lambda item: -abs(item[1])))


def _range(found: dict[str, float]) -> str:
    """The least and the most, each with its place: all of them are on the page of the field test."""
    if len(found) < 3:
        return _listed(found)
    least, most = min(found, key=lambda name: found[name]), max(found, key=lambda name: found[name])
    return f"{found[least]:+.1f} ({least}) to {found[most]:+.1f} ({most})"
