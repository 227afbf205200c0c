"""Files are decoded once for inputs and probes, and give what each would give alone."""

import dataclasses

import numpy as np
import pytest
import torch
from PIL import ExifTags, Image

from unskew.core import registry
from unskew.core.errors import UserError
from unskew.data import native
from unskew.data.dataset import Memory
from unskew.data.native import Picture, Steps, picture_of, read_header, seen
from unskew.data.sources import load
from unskew.features import compute, spec, standard
from unskew.representations import _contract

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for k in range(24):
        home = tmp_path / "photos" / "ab"[k % 2]
        home.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (40 + k % 3, 48, 3), dtype=np.uint8)).save(home / f"{k:02d}.png")
    return tmp_path / "photos"


def test_each_file_is_opened_once(folder, monkeypatch):
    data = load(str(folder), holdout=0.0, duplicates=False, mode="stream", size=32)
    chosen = standard(data)[0]
    opened, real = [], Image.open
    monkeypatch.setattr(Image, "open", lambda path, *words: opened.append(path) or real(path, *words))
    found = compute(data, chosen, torch.arange(24))[1]
    assert sorted(opened) == sorted(data.paths)
    monkeypatch.undo()
    alone = load(str(folder), holdout=0.0, duplicates=False, mode="memory", size=32)
    for name, block in compute(alone, chosen, torch.arange(24))[1].items():
        torch.testing.assert_close(found[name], block, msg=name, equal_nan=True)


def test_probes_see_the_file_at_its_own_size(folder):
    data = load(str(folder), holdout=0.0, duplicates=False, size=32)
    sizes = compute(data, [spec("dimensions")], torch.arange(24))[1]["dimensions"][:, :2].exp().round().tolist()
    assert {tuple(s) for s in sizes} == {(48, 40), (48, 41), (48, 42)}


def test_unreadable_files_are_left_out(folder):
    (folder / "a" / "00.png").write_bytes((folder / "a" / "00.png").read_bytes()[:300])
    data = load(str(folder), holdout=0.0, duplicates=False, mode="stream", size=32, max_bad=0.5)
    index, found = compute(data, [spec("tone"), spec("color")], torch.arange(24))
    assert index.tolist() == list(range(1, 24))
    assert len(found["tone"]) == 23


def test_pictures_in_memory_are_bytes_again():
    x = torch.randint(0, 256, (3, 36, 40), dtype=torch.uint8)
    assert np.array_equal(picture_of(x).pixels, x.permute(1, 2, 0).numpy())
    assert np.array_equal(picture_of(x.float() / 255).pixels, picture_of(x).pixels)
    assert picture_of(x[:1]).pixels.shape == (36, 40, 3)


def test_a_large_picture_is_looked_at_through_a_window_on_the_grid():
    pixels = np.zeros((700, 1100, 3), dtype=np.uint8)
    pixels[88, 288] = 255  # (700 - 512) / 2 = 94 and (1100 - 512) / 2 = 294, down to multiples of 8
    picture = Picture(pixels)
    assert picture.window.shape == (512, 512, 3)
    assert picture.grey[0, 0] == pytest.approx(255, abs=0.01)
    assert picture.whole.shape == (700, 1100)


def test_boxes_that_are_hidden_stay_hidden(folder):
    data = load(str(folder), holdout=0.0, duplicates=False)
    covered = Memory(torch.zeros_like(data.inputs.x))
    hidden = dataclasses.replace(data, inputs=covered, reading=dataclasses.replace(data.reading, hide="black"))
    looks = tuple((name, spec(name).kind.look, spec(name).cfg) for name in ("tone", "file"))
    rows = torch.arange(4)
    whole, seen_there = seen(data, looks).rows(rows)[2], seen(hidden, looks).rows(rows)[2]
    black = spec("tone").kind.look(picture_of(torch.zeros(3, 32, 32)), spec("tone").cfg)
    assert np.array_equal(seen_there["tone"][0].numpy(), black)  # the file's own picture is not opened
    assert torch.equal(seen_there["file"], whole["file"])  # its header is


def test_a_representation_has_one_way_to_see():
    kind = _contract.load("tone")
    with pytest.raises(UserError, match="either features or look"):
        dataclasses.replace(kind, features=lambda *words: None)
    assert native.read_header("nowhere.jpg") == native.Header()


