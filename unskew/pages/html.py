"""The report page: Jinja with everything escaped, inline style, no script, no external address."""

import math
import shlex
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from unskew.measure.reliance import NAMES
from unskew.pages import charts
from unskew.pages.collect import OF_SETS, leakage_notes
from unskew.pages.reliance import used_plane, used_points
from unskew.pages.verdict import percent
from unskew.records import AVERAGES

_HERE = Path(__file__).parent
MEANING = {
    "plain": "over all rows",
    "class_balanced": "mean over classes",
    "group_mean": "mean over (class, bias) groups",
    "worst_group": "lowest group of at least 30 rows",
    "aligned": "rows whose bias points to their class",
    "conflicting": "rows whose bias points elsewhere",
    "unbiased": "mean over groups of more than 10 rows",
}


def environment() -> Environment:
    """The templates; everything is escaped, and an unknown name is an error."""
    templates = Environment(
        loader=PackageLoader("unskew.pages", ""), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    templates.filters |= {
        "percent": _percent,
        "shade": shade,
        "warmth": warmth,
        "command": _command,
        "points": _points,
        "area": _area,
        "tile": tile,
    }
    return templates


def style() -> Markup:
    return Markup((_HERE / "page.css").read_text(encoding="utf-8"))


def render(content: dict[str, Any]) -> str:
    runs = content["runs"]
    sets = all(run["data"]["multi_label"] for run in runs)  # most averages need one class per row
    return environment().get_template("report.html").render(
        runs=runs,
        version=content["unskew"],
        style=style(),
        averages=OF_SETS if sets else AVERAGES,
        notes=leakage_notes,
        randomised=any(run["metrics"].get("leakage", {}).get("randomisation") for run in runs),
        meaning=MEANING,
        loss=Markup(charts.curves(runs, "train")),
        accuracy=Markup(charts.curves(runs, "val")),
        plane_bias=next((run["metrics"]["leakage"].get("bias", "") for run in runs if "leakage" in run["metrics"]), ""),
        plane=Markup(charts.plane(charts.plane_points(runs))),
        corrupted=[run for run in runs if "corruptions" in run["metrics"]],
        reliability=lambda by_value: Markup(charts.reliability(by_value)),
        gain=Markup(charts.gain(runs)),
        audit=content.get("audit"),
        shortcuts=Markup(charts.ranking(content["audit"]["representations"][:12])) if content.get("audit") else "",
        repairs=content.get("repairs", []),
        taken_away=NAMES,
        used_plane=Markup(used_plane(used_points(runs, content.get("audit")))),
        isnan=lambda v: v is None or math.isnan(v),
    )  # fmt: skip


def _percent(value: float | None, digits: int = 1) -> str:
    return "–" if value is None or math.isnan(value) else percent(value, digits)


def _points(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{100 * value:.1f}"


def _area(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.2f}"


def _command(text: str | list[str]) -> str:
    return text if isinstance(text, str) else shlex.join(text)


def shade(value: float | None) -> str:
    """Background of a heat-map cell: from brick (0) through sand to teal (1), all readable with dark text."""
    if value is None or math.isnan(value):
        return "background:#f1f3f5"
    low, middle, high = (222, 110, 86), (246, 226, 183), (98, 178, 165)
    a, b, t = (low, middle, 2 * value) if value < 0.5 else (middle, high, 2 * value - 1)
    mixed = ",".join(str(round(p + (q - p) * t)) for p, q in zip(a, b, strict=True))
    return f"background:rgb({mixed})"


def tile(value: float | None, level: float | None) -> str:
    """Background of a tile of the position map: white up to the level of chance, brick where it tells everything."""
    above = 0.0 if value is None or level is None or value <= level else (value - 0.5) / 0.5
    return warmth(above)


def warmth(value: float | None) -> str:
    """Background of a share where lower is better: white (0) to brick (1)."""
    if value is None or math.isnan(value):
        return "background:#f1f3f5"
    t = min(max(value, 0.0), 1.0)
    mixed = ",".join(str(round(250 + (q - 250) * t)) for q in (222, 110, 86))
    return f"background:rgb({mixed})"
