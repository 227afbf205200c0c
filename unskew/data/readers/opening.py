"""Opening an image that may be anything: its header is checked before a pixel is decoded, and memory bounds how many are open."""

import os
import struct
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO

from PIL import Image, ImageOps, UnidentifiedImageError

MAX_PIXELS = 64_000_000  # default of data.max_pixels
PILLOWS_LIMIT = 178_956_970  # above it Pillow itself refuses
LARGE = 4_000_000  # pixels above which an image is shrunk before it is converted
BYTES_PER_PIXEL = 12  # held while one image is decoded, converted and resized
_REDUCIBLE = ("L", "RGB", "RGBA", "LA", "CMYK", "I", "F")

# A damaged file can make a decoder raise nearly anything; a lack of memory is not the file's fault.
FAILURES = (
    OSError, SyntaxError, ValueError, LookupError, ArithmeticError, TypeError, AttributeError, EOFError, RuntimeError, AssertionError,
    Warning, struct.error, zlib.error, UnidentifiedImageError, Image.DecompressionBombError, Image.DecompressionBombWarning,
)  # fmt: skip


@contextmanager
def opened(path: str | Path | IO[bytes], most: int = MAX_PIXELS) -> Iterator[Image.Image]:
    """The image, not decoded yet. Raises for more than `most` pixels; waits while others hold the memory it needs."""
    with Image.open(path) as image:
        pixels = image.width * image.height
        if pixels > most:
            raise ValueError(f"{image.width}x{image.height} pixels, more than data.max_pixels={most} allows")
        with _memory().held(pixels * BYTES_PER_PIXEL):
            yield image


def shrunk(image: Image.Image, side: int) -> Image.Image:
    """A large image at twice `side` or more, by averaging whole pixels, so that what follows needs little memory."""
    if image.width * image.height <= LARGE:
        return image
    image.draft(None, (2 * side, 2 * side))  # a JPEG is decoded small; other formats do nothing
    factor = min(image.size) // (2 * max(side, 1))
    return image.reduce(factor) if factor > 1 and image.mode in _REDUCIBLE else image


_TURNING = {"exif", "xmp", "XML:com.adobe.xmp", "Raw profile type exif", "Raw profile type APP1"}


def without_exif(image: Image.Image) -> bool:
    """Whether a JPEG has no EXIF data: to ask Pillow for them takes as long as to read the rest of the header."""
    return image.format == "JPEG" and not {"exif", "xmp"} & image.info.keys()


def may_be_turned(image: Image.Image) -> bool:
    """Whether a header may say how the image, decoded now, is to be turned. Where none does, Pillow would only copy it."""
    image.load()  # a PNG may say it after the pixels
    return image.format not in ("JPEG", "PNG") or bool(_TURNING & image.info.keys())


def upright(image: Image.Image) -> Image.Image:
    """The image turned as its EXIF data say; as it is if they are damaged."""
    try:
        return ImageOps.exif_transpose(image) if may_be_turned(image) else image
    except FAILURES:
        image.load()  # raises if the image itself is damaged
        return image


class Memory:
    """Bytes that threads share: one that needs more than is left waits until others are done, unless it is alone."""

    def __init__(self, limit: int) -> None:
        self.limit, self.used = limit, 0
        self.change = threading.Condition()

    @contextmanager
    def held(self, size: int) -> Iterator[None]:
        with self.change:
            self.change.wait_for(lambda: self.used == 0 or self.used + size <= self.limit)
            self.used += size
        try:
            yield
        finally:
            with self.change:
                self.used -= size
                self.change.notify_all()


@cache
def _memory() -> Memory:
    return Memory(available() // 4)


def available() -> int:
    """Bytes of memory that this process may still use: what the system has, or what its container may have."""
    sizes = [2**31]
    with suppress(ValueError, OSError, AttributeError):  # not on Windows or macOS
        sizes = [os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            sizes.append(int(Path(path).read_text()))
        except (OSError, ValueError):
            continue
    return max(min(sizes), 2**28)
