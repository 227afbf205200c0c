"""Thumbnails embedded in pages."""

import base64
import io
from typing import Protocol

import torch
from PIL import Image
from torch import Tensor

SIDE = 64  # pixels, at most, of a thumbnail's longer side
LEAST_SIDE = 48  # a picture is not made smaller than this to save bytes
FEW = 256  # colours up to which a PNG may be the smaller one
ROUGH = 60  # JPEG quality, where 85 is too large


class Readable(Protocol):
    """Inputs by sample id: the raw rows, and which of them could be read."""

    def rows(self, index: Tensor) -> tuple[Tensor, Tensor]: ...


def thumbnails(inputs: Readable, rows: Tensor, side: int = SIDE, most: int = 0) -> list[str]:
    """Each row's image as a data: address, JPEG or PNG, whichever is smaller; of at most `most` bytes, 0: any number."""
    raw, fine = inputs.rows(rows)
    pixels = raw if raw.dtype == torch.uint8 else _stretch(raw)
    return [picture(p, side, most) if ok else "" for p, ok in zip(pixels, fine.tolist(), strict=True)]


def _stretch(x: Tensor) -> Tensor:
    """Floats of unknown range to bytes, each image over its own range."""
    flat = x.flatten(1)
    low, high = flat.min(1).values, flat.max(1).values
    shape = (-1, *[1] * (x.ndim - 1))
    return ((x - low.view(shape)) / (high - low).clamp(min=1e-9).view(shape) * 255).round().to(torch.uint8)


def picture(pixels: Tensor, side: int = SIDE, most: int = 0) -> str:
    """An image of bytes (C, H, W) as a data: address. One over `most` bytes is compressed more, then made smaller."""
    array = pixels.permute(1, 2, 0).numpy()
    image = Image.fromarray(array[:, :, :3] if array.shape[2] >= 3 else array[:, :, 0])
    image.thumbnail((side, side))
    quality = 85
    while True:
        address = _encoded(image, quality)
        if not most or len(address) <= most or max(image.size) <= LEAST_SIDE:
            return address
        if quality > ROUGH:
            quality = ROUGH
        else:
            image.thumbnail((3 * image.size[0] // 4, 3 * image.size[1] // 4))


def _encoded(image: Image.Image, quality: int) -> str:
    encoded = []
    few = image.getcolors(FEW) is not None  # a PNG of more colours is larger than a JPEG, and takes long to make
    for kind in ("PNG", "JPEG") if few else ("JPEG",):
        out = io.BytesIO()
        image.save(out, kind, **({"quality": quality} if kind == "JPEG" else {"optimize": True}))
        encoded.append((len(out.getvalue()), f"data:image/{kind.lower()};base64,{base64.b64encode(out.getvalue()).decode()}"))
    return min(encoded)[1]
