"""Pictures at their own resolution, and what their files say: read once, while the inputs are decoded, for all that look at them."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageOps
from torch import Tensor

from unskew.data.dataset import DataSet, Inputs, Memory
from unskew.data.readers.files import _FAILURES, Files, fitted, to_rgb
from unskew.data.readers.opening import may_be_turned, without_exif
from unskew.data.texts import Content, contents

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]
LEAST = 32  # pixels that every side has, if need be by repetition
WINDOW = 512  # side of the part of a large picture that is looked at pixel by pixel
TAGS = {
    "make": ExifTags.Base.Make,
    "model": ExifTags.Base.Model,
    "orientation": ExifTags.Base.Orientation,
    "software": ExifTags.Base.Software,
    "date": ExifTags.Base.DateTime,
}
_TAKEN = ExifTags.Base.DateTimeOriginal
_GREY = np.array([0.299, 0.587, 0.114], dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Header:
    """What the head of a file says about it."""

    kind: str = ""  # JPEG, PNG, ...
    mode: str = ""
    size: tuple[int, int] = (0, 0)  # width and height, not turned yet
    length: int = 0  # bytes of the file
    tagged: bool = False  # whether it has any EXIF field
    tables: tuple[tuple[int, ...], ...] = ()  # quantisation tables of a JPEG
    sampling: str = ""  # of the chroma channels, such as 4:2:0
    progressive: bool = False
    extras: tuple[str, ...] = ()  # names of what else it holds: dpi, icc_profile, gamma, ...
    exif: Mapping[str, str] = field(default_factory=dict)  # by the names of TAGS


class Steps:
    """Differences between neighbouring pixels of a picture (H, W): several probes look at them, so each is computed once."""

    def __init__(self, grey: Floats) -> None:
        self.grey = grey

    @cached_property
    def across(self) -> Floats:
        """(H, W - 1) from each pixel to the one on its right."""
        return self._along[:, :-1]

    @cached_property
    def _along(self) -> Floats:
        """(H, W) the same; the last column means nothing. As if all lines were one: a third of the time of line by line."""
        return _differences(self.grey)

    @cached_property
    def down(self) -> Floats:
        """(H - 1, W) from each pixel to the one below."""
        steps: Floats = self.grey[1:] - self.grey[:-1]
        return steps

    @cached_property
    def size_across(self) -> Floats:
        return np.abs(self._along)[:, :-1]

    @cached_property
    def size_down(self) -> Floats:
        return np.abs(self.down)

    @cached_property
    def bend_across(self) -> Floats:
        """(H, W - 2) how far the two neighbours of a pixel exceed it, together."""
        return _differences(self._along)[:, :-2]

    @cached_property
    def bend_down(self) -> Floats:
        """(H - 2, W) the same for the pixels above and below."""
        bends: Floats = self.down[1:] - self.down[:-1]
        return bends


def _differences(lines: Floats) -> Floats:
    flat = lines.ravel()
    found: Floats = np.zeros(lines.shape, dtype=np.float32)
    np.subtract(flat[1:], flat[:-1], out=found.ravel()[:-1])
    return found


class Picture:
    """One picture, upright, as bytes (H, W, 3); `header` is None if it does not come from a file.

    What several probes need is computed when the first of them asks for it.
    """

    def __init__(self, pixels: Bytes, header: Header | None = None, image: Image.Image | None = None) -> None:
        self.size = pixels.shape[1], pixels.shape[0]  # width and height, as they are
        self.header = header
        if image is not None and min(self.size) >= LEAST:
            self.image = image  # the same as Pillow has it, if it does
        for axis in (0, 1):  # a tiny picture among larger ones: repeat its pixels, so that there is something to look at
            if pixels.shape[axis] < LEAST:
                pixels = pixels.repeat(-(-LEAST // pixels.shape[axis]), axis)
        self.pixels = pixels

    @cached_property
    def image(self) -> Image.Image:
        """As Pillow has it."""
        return Image.fromarray(self.pixels)

    @cached_property
    def window(self) -> Bytes:
        """At most 512 x 512 pixels around the centre, beginning at a multiple of 8, on which JPEG blocks begin."""
        if max(self.pixels.shape[:2]) <= WINDOW:
            return self.pixels
        top, left = (max(0, (side - WINDOW) // 16 * 8) for side in self.pixels.shape[:2])
        return self.pixels[top : top + WINDOW, left : left + WINDOW]

    @cached_property
    def grey(self) -> Floats:
        """Brightness of the window, 0 to 255."""
        return brightness(self.window)

    @cached_property
    def steps(self) -> Steps:
        """Of the window."""
        return Steps(self.grey)

    @cached_property
    def small(self) -> Floats:
        """(64, 64) brightness of the whole picture, 0 to 255, area by area."""
        image = Image.fromarray(self.whole)
        smaller = image.resize((64, 64), Image.Resampling.BOX if min(image.size) >= 64 else Image.Resampling.BILINEAR)
        return np.asarray(smaller)

    @property
    def by(self) -> int:
        """The whole number that `whole` is reduced by."""
        return max(1, int(min(self.pixels.shape[:2])) // WINDOW)

    @cached_property
    def whole(self) -> Floats:
        """Brightness of the whole picture, 0 to 255, reduced by a whole number until its short side is less than 1024."""
        if max(self.pixels.shape[:2]) <= WINDOW:
            return self.grey
        return brightness(np.asarray(self.image.reduce(self.by)) if self.by > 1 else self.pixels)

    @cached_property
    def whole_steps(self) -> Steps:
        """Of `whole`."""
        return self.steps if self.whole is self.grey else Steps(self.whole)

    @cached_property
    def channels(self) -> Bytes:
        """(3, h, w) every channel by itself: the pixels that `whole` is made of, or one of each of its squares."""
        return np.ascontiguousarray(self.pixels[:: self.by, :: self.by].transpose(2, 0, 1))

    @cached_property
    def brightest(self) -> Bytes:
        """(h, w) the largest channel of each pixel."""
        red, green, blue = self.channels
        largest: Bytes = np.maximum(np.maximum(red, green), blue)
        return largest

    @cached_property
    def colourfulness(self) -> Bytes:
        """(h, w) the largest minus the smallest channel of each pixel."""
        red, green, blue = self.channels
        spread: Bytes = self.brightest - np.minimum(np.minimum(red, green), blue)
        return spread

    @cached_property
    def blocks(self) -> tuple[Floats, Floats]:
        """(rows, 8, columns, 8) coefficients of the window's 8 x 8 blocks, and of blocks that begin 4 pixels later."""
        return coefficients(self.grey, 0), coefficients(self.grey, 4)


