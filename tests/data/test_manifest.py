"""The manifest: a file is opened once, again when its size or time changes, and what it says is what the files say."""

import hashlib
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from unskew.core.errors import UserError
from unskew.data import load, manifest
from unskew.data.manifest import Facts, glimpse, look_at, parts_of
from unskew.data.texts import Texts

OLD = 1_000_000_000  # seconds


@pytest.fixture
def photos(tmp_path, monkeypatch, own_cache):
    """Thirty-two pictures that changed long ago, as many as make a manifest here."""
    monkeypatch.setattr(manifest, "KEPT", 30)
    monkeypatch.setattr(manifest, "PART", 10)
    root = tmp_path / "photos"
    for k in range(32):
        save(root / ("cat" if k % 2 else "dog") / f"{k:02d}.png", k)
    return root


def save(path: Path, seed: int, when: int = OLD) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(seed).integers(0, 255, (8, 12, 3), dtype=np.uint8)).save(path)
    os.utime(path, (when, when))


@pytest.fixture
def opened(monkeypatch):
    """The names of the files that are looked at."""
    names: list[str] = []
    real = manifest.look_at
    monkeypatch.setattr(manifest, "look_at", lambda content: (names.append(Path(content).name), real(content))[1])
    return names


def test_a_file_is_opened_once_and_again_when_it_changes(photos, opened):
    first = load(photos, mode="stream", duplicates=False)
    assert len(opened) == 32
    opened.clear()
    again = load(photos, mode="stream", duplicates=False)
    assert opened == []
    assert again.fingerprint == first.fingerprint
    assert again.shape == (3, 8, 12)
    save(photos / "cat" / "05.png", 99, OLD + 1)  # another picture, another time
    save(photos / "dog" / "new.png", 100)
    (photos / "dog" / "00.png").unlink()
    changed = load(photos, mode="stream", duplicates=False)
    assert sorted(opened) == ["05.png", "new.png"]
    assert changed.fingerprint != first.fingerprint
    opened.clear()
    assert load(photos, mode="stream", duplicates=False).fingerprint == changed.fingerprint
    assert opened == []


def test_the_fingerprint_is_that_of_a_source_without_a_manifest(photos, monkeypatch):
    load(photos)
    kept = load(photos)
    monkeypatch.setattr(manifest, "KEPT", 10**9)
    assert load(photos).fingerprint == kept.fingerprint


def test_a_file_that_changed_just_now_is_opened_again(photos, opened):
    save(photos / "cat" / "01.png", 1, int(__import__("time").time()))
    for _ in range(2):
        opened.clear()
        load(photos, mode="stream", duplicates=False)
    assert opened == ["01.png"]


def test_what_it_says(photos):
    load(photos, mode="stream", duplicates=False)
    parts = parts_of(str(photos))
    assert [p.name for p in parts] == [f"0000{k}.parquet" for k in range(4)]
    table = pl.concat([pl.read_parquet(p) for p in parts])
    files = sorted(photos.rglob("*.png"))
    assert table["path"].to_list() == [str(p.relative_to(photos)) for p in files]
    assert table["size"].to_list() == [p.stat().st_size for p in files]
    assert set(table["mtime"].to_list()) == {OLD * 10**9}
    assert set(table["width"].to_list()) == {12}
    assert set(table["height"].to_list()) == {8}
    assert table["class"].to_list() == [p.parent.name for p in files]
    assert set(table["split"].to_list()) == {"train"}
    for path, found in zip(files, table["hash"].to_list(), strict=True):
        raw = path.read_bytes()  # of at most 4096 bytes: start, middle and end are the whole, each once
        places = sorted({0, max(0, len(raw) // 2 - 2048), max(0, len(raw) - 4096)})
        assert found == hashlib.sha256(b"|".join([b"%d" % len(raw), *(raw[p : p + 4096] for p in places)])).digest()


def test_bias_columns_are_those_of_the_last_reading(photos):
    names = sorted(str(p.relative_to(photos)) for p in photos.rglob("*.png"))
    lines = [f"{name},{k % 2},{'xyz'[k % 3]},{k % 5}" for k, name in enumerate(names)]
    (photos / "t.csv").write_text("\n".join(["file_name,label,site,size", *lines]))
    for bias in ("site", "size"):
        load(photos / "t.csv", bias=bias, duplicates=False, mode="stream")
        table = pl.concat([pl.read_parquet(p) for p in parts_of(str(photos / "t.csv"))])
        column = "site" if bias == "site" else "bias size"
        assert table.columns[-3:] == ["class", "split", column]
        assert table[column].to_list() == [("xyz"[k % 3] if bias == "site" else str(k % 5)) for k in range(32)]


def test_a_damaged_manifest_or_a_full_cache_stops_nobody(photos, opened, monkeypatch):
    first = load(photos, duplicates=False)
    for part in parts_of(str(photos)):
        part.write_bytes(b"PAR1")
    opened.clear()
    assert load(photos, duplicates=False).fingerprint == first.fingerprint
    assert len(opened) == 32

    def full(*words, **more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(manifest, "whole_folder", full)
    save(photos / "cat" / "01.png", 77, OLD + 5)
    load(photos, duplicates=False)


def test_a_header_that_could_not_be_read_is_looked_at_again(photos, opened):
    (photos / "cat" / "01.png").write_bytes(b"no picture")
    os.utime(photos / "cat" / "01.png", (OLD, OLD))
    for _ in range(2):
        opened.clear()
        with pytest.raises(UserError, match=r"1 of 32 images .*01\.png: not an image"):
            load(photos)
    assert opened == ["01.png"]


def test_facts(tmp_path):
    save(tmp_path / "a.png", 0)
    image = Image.open(tmp_path / "a.png")
    exif = image.getexif()
    exif[0x0112] = 6  # turned by a quarter
    image.save(tmp_path / "b.jpg", exif=exif)
    (tmp_path / "c.png").write_bytes(b"x")
    facts = Facts.empty(4)
    for k, name in enumerate(("a.png", "b.jpg", "c.png", "none.png")):
        facts.put(k, look_at(str(tmp_path / name)))
    assert facts.sizes((2, 3)) == {(8, 12), (12, 8)}
    assert facts.broken() == {2: "not an image", 3: facts.reason[3]}
    assert "No such file" in facts.reason[3]
    assert facts.broken(50)[0] == "12x8 pixels, more than data.max_pixels=50 allows"
    names = Texts.of(["a.png", "é.jpg", "", "d"])
    rows = zip(names, facts.hash, strict=True)
    assert b"".join(facts.content(names)) == b"".join(os.fsencode(name) + b"\0" + h.tobytes() for name, h in rows)
    assert facts.hash[0].tobytes() == glimpse(str(tmp_path / "a.png"))
