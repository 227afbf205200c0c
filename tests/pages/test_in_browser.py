"""Every kind of page as a reader meets it: from disk, in Chromium, at three widths, in light and dark, with hostile names.

Skipped where playwright or Chromium is missing; `make pages-test` installs both, and axe-core for the check of accessibility.
"""

import base64
import dataclasses
import json
import os
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import unskew as package
from unskew.pages.auto import render_auto
from unskew.pages.bench import SCHEMA, render
from unskew.records import Auto, Estimate, Finalist, Trained, Tried

pytestmark = pytest.mark.usefixtures("own_cache")

EVIL = "<script>document.title='pwned'</script>"
WORSE = '"><img src=x onerror="document.title=\'pwned\'">'
WIDTHS = (390, 1280, 1920)
KINDS = ("audit", "repair", "report", "single", "predictions", "bench", "auto", "untried")
DRAWN = ("bench", "auto", "untried")  # kinds whose first screen has a chart, no pictures
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
AXE = Path(os.environ.get("UNSKEW_AXE", Path(__file__).parents[2] / ".pages-test/node_modules/axe-core/axe.min.js"))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A page of every kind, about pictures whose class, bias and file names try to break out."""
    home = tmp_path_factory.mktemp("pages")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    bias = np.where(rng.random(400) < 0.85, y % 2, 1 - y % 2)  # so that there are conflicting rows
    x = rng.random((400, 3, 28, 28)) * 60
    x[:, 0] += 50 * y[:, None, None]
    x[:, 1] += 90 * bias[:, None, None]
    columns = {"y": np.array([EVIL, "=cmd|' /C calc'!A0", "plain"])[y], "site": np.array([WORSE, "b"])[bias]}
    np.savez(home / "d.npz", x=x.astype(np.uint8), **columns)
    source, bias_column = str(home / "d.npz"), {"data.bias": "site"}
    found = {
        "audit": package.audit(source, bias=["site"], representations=["color", "texture"], out=home / "audit", slices=200).page,
        "repair": package.repair(source, "inverse_frequency", out=home / "w.parquet", settings=bias_column).page,
    }
    runs = [
        package.train(source, out=home / f"run {k} {EVIL[:8]}", seed=k, settings=bias_column | {"train.epochs": 2}, command="unskew train")
        for k in (0, 1)
    ]  # fmt: skip
    found["report"] = package.report(runs, home / "page.html", audit=home / "audit", repairs=[home / "w.parquet"])
    found["single"] = package.report(runs[:1], home / "single.html")
    data = package.load(source, bias="site")
    p = np.full((400, 3), 0.1)
    p[np.arange(400), data.bias[:, 0].numpy()] = 0.8
    pl.DataFrame({"index": np.arange(400), **{name: p[:, k] for k, name in enumerate(data.classes)}}).write_parquet(
        home / "m.parquet"
    )
    package.evaluate(home / "m.parquet", data)
    found["predictions"] = home / "m-evaluation" / "evaluation.html"
    found["bench"] = home / "bench.html"
    found["bench"].write_text(bench_page(), encoding="utf-8")
    for kind, result in {"auto": tried_by_auto(), "untried": not_tried_by_auto()}.items():
        found[kind] = home / f"{kind}.html"
        found[kind].write_text(render_auto(dataclasses.replace(result, page=found[kind])), encoding="utf-8")
    return found


def finalist(name, score):
    test = {key: Estimate(score + 0.1, score, score + 0.2, 100) for key in ("class_balanced", "worst_group")}
    return Finalist(
        name=name, run=Path("models") / name, seconds=30.0, rows=300, score=score, balanced=score, class_balanced=score, known=None,
        test=test,
    )  # fmt: skip


def tried_by_auto():
    """Candidates of which one won and one has a hostile setting."""
    rungs = [Trained(share=0.25, score=0.5, balanced=0.6, known=None, seconds=60.0, training=30.0, steps=10)]
    return Auto(
        verdict="pgd is recommended. On 300 rows it is better.", recommended="pgd", run=Path("models/pgd"),
        gate={"open": True, "reason": EVIL}, rule="val-pseudo-groups", gain=(0.2, 0.04), missing_labels="",
        cut=[f"not tried: {WORSE}"], budget=1800.0, seconds=700.0,
        tried=[
            Tried(name="erm", settings={}, fate="dropped", reason="low", rungs=rungs),
            Tried(name="pgd", settings={"phi": WORSE}, fate="winner", reason="best", rungs=rungs),
            Tried(name="jtt", settings={}, fate="refused", reason=EVIL),
        ],
        finalists=[finalist("erm", 0.3), finalist("pgd", 0.6)], rows={"trained": 900, "choice": 300, "val": 300}, source=EVIL, seed=0,
        command=f"unskew auto {WORSE}", identity={}, page=Path("auto.html"), audit=Path("audit.html"),
    )  # fmt: skip


def not_tried_by_auto():
    result = tried_by_auto()
    closed = {"open": False, "reason": f"no simple model lives on a shortcut here. {EVIL}"}
    return dataclasses.replace(
        result, gate=closed, tried=[], gain=None, recommended="erm", verdict=f"Plain training is recommended: {closed['reason']}."
    )


def bench_page():
    """Two methods with a published number, one of them with a hostile name."""
    figures = [("erm", 60.0, 61.0, 1.0), (EVIL, 80.0, 70.0, 2.5)]
    rows = [
        {"data": WORSE, "at": "0.99", "method": name, "figure": "unbiased", "runs": 3, "mean": mean, "spread": 1.0, "published_mean": known,
         "published_spread": None, "difference": mean - known, "cost": cost}
        for name, mean, known, cost in figures
    ]  # fmt: skip
    about = {
        "suite": "s",
        "title": EVIL,
        "scale": "smoke",
        "commands": ["unskew bench s"],
        "runs": 6,
        "done": 6,
        "machine": ["m"],
    }
    about |= {
        "commits": [],
        "versions": {"torch": "2"},
        "seconds": 60.0,
        "resumed": [],
        "notes": [],
        "unskew": "0",
        "table": rows,
    }
    return render(about, pl.DataFrame(rows, schema=SCHEMA), [], "erm")


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed and could not be: pages are not looked at in a browser")
    with playwright.sync_playwright() as p:
        opened = p.chromium.launch(executable_path=chromium, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def look(browser, pages):
    """Opens a page; what it asked for and what it complained about is collected in `asked` and `said`."""
    contexts = []

    def open_page(kind, width=1280, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=False)
        contexts.append(context)
        tab = context.new_page()
        tab.asked, tab.said = [], []
        tab.on("request", lambda r: tab.asked.append(r.url))
        tab.on("console", lambda m: tab.said.append(m.text))
        tab.on("pageerror", lambda e: tab.said.append(str(e)))
        tab.goto(pages[kind].as_uri())
        return tab

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_it_fits_asks_for_nothing_and_shows_names_as_text(look, pages, kind, width):
    tab = look(kind, width)
    assert [u for u in tab.asked if not u.startswith(("data:", pages[kind].as_uri()))] == []
    assert tab.said == []
    assert tab.title().startswith("unskew ")
    assert EVIL in tab.evaluate("document.body.textContent")
    assert tab.evaluate("document.scripts.length") == 1
    assert tab.evaluate("document.querySelectorAll('[onerror]').length") == 0
    assert pages[kind].stat().st_size < 3_000_000
    for opened in (False, True):  # also with everything unfolded
        if opened:
            tab.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert float(tab.evaluate("getComputedStyle(document.body).fontSize").removesuffix("px")) >= 14
    assert tab.evaluate("[...document.images].filter(i => !i.complete || !i.naturalWidth).length") == 0
    assert tab.locator(".verdict").bounding_box()["y"] < 300


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_screen_says_what_it_means_without_colour(look, kind):
    tab = look(kind)
    words = {"bad": "Problem", "doubt": "Look closer", "good": "Good", "info": "Result"}
    (tone,) = [t for t in words if tab.locator(f".first.tone-{t}").count()]
    assert words[tone] in tab.locator(".badge").inner_text()
    assert tab.locator(".first .mark").inner_text().strip() in "✕!✓i"
    assert tab.locator(".numbers dd").count() == 3
    shown = tab.locator(".first .side .card").count() if kind not in DRAWN else tab.locator(".first .chart svg").count()
    assert shown > 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_axe_finds_nothing_serious(browser, pages, kind, scheme):
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: make pages-test")
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme=scheme, bypass_csp=True)
    tab = context.new_page()
    tab.goto(pages[kind].as_uri())
    tab.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    tab.add_script_tag(path=AXE)
    found = tab.evaluate("axe.run().then(r => r.violations.map(v => [v.impact, v.id, v.nodes.slice(0, 3).map(n => n.html)]))")
    assert [v for v in found if v[0] in ("serious", "critical")] == []
    context.close()


def test_pictures_are_filtered_sorted_and_enlarged_by_keyboard(look):
    tab = look("single")
    gallery = tab.locator(".gallery").first
    every = gallery.locator(".card").count()
    gallery.get_by_label("Class").select_option("plain")
    shown = gallery.locator(".card:visible")
    assert 0 < shown.count() < every
    assert {card.get_attribute("data-class") for card in shown.all()} == {"plain"}
    assert f"{shown.count()} of {every} pictures" in gallery.get_by_role("status").inner_text()
    gallery.get_by_label("Class").select_option("")
    gallery.get_by_label("Order").select_option("low")
    scores = [float(c.get_attribute("data-score")) for c in gallery.locator(".card").all()]
    assert scores == sorted(scores)
    first = gallery.locator(".card .look").first
    first.focus()
    tab.keyboard.press("Enter")
    dialog = tab.locator("dialog")
    assert dialog.is_visible()
    before = dialog.locator(".bar p").inner_text()
    assert "(1 of" in before
    for fact in ("Label", "Prediction", "confidence", "Bias", "Row"):
        assert fact in dialog.locator("dl").inner_text()
    tab.keyboard.press("ArrowRight")
    assert "(2 of" in dialog.locator(".bar p").inner_text()
    plain = dialog.locator("img").get_attribute("src")
    dialog.get_by_role("button", name="Grad-CAM").click()
    assert dialog.locator("img").get_attribute("src") != plain
    tab.keyboard.press("Escape")
    assert not dialog.is_visible()
    assert tab.said == []


def test_the_map_appears_when_a_picture_is_pointed_at(look):
    tab = look("single")
    picture = tab.locator(".gallery .look:has(.map)").first
    picture.scroll_into_view_if_needed()
    assert picture.locator(".map").evaluate("e => getComputedStyle(e).opacity") == "0"
    picture.hover()
    tab.wait_for_timeout(400)
    assert picture.locator(".map").evaluate("e => getComputedStyle(e).opacity") == "1"


def test_tables_are_sorted_by_their_heads(look):
    tab = look("single")
    table = tab.locator("table.sortable:visible").first
    head = table.locator("th button", has_text="n").first
    head.click()
    counts = [int(row.locator("td").nth(2).inner_text()) for row in table.locator("tr").all()[1:]]
    assert counts == sorted(counts, reverse=True)


@pytest.mark.parametrize("kind", KINDS)
def test_every_chart_has_its_data(look, kind):
    tab = look(kind)
    assert tab.locator(".chart").count() == tab.locator(".chart a[download]").count()
    for link in tab.locator("a[download]").all():
        head, _, body = link.get_attribute("href").partition("base64,")
        assert head == "data:text/csv;charset=utf-8;"
        cells = [cell for line in base64.b64decode(body).decode().splitlines() for cell in line.split(",")]
        assert len(cells) > 2
        assert not [cell for cell in cells if cell.startswith(("=", "@"))]


@pytest.mark.parametrize("kind", KINDS)
def test_on_paper_nothing_is_folded_or_cut_off(look, kind):
    tab = look(kind)
    tab.set_viewport_size({"width": 794, "height": 1123})  # A4
    tab.emulate_media(media="print")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.evaluate("document.querySelectorAll('details:not([open]):not(.data)').length") == 0
    assert not tab.locator("nav").is_visible()
    assert len(tab.pdf(format="A4")) > 1000


def test_the_report_holds_the_same_numbers_as_its_json(look, pages):
    content = json.loads(pages["report"].with_suffix(".json").read_text())
    text = look("report").evaluate("document.body.textContent")
    for run in content["runs"]:
        assert f"{100 * run['metrics']['plain']:.1f} %" in text
