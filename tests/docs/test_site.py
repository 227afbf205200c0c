"""The site builds without a dead link and without the network; the code on its pages runs."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

DOCS = Path("docs")


def test_the_site_builds_without_a_dead_link(tmp_path):
    pytest.importorskip("mkdocs")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(words, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    pages = list((tmp_path / "site").rglob("*.html"))
    assert {"index.html", "choose.html", "changelog.html", "cite.html", "concepts.html"} <= {page.name for page in pages}
    # Nothing is fetched from elsewhere when a page is opened: scripts, styles and pictures lie beside it.
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r"""<(?:script|img|link rel="stylesheet")[^>]*(?:src|href)="(https?:[^"]*)""", text), page.name
    assert "[Unreleased]" in (tmp_path / "site" / "changelog.html").read_text(encoding="utf-8")


def test_the_suite_on_the_page_is_a_suite(tmp_path):
    from unskew.suites.reader import read

    text = re.search(r"```toml\n(.*?)```", (DOCS / "suites.md").read_text(encoding="utf-8"), flags=re.DOTALL).group(1)
    (tmp_path / "mine.toml").write_text(text)
    assert set(tomllib.loads(text)["method"]) == {"erm", "lff"}
    assert read(str(tmp_path / "mine.toml"))


def test_commands_on_the_pages_name_verbs_and_options_that_exist():
    from unskew.cli import app

    verbs = {c.name or c.callback.__name__: c.callback for c in app.registered_commands}
    shown = [
        line.strip()
        for page in ("index.md", "suites.md", "choose.md", "faq.md", "compare.md")
        for block in re.findall(r"```sh\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)
        for line in block.splitlines()
        if line.startswith("unskew ")
    ]
    assert len(shown) >= 6
    cli = (DOCS / "cli.md").read_text(encoding="utf-8")
    for line in shown:
        verb, *words = line.split()[1:]
        assert verb in verbs, line
        for option in (w for w in words if w.startswith("--")):
            assert option in cli, line
