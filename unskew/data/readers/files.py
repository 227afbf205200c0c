"""Images in files: decoded once if they fit into memory, else on the fly in worker processes."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.threads import in_order
from unskew.data.hide import Hiding
from unskew.data.manifest import Facts, in_words
from unskew.data.readers.opening import FAILURES, MAX_PIXELS, opened, shrunk, upright
from unskew.data.texts import Texts, contents

DEFAULT_SIDE = 224
_FAILURES = FAILURES


def decode(
    path: str | IO[bytes], side: tuple[int, int], hiding: Hiding | None = None, row: int = 0, most: int = MAX_PIXELS
) -> Tensor:
    """One image as (3, H, W) uint8: turned upright, short side resized, centre cropped to `side` = (H, W)."""
    with opened(path, most) as picture:
        # Boxes are in pixels of the whole image.
        image = to_rgb(upright(shrunk(picture, max(side)) if hiding is None else picture))
        if hiding is not None:
            image = hiding.picture(image, row)
        return fitted(image, side)


def fitted(image: Image.Image, side: tuple[int, int]) -> Tensor:
    """(3, H, W) uint8 of an RGB image: short side resized, centre cropped to `side` = (H, W)."""
    if (image.height, image.width) != side:
        image = ImageOps.fit(image, (side[1], side[0]), Image.Resampling.BILINEAR)
    return torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous()


def to_rgb(image: Image.Image) -> Image.Image:
    """Any picture as 8-bit RGB: greys of more than 8 bits are scaled, not clipped; transparency becomes white."""
    if image.mode.startswith("I") or image.mode == "F":
        grey = np.nan_to_num(np.asarray(image, dtype=np.float32), posinf=0.0, neginf=0.0)
        top = float(grey.max(initial=0.0))
        factor = 255.0 if image.mode == "F" and top <= 1 else 1.0 if top <= 255 and image.mode in ("I", "F") else 1 / 257
        return Image.fromarray(np.clip(np.rint(grey * factor), 0, 255).astype(np.uint8)).convert("RGB")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        clear = image.convert("RGBA")
        white = Image.new("RGBA", clear.size, (255, 255, 255, 255))
        return Image.alpha_composite(white, clear).convert("RGB")
    if image.mode != "RGB":
        return image.convert("RGB")
    image.load()  # its file may be closed before the pixels are used
    return image


@dataclass(frozen=True)
class Files:
    """Inputs decoded on demand. Picklable, for worker processes."""

    paths: Sequence[str]
    side: tuple[int, int]
    hiding: Hiding | None = None
    in_memory: bool = False
    max_pixels: int = MAX_PIXELS

    @property
    def shape(self) -> tuple[int, ...]:
        return (3, *self.side)

    def rows(self, index: Tensor) -> tuple[Tensor, Tensor]:
        x = torch.zeros(len(index), *self.shape, dtype=torch.uint8)
        fine = torch.ones(len(index), dtype=torch.bool)
        ids = index.tolist()
        for k, (i, content) in enumerate(zip(ids, contents(self.paths, ids), strict=True)):
            try:
                x[k] = decode(content, self.side, self.hiding, i, self.max_pixels)
            except _FAILURES:
                fine[k] = False
        return x, fine


def choose_side(facts: Facts, wanted: int, broken: Iterable[int] = ()) -> tuple[int, int]:
    """The size to use: `wanted` if given; else that of the images if all agree and it is at most 224 pixels; else 224."""
    if wanted:
        return wanted, wanted
    sizes = facts.sizes(tuple(broken))
    if len(sizes) == 1 and max(next(iter(sizes))) <= DEFAULT_SIDE:
        return next(iter(sizes))
    return DEFAULT_SIDE, DEFAULT_SIDE


def read_all(
    files: Files, skip: dict[int, str], progress: Callable[[int], None] = lambda _: None, threads: int = 8
) -> tuple[Tensor, dict[int, str]]:
    """Every image in one uint8 tensor, and the rows that could not be decoded, with the reason."""
    x = torch.zeros(len(files.paths), *files.shape, dtype=torch.uint8)
    broken = dict(skip)

    def one(k: int) -> None:
        if k in skip:
            return
        content = contents(files.paths, [k])[0]
        try:
            x[k] = decode(content, files.side, files.hiding, k, files.max_pixels)
        except _FAILURES as error:
            broken[k] = in_words(error)
        progress(1)

    for _ in in_order(one, range(len(files.paths)), threads):
        pass
    return x, broken


def too_many_bad(broken: dict[int, str], paths: Sequence[str], rows: int, max_bad: float) -> None:
    """Stop if more than the allowed share of the images cannot be decoded."""
    if len(broken) > max_bad * rows:
        first = min(broken)
        raise UserError(
            f"{len(broken)} of {rows} images cannot be decoded, more than data.max_bad={max_bad:g} allows; "
            f"the first is {paths[first]}: {broken[first]}; repair or remove them, or raise data.max_bad"
        )


def is_folder(path: Path) -> bool:
    return os.path.isdir(path) if "\0" not in str(path) else False


def check_names(names: Iterable[str], where: str) -> None:
    """Refuse names that are not UTF-8: tables and pages could not hold them."""
    if isinstance(names, Texts) and names.is_utf8:
        return
    for name in names:
        if not name.isascii():
            try:
                name.encode()
            except UnicodeEncodeError:
                raise UserError(f"{where}: the name {name!a} is not UTF-8; rename it") from None
