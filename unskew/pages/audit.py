"""The audit's page: the same style and rules as the report's."""

from markupsafe import Markup

from unskew.pages import charts
from unskew.pages.html import environment, style
from unskew.records import Audit

MOST_CLASSES = 40  # columns of the heat map


def render_audit(audit: Audit) -> str:
    """The page of an audit."""
    found = audit.json()
    top = found["representations"][:12]
    return environment().get_template("audit.html").render(
        found=found,
        style=style(),
        classes=list(top[0]["per_class"])[:MOST_CLASSES] if top else [],
        top=top,
        chart=Markup(charts.ranking(found["representations"])),
    )  # fmt: skip
