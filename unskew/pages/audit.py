"""The page of an audit, in the style of the report."""

from markupsafe import Markup

from unskew.pages import charts
from unskew.pages.html import environment, style
from unskew.records import Audit

MOST_CLASSES = 40  # columns of the heat map


def render_audit(audit: Audit) -> str:
    """The page of an audit."""
    content = audit.json()
    top = content["representations"][:12]
    return environment().get_template("audit.html").render(
        audit=content,
        style=style(),
        classes=list(top[0]["per_class"])[:MOST_CLASSES] if top else [],
        top=top,
        duplicates=audit.duplicates.sentence if audit.duplicates else "",
        chart=Markup(charts.ranking([r for r in content["representations"] if r["verdict"] != "clean"] or content["representations"][:6])),
    )  # fmt: skip
