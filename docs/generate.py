"""Write the pages that come from the source: docs/cli.md and docs/cards.md.

python docs/generate.py
"""

import os
import subprocess
import sys
from pathlib import Path

from unskew import registry
from unskew.cli import app

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


def main() -> None:
    (HERE / "cli.md").write_text(cli_page(), encoding="utf-8")
    (HERE / "cards.md").write_text(cards_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
