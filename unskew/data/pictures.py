"""Thumbnails embedded in pages."""

import base64
import io
from typing import Protocol

import torch
from PIL import Image
from torch import Tensor

SIDE = 64  # pixels, at most, of a thumbnail's longer side


class Readable(Protocol):
    """Inputs by sample id: the raw rows, and which of them could be read."""

    def rows(self, index: Tensor) -> tuple[Tensor, Tensor]: ...


def thumbnails(inputs: Readable, rows: Tensor) -> list[str]:
    """Each row's image as a data: address, JPEG or PNG, whichever is smaller."""
    raw, fine = inputs.rows(rows)
    pixels = raw if raw.dtype == torch.uint8 else _stretch(raw)
    return [picture(p) if ok else "" for p, ok in zip(pixels, fine.tolist(), strict=True)]


def _stretch(x: Tensor) -> Tensor:
    """Floats of unknown range to bytes, each image over its own range."""
    flat = x.flatten(1)
    low, high = flat.min(1).values, flat.max(1).values
    shape = (-1, *[1] * (x.ndim - 1))
    return ((x - low.view(shape)) / (high - low).clamp(min=1e-9).view(shape) * 255).round().to(torch.uint8)


def picture(pixels: Tensor) -> str:
    """An image of bytes (C, H, W) as a data: address."""
    array = pixels.permute(1, 2, 0).numpy()
    image = Image.fromarray(array[:, :, :3] if array.shape[2] >= 3 else array[:, :, 0])
    image.thumbnail((SIDE, SIDE))
    encoded = []
    for kind in ("PNG", "JPEG"):
        out = io.BytesIO()
        image.save(out, kind, **({"quality": 85} if kind == "JPEG" else {"optimize": True}))
        encoded.append((len(out.getvalue()), f"data:image/{kind.lower()};base64,{base64.b64encode(out.getvalue()).decode()}"))
    return min(encoded)[1]
