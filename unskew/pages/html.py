"""What every page is made with: Jinja with everything escaped, style and script inside, no external address.

The script is named by its digest in the page's content security policy: no other runs, whatever a file or a class is called.
"""

import base64
import hashlib
import math
import shlex
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from unskew.pages.first import First
from unskew.pages.verdict import percent

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
        "figure": _figure,
        "tight": lambda text: str(text).replace(" %", "\u00a0%"),
    }
    return templates


def page(template: str, *, kind: str, name: str, about: str, first: First, footer: str, **content: Any) -> str:
    """A page that extends base.html: `kind` and `name` make its title, `about` the line beside it, `first` its first screen."""
    script = (_HERE / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment().get_template(template).render(
        kind=kind, name=name, about=about, first=first, footer=footer, sections=[], isnan=lambda v: v is None or math.isnan(v),
        style=Markup((_HERE / "page.css").read_text(encoding="utf-8")), script=Markup(script), script_hash=f"sha256-{digest}", **content,
    )  # fmt: skip


def _percent(value: float | None, digits: int = 1) -> str:
    return "–" if value is None or math.isnan(value) else percent(value, digits)


def _points(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{100 * value:.1f}"


def _area(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.2f}"


def _figure(value: Any) -> str:
    """A value in the table behind a chart."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


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
