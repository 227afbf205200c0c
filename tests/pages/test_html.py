"""The file of a page: nothing in it points outside, one script of ours, hostile names as text. In a browser: test_in_browser.py."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import unskew as package
from unskew.pages.html import shade

EVIL = "<script>document.title='pwned'</script>"


class Tags(HTMLParser):
    """Collects the names of all attributes."""

    def __init__(self):
        super().__init__()
        self.attributes = set()

    def handle_starttag(self, tag, attrs):
        self.attributes |= {name for name, _ in attrs}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Two runs side by side on pictures whose class and bias names try to break out."""
    home = tmp_path_factory.mktemp("page")
    rng = np.random.default_rng(0)
    y, bias = rng.integers(0, 3, 400), rng.integers(0, 2, 400)
    x = (rng.random((400, 3, 28, 28)) * 60 + 60 * y[:, None, None, None]).astype(np.uint8)
    names = np.array([EVIL, 'quo"ted & <b>bold</b>', "plain"])
    np.savez(home / "d.npz", x=x, y=names[y], site=np.array(["<img src=x onerror=alert(1)>", "b"])[bias])
    runs = []
    for seed in (0, 1):
        settings = {"data.bias": "site", "train.epochs": 2}
        runs.append(
            package.train(
                str(home / "d.npz"), out=home / f"run {seed}", seed=seed, settings=settings, command="unskew train d.npz"
            )
        )
    return package.report(runs, home / "page.html")


def test_nothing_in_the_file_points_outside_it(page):
    text = page.read_text()
    assert len(text.encode()) < 3_000_000
    outside = re.findall(r'(?:src|href|action)\s*=\s*"(?!data:|#)[^"]*"|url\((?!["\']?(?:data:|#))|@import', text)
    assert not outside
    assert "&lt;script&gt;" in text


def test_only_the_script_that_the_policy_names_can_run(page):
    text = page.read_text()
    (script,) = re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL)
    (allowed,) = re.findall(r"script-src '([^']*)'", text)
    assert allowed == "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert "default-src 'none'" in text
    reader = Tags()
    reader.feed(text)
    assert not [name for name in reader.attributes if name.startswith("on")]  # nothing else that runs
    assert {"data-bias", "style", "class"} <= reader.attributes


def test_the_json_says_the_same(page):
    content = json.loads(page.with_suffix(".json").read_text())
    assert [r["name"] for r in content["runs"]] == ["run 0", "run 1"]
    shown = page.read_text()
    for run in content["runs"]:
        assert f"{100 * run['metrics']['plain']:.1f} %" in shown
        assert run["labels"]["training"] == ["y"]
        assert sum(g["n"] for g in run["metrics"]["groups"]) == run["metrics"]["rows"]["plain"]


def test_training_rows_stand_beside_the_test_rows(page):
    content = json.loads(page.with_suffix(".json").read_text())
    shown = page.read_text()
    assert shown.count("Error rates by site") == 2
    for run in content["runs"]:
        train = run["metrics"]["train"]
        assert f'<td class="num">{100 * train["plain"]:.1f} %<span class="soft">n {train["predicted_rows"]}</span></td>' in shown
        assert len(run["group_rows"]) == len(run["metrics"]["groups"])
        same = {(g["y"], g["bias"]): g["accuracy"] for g in train["groups"]}
        assert all(g["train"] == same[g["y"], g["bias"]] for g in run["group_rows"])
        assert run["verdict"].startswith(run["metrics"]["verdict"]["sentence"])


@pytest.mark.parametrize("value", [0.0, 0.25, 0.5, 1.0])
def test_dark_text_can_be_read_on_every_shade(value):
    rgb = [int(v) / 255 for v in re.findall(r"\d+", shade(value))]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    luminance = sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    ink = 0.0203  # relative luminance of #1d2730
    assert (luminance + 0.05) / (ink + 0.05) >= 4.5


def test_eighty_labels_stay_readable(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.random((300, 8)).astype(np.float32)
    labels = {f"object {k}": (x[:, k % 8] > 0.5 + rng.random(300) / 5).astype(int) for k in range(80)}
    np.savez(tmp_path / "d.npz", x=x, site=np.array(["a", "b"])[rng.integers(0, 2, 300)], **labels)
    settings = {"data.label": ",".join(labels), "data.bias": "site", "train.epochs": "2"}
    run = package.train(str(tmp_path / "d.npz"), model="mlp", out=tmp_path / "r", settings=settings)
    shown = package.report(run, tmp_path / "p.html").read_text()
    assert "60 more labels" in shown
    assert all(f"<th>object {k}</th>" in shown for k in range(80))
    assert len(shown) < 300_000
