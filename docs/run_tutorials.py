"""Run the tutorials and write their pages: each script's text, code and what it printed.

python -m docs.run_tutorials [NAME ...]   (UNSKEW_SMOKE=1: small sizes, and no page is written)

A script in docs/tutorials is also a notebook: `# %%` starts a cell and `# %% [markdown]` a cell of text, as editors and jupytext
read it.
"""

import contextlib
import io
import os
import re
import sys
import tempfile
import textwrap
from pathlib import Path

HERE = Path(__file__).parent / "tutorials"
WIDTH = 130  # characters of a printed line
NAMES = ("folder", "column", "method")


def cells(text: str) -> list[tuple[str, str]]:
    """The (kind, content) of every cell; kind is "text" or "code"."""
    found = []
    for head, body in re.findall(r"^# %%(.*)\n((?:(?!# %%).*\n?)*)", text, flags=re.MULTILINE):
        if "markdown" in head:
            lines = [line.removeprefix("#").removeprefix(" ") for line in body.strip().splitlines()]
            found.append(("text", "\n".join(lines)))
        else:
            found.append(("code", body.strip()))
    return found


def run(name: str) -> str:
    """Run a tutorial in an empty folder; the Markdown of its page."""
    space: dict[str, object] = {"__name__": "__main__"}
    parts, before = [], Path.cwd()
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        try:
            for kind, content in cells((HERE / f"{name}.py").read_text(encoding="utf-8")):
                if kind == "text":
                    parts.append(content)
                    continue
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    exec(compile(content, f"{name}.py", "exec"), space)
                parts.append(f"```python\n{content}\n```")
                if printed.getvalue().strip():
                    parts.append(f"```text\n{_folded(printed.getvalue().rstrip())}\n```")
        finally:
            os.chdir(before)
    made = f"*This page is made by `python -m docs.run_tutorials {name}` from `docs/tutorials/{name}.py`.*"
    return "\n\n".join([*parts, made]) + "\n"


def _folded(text: str) -> str:
    """Long lines broken, as a narrow window would show them."""
    return "\n".join(
        "\n".join(textwrap.wrap(line, WIDTH, subsequent_indent="    ")) if len(line) > WIDTH else line
        for line in text.splitlines()
    )


def main() -> None:
    for name in sys.argv[1:] or NAMES:
        page = run(name)
        if not os.environ.get("UNSKEW_SMOKE"):
            (HERE / f"{name}.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
