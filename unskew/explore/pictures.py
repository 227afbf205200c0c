"""Pictures of rows as files for the browser: small ones of what a model is given, large ones of the file itself."""

import io
import os
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from unskew.core.errors import UserError
from unskew.data.dataset import DataSet
from unskew.data.readers.files import to_rgb
from unskew.data.readers.opening import FAILURES, opened, shrunk, upright

SMALL, LARGE = 160, 1400  # pixels, at most, of the longer side
REMEMBERED = 4000  # small pictures


class Outside(UserError):
    """The file of a row does not lie where the source does."""


@dataclass
class Pictures:
    """The pictures of a data set, the small ones remembered."""

    data: DataSet
    _known: "OrderedDict[int, tuple[bytes, str]]" = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def small(self, row: int) -> tuple[bytes, str]:
        """Bytes and media type of what a model is given of a row."""
        with self._lock:
            if row in self._known:
                self._known.move_to_end(row)
                return self._known[row]
        made = encoded(self._input(row), SMALL)
        with self._lock:
            self._known[row] = made
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return made

    def large(self, row: int) -> tuple[bytes, str]:
        """The file of a row as it is, shrunk if it is huge; without a file, what a model is given."""
        if not self.data.paths or len(self.data.shape) != 3:
            return encoded(self._input(row), LARGE)
        path = inside(self.data.paths[row], self.data.source)
        limit = self.data.reading.max_pixels if self.data.reading is not None else 64_000_000
        try:
            with opened(path, limit) as picture:
                image = to_rgb(upright(shrunk(picture, LARGE)))
        except FAILURES as error:
            raise UserError(f"row {row} cannot be decoded: {' '.join(str(error).split())[:200]}") from None
        return encoded(image, LARGE)

    def _input(self, row: int) -> Image.Image:
        if not self.data.has_inputs:
            raise UserError("rows of this table have no pictures")
        raw, fine = self.data.inputs.rows(torch.tensor([row]))
        if not bool(fine[0]):
            raise UserError(f"row {row} cannot be decoded")
        return drawn(raw[0])


def inside(path: str, source: str) -> str:
    """The path, if it lies in the source's folder (links are not followed); raises if not.

    >>> inside("/data/photos/cat/1.png", "/data/photos")
    '/data/photos/cat/1.png'
    """
    home = Path(source) if os.path.isdir(source) else Path(source).parent
    plain = os.path.normpath(path)
    if os.path.commonpath([plain, os.path.normpath(home.absolute())]) != os.path.normpath(home.absolute()):
        raise Outside("the file of this row lies outside the source; only what a model is given of it is shown")
    return plain


def drawn(x: Tensor) -> Image.Image:
    """An input as a picture: an image, the middle frame of a clip, or a vector as a square of greys."""
    if x.ndim == 4:
        x = x[len(x) // 2]
    if x.ndim == 1:
        side = max(1, int(len(x) ** 0.5 + 0.999))
        x = torch.nn.functional.pad(x.float(), (0, side * side - len(x)), value=float(x.float().mean())).view(1, side, side)
    if x.dtype != torch.uint8:
        low, high = float(x.min()), float(x.max())
        x = ((x.float() - low) / max(high - low, 1e-9) * 255).round().to(torch.uint8)
    array = x.permute(1, 2, 0).contiguous().numpy()
    return Image.fromarray(array[:, :, :3] if array.shape[2] >= 3 else array[:, :, 0])


def encoded(image: Image.Image, side: int) -> tuple[bytes, str]:
    """A picture as JPEG, or as PNG if it is tiny, where every pixel counts."""
    image.thumbnail((side, side))
    out = io.BytesIO()
    kind = "PNG" if max(image.size) <= 64 else "JPEG"
    image.save(out, kind, **({} if kind == "PNG" else {"quality": 85}))
    return out.getvalue(), f"image/{kind.lower()}"
