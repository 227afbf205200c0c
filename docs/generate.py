"""Write the pages that come from the source: commands, cards, settings, and the picture of the import graph.

python -m docs.generate
"""

import os
import subprocess
import sys
from pathlib import Path

from docs import auto_runs, choose, costs, field_test, import_graph, robustness, scale, speed
from unskew.cli import app
from unskew.core import reference, registry

HERE = Path(__file__).parent


def cli_page() -> str:
    """Every verb's own help."""
    parts = ["# Command line\n\nMade by `make docs` from the commands themselves.\n"]
    plain = os.environ | {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "110"}
    for verb in (c.name or c.callback.__name__ for c in app.registered_commands if c.callback):
        shown = subprocess.run(
            [sys.executable, "-m", "unskew", verb, "--help"], capture_output=True, text=True, env=plain, check=True
        ).stdout
        text = "\n".join(line.rstrip() for line in shown.replace("python -m unskew", "unskew").strip().splitlines())
        parts.append(f"## unskew {verb}\n\n```\n{text}\n```\n")
    return "\n".join(parts)


def cards_page() -> str:
    """The card of every component: what `unskew explain` prints."""
    parts = ["# Cards\n\nMade by `make docs` from the source; `unskew explain NAME` prints one.\n"]
    for kind in registry.KINDS:
        parts.append(f"## {kind}\n")
        parts += [f"### {name}\n\n```\n{registry.card(kind, name)}\n```\n" for name in registry.names(kind)]
    return "\n".join(parts)


def settings_page() -> str:
    """Every setting of a run and of the components: what `unskew list settings` and `unskew explain NAME` print."""
    parts = ["# Settings\n\nMade by `make docs` from the source; `unskew explain train.batch` prints one.\n"]
    parts.append(_table("A run", reference.run_settings()))
    for kind in reference.COMPONENTS:
        for name in registry.names(kind):
            found = reference.component_settings(kind, name)
            if found:
                parts.append(_table(f"{registry.singular(kind)}: {name}", found))
    return "\n".join(parts)


def _table(title: str, settings: list[reference.Setting]) -> str:
    """A list, not a table: a line of Markdown cannot be broken inside a table."""
    rows = [f"- `{s.name}` = `{s.shown}` (`{s.type}`)\n  {s.meaning}" for s in settings]
    return "\n".join([f"## {title}", "", *rows, ""])


def pages() -> dict[str, str]:
    """Every generated file below docs/ and its content."""
    return {
        "cli.md": cli_page(),
        "cards.md": cards_page(),
        "settings.md": settings_page(),
        "choose.md": choose.page(),
        "cluster.md": costs.page(),
        "floors.svg": import_graph.picture(),
        "results/auto.md": auto_runs.page(),
        "results/field-test.md": field_test.page(),
        "results/speed.md": speed.page(),
        **robustness.pages(),
        **scale.pages(),
    }


def main() -> None:
    for name, text in pages().items():
        (HERE / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
