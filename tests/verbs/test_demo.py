"""The demo: every step leaves what it names, and the text has the figures of the runs."""

from unskew.verbs import demo


def test_the_steps_end_in_one_page(tmp_path, monkeypatch, own_cache):
    monkeypatch.setattr(demo, "SETTINGS", {"train.steps": 3, "train.batch": 32})
    monkeypatch.setattr(demo, "LOOKS", (demo.SHORTCUT,))
    found, text = demo.demo(tmp_path / "demo", 1)
    assert set(found["runs"]) == {"erm", "repaired", "advised"}
    for name, judged in found["runs"].items():
        line = next(line for line in text.splitlines() if line.split()[:1] == [name])
        assert line.split()[1:] == [f"{100 * judged[part]:.1f}" for part in ("aligned", "conflicting")]
    assert found["audit"]["representations"][0]["name"] == demo.SHORTCUT
    page = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    assert f"page: {(tmp_path / 'demo' / 'report.html').resolve()}" in text
    places = [page.index(f"<h2>{part}</h2>") for part in ("The shortcut", "The repair", "The gain", "Accuracy")]
    assert places == sorted(places)
    assert {"audit", "weights.parquet", "erm", "repaired", "advised"} <= {p.name for p in (tmp_path / "demo").iterdir()}
