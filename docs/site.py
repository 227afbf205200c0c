"""A hook of mkdocs: the changelog, which lies above docs/, becomes a page of the site."""

from pathlib import Path
from typing import Any

CHANGELOG = Path(__file__).parent.parent / "CHANGELOG.md"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The text of a page, before it is rendered."""
    if page.file.src_uri != "changelog.md":
        return markdown
    return CHANGELOG.read_text(encoding="utf-8").replace("](docs/", "](")
