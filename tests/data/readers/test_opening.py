"""Images that may be anything: bombs, large ones, damaged ones, and the memory that decoding may hold."""

import contextlib
import struct
import threading
import time
import tracemalloc
import zlib

import numpy as np
import pytest
from PIL import Image

import unskew
from tests.conftest import write_image
from unskew.core.errors import UserError
from unskew.data.manifest import Facts, look_at
from unskew.data.readers.files import decode, to_rgb
from unskew.data.readers.opening import LARGE, MAX_PIXELS, Memory, available, opened, shrunk


def bomb(path, width, height):
    """A PNG of one colour: its pixels compress to nearly nothing."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    packer = zlib.compressobj(9)
    row = bytes(1 + width)
    data = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b""))


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_a_bomb_is_refused_by_its_header(tmp_path):
    bomb(tmp_path / "a.png", 13_000, 13_000)
    assert (tmp_path / "a.png").stat().st_size < 400_000
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"13000x13000 pixels, more than data\.max_pixels=64000000 allows"):
        decode(str(tmp_path / "a.png"), (32, 32))
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()
    facts = Facts.empty(1)
    facts.put(0, look_at(str(tmp_path / "a.png")))
    assert "data.max_pixels" in facts.broken()[0]


def test_it_counts_as_one_that_cannot_be_decoded(tmp_path):
    for k in range(20):
        write_image(tmp_path / "photos" / "ab"[k % 2] / f"{k}.png", (100, 20, 30), side=(8, 8), seed=k)
    bomb(tmp_path / "photos" / "a" / "bomb.png", 9000, 8000)
    with pytest.raises(UserError, match=r"1 of 21 images.*bomb\.png: 9000x8000 pixels, more than data\.max_pixels"):
        unskew.load(tmp_path / "photos")
    data = unskew.load(tmp_path / "photos", max_bad=0.1)
    assert [why for _, why in data.unreadable] == ["9000x8000 pixels, more than data.max_pixels=64000000 allows"]
    assert data.shape == (3, 8, 8)


def test_the_limit_is_a_setting(tmp_path):
    bomb(tmp_path / "a.png", 100, 100)
    with pytest.raises(ValueError, match=r"data\.max_pixels=9999"):
        decode(str(tmp_path / "a.png"), (8, 8), most=9999)
    assert decode(str(tmp_path / "a.png"), (8, 8), most=10_000).shape == (3, 8, 8)
    with pytest.raises(UserError, match=r"data\.max_pixels=0: must lie in \[1, 178956970\]"):
        unskew.load("toy", max_pixels=0)
    with pytest.raises(UserError, match=r"data\.size=100000: .* too large; data\.max_pixels=64000000 allows 8000"):
        unskew.load("toy", size=100_000)


def test_a_large_image_is_shrunk_to_nearly_the_same_picture(tmp_path):
    down, across = np.mgrid[:2400, :2000]
    smooth = np.stack([down / 10, across / 9, (down + across) / 20], 2).astype(np.uint8)
    assert smooth[:, :, 0].size > LARGE
    for ending in ("png", "jpg"):
        Image.fromarray(smooth).save(tmp_path / f"a.{ending}", quality=95)
        small = decode(str(tmp_path / f"a.{ending}"), (50, 50)).float()
        with Image.open(tmp_path / f"a.{ending}") as whole:
            square = whole.convert("RGB").resize((50, 50), Image.Resampling.BOX, box=(0, 200, 2000, 2200))
        direct = np.asarray(square).transpose(2, 0, 1).astype(np.float32)
        assert np.abs(small.numpy() - direct).mean() < 2.5


def test_a_small_image_is_left_alone():
    image = Image.new("RGB", (1000, 1000))
    assert shrunk(image, 10) is image


def test_greys_of_sixteen_bits_are_the_same_in_single_precision():
    values = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    got = np.asarray(to_rgb(Image.fromarray(values)))[:, :, 0]
    assert (got == np.rint(values.astype(np.float64) / 257).astype(np.uint8)).all()


def test_numbers_that_are_none_become_black():
    values = np.array([[0.0, np.nan], [1.0, np.inf]], dtype=np.float32)
    assert np.asarray(to_rgb(Image.fromarray(values)))[:, :, 0].tolist() == [[0, 0], [255, 0]]


def test_threads_hold_no_more_memory_than_there_is():
    memory, held, most = Memory(100), [], []

    def work(size):
        with memory.held(size):
            held.append(size)
            most.append(sum(held))
            time.sleep(0.01)
            held.remove(size)

    threads = [threading.Thread(target=work, args=(size,)) for size in (40, 40, 40, 60, 30, 100, 250)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(most) == 7  # one that needs more than there is waits until it is alone
    assert all(total <= 100 or total == 250 for total in most)
    assert memory.used == 0
    assert available() >= 2**28


def test_every_damage_to_a_picture_is_a_failure_or_a_picture(tmp_path):
    from unskew.data.readers.opening import FAILURES

    for ending in ("png", "jpg", "gif", "bmp", "tiff", "webp"):
        path = tmp_path / f"a.{ending}"
        write_image(tmp_path / "good.png", (90, 100, 200), side=(16, 16))
        with Image.open(tmp_path / "good.png") as image:
            image.save(path)
        good = path.read_bytes()
        for place in range(0, len(good), max(1, len(good) // 40)):
            path.write_bytes(good[:place] + bytes([good[place] ^ 0xFF]) + good[place + 1 :])
            with contextlib.suppress(*FAILURES):  # anything else fails the test
                decode(str(path), (8, 8))


def test_opened_says_how_large_it_is():
    assert MAX_PIXELS == 64_000_000
    with pytest.raises(FileNotFoundError), opened("nowhere.png"):
        pass