@pytest.mark.parametrize("size", [(1, 1), (3, 70), (17, 40), (33, 41), (1201, 1030), (64, 3000)])
def test_pictures_of_any_size_can_be_looked_at(size):
    picture = Picture(np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8), native.Header())
    assert picture.size == (size[1], size[0])
    for name in registry.names("representations"):
        kind = _contract.load(name)
        for settings in kind.variants if kind.look is not None else ():
            seen = kind.look(picture, kind.config(**settings))
            plain = kind.look(Picture(np.full((64, 64, 3), 99, dtype=np.uint8)), kind.config(**settings))
            assert seen.shape == plain.shape, name
            assert np.isfinite(seen).all(), name
            assert np.isfinite(plain).all(), name


def test_steps_are_differences_between_neighbours():
    grey = np.random.default_rng(0).random((9, 11)).astype(np.float32)
    steps = Steps(grey)
    assert steps.across == pytest.approx(np.diff(grey, axis=1), abs=1e-6)
    assert steps.size_down == pytest.approx(np.abs(np.diff(grey, axis=0)), abs=1e-6)
    assert steps.bend_across == pytest.approx(np.diff(grey, 2, axis=1), abs=1e-6)
    assert steps.bend_down == pytest.approx(np.diff(grey, 2, axis=0), abs=1e-6)


def test_a_batch_has_the_numbers_of_its_pictures(folder):
    data = load(str(folder), holdout=0.0, duplicates=False, size=32)
    noting = [one for one in standard(data)[0] if one.kind.note is not None]
    assert noting
    found = compute(data, noting, torch.arange(24))[1]
    for one in noting:
        pictures = (Picture(np.asarray(Image.open(path).convert("RGB")), read_header(path)) for path in data.paths)
        alone = [one.kind.look(picture, one.cfg) for picture in pictures]
        assert found[one.name].numpy() == pytest.approx(np.stack(alone), rel=1e-4, abs=1e-4), one.name


def test_pictures_in_memory_as_they_are_look_as_their_files_do(tmp_path):
    rng = np.random.default_rng(0)
    for k in range(24):
        home = tmp_path / "photos" / "ab"[k % 2]
        home.mkdir(parents=True, exist_ok=True)
        smooth = Image.fromarray(rng.integers(0, 256, (9, 9, 3), dtype=np.uint8)).resize((96, 80) if k else (100, 90))
        turned = Image.Exif()
        turned[ExifTags.Base.Orientation] = 1 if k % 3 else 3
        smooth.save(home / f"{k:02d}.jpg", exif=turned)
    held = load(str(tmp_path / "photos"), size=0, holdout=0.0, duplicates=False)
    assert held.inputs.in_memory
    assert held.inputs.whole is not None
    assert int(held.inputs.whole.sum()) == 0  # of two sizes: all were resized
    (tmp_path / "photos" / "a" / "00.jpg").unlink()
    held, files = (load(str(tmp_path / "photos"), holdout=0.0, duplicates=False, mode=mode) for mode in ("auto", "stream"))
    assert bool(held.inputs.whole.all())
    chosen, rows = standard(held)[0], torch.arange(23)
    chosen = [one for one in chosen if one.kind.look is not None and one.kind.learn is None]
    looks = tuple((one.name, one.kind.look, one.cfg) for one in chosen)
    (x, _, found), (same, _, expected) = (seen(data, looks).rows(rows) for data in (held, files))
    assert torch.equal(x, same)
    for one in chosen:
        torch.testing.assert_close(found[one.name], expected[one.name], rtol=0, atol=0, msg=one.name)


def test_note_and_finish_go_together():
    with pytest.raises(UserError, match="note or finish"):
        dataclasses.replace(_contract.load("tone"), finish=None)


@pytest.mark.parametrize("turned", [1, 6])
def test_a_picture_is_shown_upright(tmp_path, turned):
    exif = Image.Exif()
    exif[0x0112] = turned
    Image.new("RGB", (40, 60)).save(tmp_path / "a.jpg", exif=exif if turned > 1 else b"")
    header, image = native._read(str(tmp_path / "a.jpg"))
    assert image.size == ((40, 60) if turned == 1 else (60, 40))
    assert header.exif == ({} if turned == 1 else {"orientation": "6"})
