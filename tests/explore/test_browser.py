"""The explorer in a browser: filter, brush, tag thirty photographs, answer ten questions; nothing leaves the machine."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image
from sklearn.metrics import roc_auc_score

from unskew.data.sources import load
from unskew.data.tags import tags_path
from unskew.explore.tags import Tags

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip
AXE = Path(os.environ.get("UNSKEW_AXE", Path(__file__).parents[2] / ".pages-test/node_modules/axe-core/axe.min.js"))
LONG = 240_000  # milliseconds: two cores may be busy


@contextmanager
def served(*words):
    """The command in a process of its own; what it printed as JSON."""
    command = [sys.executable, "-m", "unskew", "explore", *map(str, words), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
    text = ""
    while not text.rstrip().endswith("}"):
        line = process.stdout.readline()
        assert line, process.stderr.read()
        text += line
    try:
        yield json.loads(text)
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        process.stdout.close()
        process.stderr.close()


@pytest.fixture
def browser():
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed and could not be: the explorer is not looked at in a browser")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        started = p.chromium.launch(executable_path=chromium, args=FLAGS)
        yield started
        started.close()


def opened(browser, address, width, noted):
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.set_default_timeout(LONG)
    page.on("console", lambda m: noted.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda e: noted.append(str(e)))
    page.on("request", lambda r: None if r.url.startswith(address) or r.url.startswith("data:") else noted.append(r.url))
    page.goto(address)
    page.wait_for_selector("body[data-ready]")
    return page


def serious(page):
    """What axe-core finds wrong with the page as it is; nothing where it is not installed (make pages-test installs it)."""
    if not AXE.is_file():
        return []
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run().then(r => r.violations.map(v => [v.impact, v.id, v.nodes.slice(0, 3).map(n => n.html)]))")
    return [v for v in found if v[0] in ("serious", "critical")]


def rows_shown(page):
    return int(page.inner_text("#count").partition(" ")[0].replace(",", ""))


def test_filter_brush_tag_and_spread_in_a_browser(photos, browser):
    root, truth = photos
    data = load(str(root))
    noted = []
    with served(root, "--write") as said:
        page = opened(browser, said["address"], 1280, noted)
        page.click(".facet .value[data-value=temple]")
        page.wait_for_selector(".chip")
        assert rows_shown(page) == int((data.y == data.classes.index("temple")).sum())
        page.click(".chip")
        page.wait_for_selector(".chip", state="detached")
        page.wait_for_selector("#map[data-version]")
        area = page.locator("#points").bounding_box()
        page.mouse.move(area["x"] + 4, area["y"] + 4)
        page.mouse.down()
        page.mouse.move(area["x"] + area["width"] / 2, area["y"] + area["height"] - 4, steps=3)
        page.mouse.up()
        page.wait_for_selector(".chip")
        assert 0 < rows_shown(page) < len(data)
        assert serious(page) == []
        page.click(".chip")
        page.wait_for_selector(".chip", state="detached")
        _tag(page, truth)
        page.wait_for_selector(".leakage")
        page.wait_for_selector(".busy", state="detached")
        shown = float(page.get_attribute(".leakage", "data-value"))
        other = opened(browser, said["address"], 390, noted)  # a second browser sees the tag, and fits on a telephone
        other.click("#tabs [data-to=tags]")
        other.wait_for_selector(".card")
        for tab in ("rows", "filters", "map", "tags"):
            other.click(f"#tabs [data-to={tab}]")
            assert other.evaluate("document.documentElement.scrollWidth") == 390
            assert serious(other) == []
        assert serious(page) == []
        for width in (1280, 1920):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") == width
        page.set_viewport_size({"width": 1280, "height": 800})
        if os.environ.get("UNSKEW_SCREENSHOTS"):
            page.evaluate("document.getElementById('grid').scrollTop = 0")
            page.screenshot(path=os.path.join(os.environ["UNSKEW_SCREENSHOTS"], "explore.png"))
    assert not noted
    table = pl.read_parquet(tags_path(str(root)))
    assert int(table["watermark by hand"].is_not_null().sum()) == 40
    sure = table["watermark certainty"].to_numpy()
    p = np.where(table["watermark"].to_numpy() == "yes", sure, 1 - sure)
    assert roc_auc_score([truth[name] for name in data.file_names], p) >= 0.95
    from unskew.measure.leakage import dataset_leakage
    from unskew.verbs.audit import audited_rows

    tagged = load(str(root), bias="watermark")
    index = audited_rows(tagged)
    assert shown == dataset_leakage(tagged.y[index], tagged.bias[index, 0]).value


def test_two_browsers_that_mark_at_the_same_moment_lose_nothing(photos, browser):
    root, _ = photos
    noted = []
    with served(root, "--write") as said:
        pages = [opened(browser, said["address"], 1280, noted) for _ in range(2)]
        for turn in range(3):
            for k, page in enumerate(pages):
                page.click(f"#row-{2 * turn + k}")
                page.fill("#tag-name", "mark")
            for page in pages:  # neither waits for the other's answer
                page.evaluate("document.getElementById('has').click()")
            for page in pages:
                page.wait_for_function("() => document.querySelector('.chosen').textContent.startsWith('Click')")
        hand = pl.read_parquet(tags_path(str(root)))["mark by hand"]
    assert hand.is_not_null().arg_true().to_list() == list(range(6))
    assert not noted


def test_hostile_names_are_shown_as_text(tmp_path, own_cache, browser):
    name, noted = "<img src=x onerror=document.title=1>", []
    for k in range(6):
        for c in (name, "b"):
            (tmp_path / "set" / c).mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (16, 16), (k * 20, 0, 0)).save(tmp_path / "set" / c / f"<b>{k}.png")
    with served(tmp_path / "set", "--write") as said:
        page = opened(browser, said["address"], 1280, noted)
        page.click(".facet .value >> nth=0")
        page.wait_for_selector(".chip")
        page.dblclick(".cell >> nth=0")
        page.wait_for_selector("dialog[open]")
        shown = page.evaluate("document.body.textContent")
        assert name in shown
        assert "<b>0.png" in shown
        assert page.evaluate("document.querySelectorAll('[onerror], dialog b, .cell b').length") == 0
        assert page.title() != "1"
        assert serious(page) == []
    assert not noted


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_of_every_kind_can_be_read(photos, browser, scheme):
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: make pages-test")
    root, _ = photos
    noted = []
    tags = Tags(tags_path(str(root)), load(str(root)), write=True)
    tags.mark("mark", [0, 1], True)
    tags.mark("mark", [2, 3], False)
    tags.drop([4], True)
    tags.relabel([5], "temple")
    with served(root, "--write") as said:
        page = opened(browser, said["address"], 1280, noted)
        page.emulate_media(color_scheme=scheme)
        page.click("#row-6")
        for kind in (".tag.yes", ".tag.no", ".tag.drop", ".tag.new", ".cell.selected"):
            page.wait_for_selector(kind)
        assert serious(page) == []
    assert not noted


def _tag(page, truth):
    """Thirty clicks on pictures that have the watermark, and ten answers."""
    clicks, seen = 0, set()
    while clicks < 30:
        script = "[...document.querySelectorAll('.cell[aria-selected=false]')].map((c) => [c.id, c.querySelector('img').alt.split(',')[0]])"
        for cell, name in page.evaluate(script):
            if truth[name] and name not in seen and clicks < 30 and page.query_selector(f"#{cell}"):
                page.click(f"#{cell}")
                clicks += 1
            seen.add(name)
        page.evaluate("document.getElementById('grid').scrollBy(0, 500)")
        page.wait_for_timeout(200)
    assert page.inner_text(".chosen") == "30 selected"
    page.fill("#tag-name", "watermark")
    page.click("#has")
    page.click(".spread:not([disabled])")
    for _ in range(10):
        page.wait_for_selector(".busy", state="detached")
        page.wait_for_selector(".question")
        name = page.get_attribute(".question img", "alt")
        page.click(f".question .{'yes' if truth[name] else 'no'}")
        page.wait_for_timeout(100)
    page.wait_for_selector(".busy", state="detached")
    page.wait_for_selector(".question")


def test_scrolling_reaches_the_last_of_a_million_rows(browser, own_cache, tmp_path):
    """The scroll bar moves in a smaller scale than the rows; both ends are reached all the same."""
    rows, noted = 1_000_000, []
    np.savez(tmp_path / "rows.npz", x=np.zeros((rows, 4), dtype=np.float32), y=np.arange(rows) % 2)
    with served(tmp_path / "rows.npz", "--most", "1000") as said:
        page = opened(browser, said["address"], 1280, noted)
        page.evaluate("document.getElementById('grid').scrollTop = 1e9")
        page.wait_for_selector(f"#row-{rows - 1}")
        box = page.locator(f"#row-{rows - 1}").bounding_box()
        assert box["y"] + box["height"] <= 800
        page.evaluate("document.getElementById('grid').scrollTop = 0")
        page.wait_for_selector("#row-0")
    assert not noted
