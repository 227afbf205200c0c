"""docs/results/speed.md from docs/results/speed.jsonl: `python -m docs.speed`, also a part of `make docs`.

`make bench NAME=... WORDS=--record` adds lines to the file.
"""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "results"
HEAD = """# Speed

Made by `python -m docs.speed` from speed.jsonl, one line per figure, as `make bench NAME=... WORDS=--record` prints and keeps it. Times are
processor seconds of one thread; ratios are medians of alternating rounds within one run.
"""


def lines() -> list[dict[str, Any]]:
    path = HERE / "speed.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def page() -> str:
    parts = [HEAD]
    for line in lines():
        number = line.get("ratio", line.get("value"))
        bounds = [f"must be {word} {line[key]:g}" for key, word in (("least", "at least"), ("most", "at most")) if key in line]
        verdict = "" if line["holds"] is None else ", met" if line["holds"] else ", NOT met"
        ends = f" ({'; '.join(bounds)}{verdict})" if bounds else ""
        unit = f" {line['unit']}" if line.get("unit") else ""
        parts.append(f"- **{line['name']}**: {number:.4g}{unit}{ends}\n  {line['what']}")
        parts += [f"  - {name}: {_short(value)}" for name, value in line["more"].items()]
        where = f"{line['machine']}, Python {line['python']}, torch {line['torch']}, commit {line['commit']}"
        parts.append(f"  - `make bench NAME={line['bench']}`; {where}")
    return "\n".join([*parts, ""])


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(_short(v) for v in value)
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_short(v)}" for name, v in value.items())
    return str(value)


if __name__ == "__main__":
    (HERE / "speed.md").write_text(page(), encoding="utf-8")