def brightness(pixels: Bytes) -> Floats:
    """(H, W) of bytes (H, W, 3), 0 to 255."""
    shown: Floats = pixels.astype(np.float32) @ _GREY
    return shown


_WAVES = np.cos(np.outer(np.arange(8), 2 * np.arange(8) + 1) * np.pi / 16) / 2
_DCT = np.where(np.arange(8)[:, None] == 0, _WAVES / np.sqrt(2), _WAVES).astype(np.float32)  # orthonormal


def coefficients(grey: Floats, start: int) -> Floats:
    """(rows, 8, columns, 8) coefficients of the 8 x 8 blocks that begin at this pixel: frequency down, and across, in each."""
    part = grey[start:, start:]
    rows, columns = part.shape[0] // 8, part.shape[1] // 8
    # Rows of blocks, then all lines at once: a product for every block by itself takes four times as long.
    down: Floats = _DCT @ part[: rows * 8, : columns * 8].reshape(rows, 8, columns * 8)
    both: Floats = down.reshape(-1, 8) @ _DCT.T
    return both.reshape(rows, 8, columns, 8)


@lru_cache(maxsize=64)
def pooling(side: int, parts: int) -> Floats:
    """(parts, side) matrix that takes a line of pixels to the means of equal parts of it."""
    long = max(1, side // parts)
    matrix: Floats = np.zeros((parts, side), dtype=np.float32)
    for k in range(min(parts, side)):
        matrix[k, k * long : (k + 1) * long] = 1 / long
    return matrix


@lru_cache(maxsize=64)
def pooling_across(side: int, parts: int) -> Floats:
    """The same for columns, (side, parts), laid out for a product from the right: a view of the other takes twice as long."""
    return np.ascontiguousarray(pooling(side, parts).T)


def median(values: NDArray[Any], axis: int | None = None) -> NDArray[Any]:
    """The median of few values; NumPy's own spends most of its time on what these do not need.

    >>> float(median(np.array([3.0, 1.0, 2.0, 9.0])))
    2.5
    """
    ordered: NDArray[Any] = np.sort(values, axis=axis)
    length = ordered.shape[axis or 0]
    middle: NDArray[Any] = (ordered.take((length - 1) // 2, axis or 0) + ordered.take(length // 2, axis or 0)) * np.float32(0.5)
    return middle


Look = Callable[[Picture, Any], NDArray[Any]]  # float32, or bytes where all rows are gathered
Finish = Callable[
    [NDArray[Any], Any], NDArray[Any]
]  # from what was looked up in several pictures (B, ...) to their numbers (B, D)


def header_of(opened: Image.Image, length: int = 0) -> Header:
    """The header of a file of so many bytes that Pillow has opened."""
    exif = Image.Exif() if without_exif(opened) else opened.getexif()
    values = {name: exif.get(tag) for name, tag in TAGS.items()}
    if exif:
        values["date"] = exif.get_ifd(ExifTags.IFD.Exif).get(_TAKEN) or values["date"]
    info = {str(key) for key in opened.info}
    tables = getattr(opened, "quantization", None) or {}
    layers = getattr(opened, "layer", None) or ()
    return Header(
        kind=opened.format or "",
        mode=opened.mode,
        size=opened.size,
        length=length,
        tagged=len(exif) > 0,
        tables=tuple(tuple(tables[k]) for k in sorted(tables)),
        sampling="x".join(f"{layer[1]}{layer[2]}" for layer in layers),
        progressive=bool({"progressive", "progression", "interlace"} & info),
        extras=tuple(sorted(info - {"exif", "progressive", "progression", "interlace"})),
        exif={name: str(value).strip("\0 ") for name, value in values.items() if value not in (None, "")},
    )


def _length(path: Content) -> int:
    """Bytes of a file, which may be open and half read."""
    if isinstance(path, str):
        return os.path.getsize(path)
    here = path.tell()
    length = path.seek(0, os.SEEK_END)
    path.seek(here)
    return length


def read_header(path: Content) -> Header:
    """The header of a file; empty if it cannot be read."""
    try:
        with Image.open(path) as opened:
            return header_of(opened, _length(path))
    except _FAILURES:
        return Header()


def picture_of(x: Tensor, header: Header | None = None) -> Picture:
    """A picture in memory: (C, H, W) bytes, or numbers from 0 to 1."""
    levels = x if x.dtype == torch.uint8 else (x.float() * 255).round().clamp(0, 255).byte()
    levels = levels if levels.shape[0] == 3 else levels[:1].expand(3, -1, -1)
    return Picture(np.ascontiguousarray(levels.permute(1, 2, 0).numpy()), header)


@dataclass(frozen=True)
class Seen:
    """Inputs together with what is seen at full resolution, decoding each file once. Picklable, for worker processes."""

    inputs: Inputs
    paths: Sequence[str]  # empty: the rows are not files
    looks: tuple[tuple[str, Look, Any], ...]  # name, function and its settings
    finish: Mapping[str, Finish] = field(default_factory=dict)  # by name, what turns the looks of a batch into its numbers
    headers_only: bool = False  # whether the files show what is hidden in the inputs

    @property
    def in_memory(self) -> bool:
        return self.inputs.in_memory

    def rows(self, index: Tensor) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Inputs and whether they could be read, as any inputs; and {name: (B, D)} of what was seen of the readable ones."""
        if not self.looks:
            return (*self.inputs.rows(index), {})
        # Picture by picture: what the looks share stays in the processor's cache, and is let go with the picture.
        found: list[list[NDArray[Any]]] = [[] for _ in self.looks]
        if isinstance(self.inputs, Files):
            x, fine = self._decoded(self.inputs, index, found)
        else:
            x, fine = self.inputs.rows(index)
            ids = index[fine].tolist()
            files = contents(self.paths, ids) if self.paths else [""] * len(ids)
            known = self.inputs.whole if isinstance(self.inputs, Memory) and self.paths else None
            whole = [False] * len(ids) if known is None else known[index[fine]].tolist()
            for one, file, same in zip(x if bool(fine.all()) else x[fine], files, whole, strict=True):
                if self.headers_only and file:
                    self._look(picture_of(one, read_header(file)), found)
                else:
                    self._look(_decoded(one, file) if same else _opened(file) or picture_of(one), found)
        blank = np.zeros((0, 1), np.float32)
        numbers = {}
        for (name, _, cfg), values in zip(self.looks, found, strict=True):
            block = np.stack(values) if values else blank
            numbers[name] = torch.from_numpy(self.finish[name](block, cfg) if values and name in self.finish else block)
        return x, fine, numbers

    def _look(self, picture: Picture, found: list[list[NDArray[Any]]]) -> None:
        for (_, look, cfg), values in zip(self.looks, found, strict=True):
            values.append(look(picture, cfg))

    def _decoded(self, files: Files, index: Tensor, found: list[list[NDArray[Any]]]) -> tuple[Tensor, Tensor]:
        x = torch.zeros(len(index), *files.shape, dtype=torch.uint8)
        fine = torch.ones(len(index), dtype=torch.bool)
        ids = index.tolist()
        for k, (i, content) in enumerate(zip(ids, contents(files.paths, ids), strict=True)):
            try:
                header, image = _read(content)
                image = image if files.hiding is None else files.hiding.picture(image, i)
                picture = Picture(np.asarray(image), header, image)
                if picture.by == 1 and picture.channels.shape[1:] == files.side == (image.height, image.width):
                    x[k].numpy()[:] = picture.channels
                else:
                    x[k] = fitted(image, files.side)
            except _FAILURES:
                fine[k] = False
            else:
                self._look(picture, found)
        return x, fine


def _read(path: Content) -> tuple[Header, Image.Image]:
    """The header of a file, and its picture, upright and RGB."""
    with Image.open(path) as opened:
        header = header_of(opened, _length(path))
        return header, to_rgb(ImageOps.exif_transpose(opened) if may_be_turned(opened) else opened)


def _decoded(x: Tensor, path: Content) -> Picture:
    """A file's picture that is in memory as it is, (3, H, W) bytes: of the file itself only the header is read."""
    channels = x.numpy()
    image = Image.merge("RGB", [Image.fromarray(channel) for channel in channels])  # a third of the time of turning the array
    picture = Picture(np.asarray(image), read_header(path), image)
    if picture.by == 1 and min(picture.size) >= LEAST:
        picture.channels = channels
    return picture


def _opened(path: Content) -> Picture | None:
    """The picture in a file; None without a file, or if it has become unreadable."""
    try:
        if not path:
            return None
        header, image = _read(path)
        return Picture(np.asarray(image), header, image)
    except _FAILURES:
        return None


def seen(data: DataSet, looks: tuple[tuple[str, Look, Any], ...], finish: Mapping[str, Finish] | None = None) -> Seen:
    """The inputs of a data set with what is seen of its pictures. Where boxes are hidden, only the headers of files in memory are read."""
    return Seen(data.inputs, data.paths, looks, finish or {}, headers_only=data.reading is not None and bool(data.reading.hide))
