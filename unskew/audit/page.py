"""The audit's page: the same style and rules as the report's."""

from typing import Any

from markupsafe import Markup

from unskew.report import charts
from unskew.report.html import environment, style

MOST_CLASSES = 40  # columns of the heat map


def render_audit(found: dict[str, Any]) -> str:
    top = found["representations"][:12]
    return environment("unskew.audit").get_template("audit.html").render(
        found=found,
        style=style(),
        classes=list(top[0]["per_class"])[:MOST_CLASSES] if top else [],
        top=top,
        chart=Markup(charts.ranking(found["representations"])),
    )  # fmt: skip
