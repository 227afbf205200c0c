"""The tutorials run from their first line to their last, at a small size; their pages are of the scripts as they are."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from docs.run_tutorials import HERE, NAMES, cells


@pytest.mark.parametrize("name", NAMES)
def test_a_tutorial_runs(name, tmp_path):
    words = [sys.executable, "-m", "docs.run_tutorials", name]
    where = {"UNSKEW_SMOKE": "1", "UNSKEW_CACHE": os.environ.get("UNSKEW_CACHE", ""), "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(words, env=os.environ | {k: v for k, v in where.items() if v}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("name", NAMES)
def test_its_page_has_the_code_of_the_script(name):
    page = (HERE / f"{name}.md").read_text(encoding="utf-8")
    for kind, content in cells((HERE / f"{name}.py").read_text(encoding="utf-8")):
        assert (content if kind == "text" else f"```python\n{content}\n```") in page


def test_cells_are_text_and_code():
    assert cells("# %% [markdown]\n# # Title\n#\n# Words\n\n# %%\nx = 1\n\nprint(x)\n") == [
        ("text", "# Title\n\nWords"),
        ("code", "x = 1\n\nprint(x)"),
    ]
