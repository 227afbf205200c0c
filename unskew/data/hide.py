"""Blur or black out parts of images before anything else sees them: boxes, or masks in files.

A box is four columns x0, y0, x1, y1 in pixels of the image on disk (x1 and y1 are exclusive), each a number or a list of numbers
for several boxes; a mask is a column with the path of an image of the same size, white where to hide, or with a list of outlines,
each a list x, y, x, y, ... of the corners of a polygon. A row without box or mask is left unchanged, and counted.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import torch
import torch.nn.functional as F
from PIL import Image, ImageDraw, ImageFilter
from torch import Tensor

from unskew.core.errors import UserError, suggest
from unskew.data.reading import DataConfig

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Cover:
    """What to hide in one image."""

    boxes: tuple[Box, ...] = ()
    mask: str = ""  # path
    outlines: tuple[tuple[float, ...], ...] = ()  # x, y, x, y, ... of polygons

    def __bool__(self) -> bool:
        return bool(self.boxes or self.mask or self.outlines)


@dataclass(frozen=True, slots=True)
class Hiding:
    how: str  # blur, black
    radius: float  # of the blur, in pixels
    covers: tuple[Cover, ...]  # one per row

    @property
    def untouched(self) -> int:
        return sum(not c for c in self.covers)

    @property
    def note(self) -> str:
        done = "blurred" if self.how == "blur" else "blacked out"
        left = f"; {self.untouched} rows have none and are unchanged" if self.untouched else ""
        kind = "outlines" if any(c.outlines for c in self.covers) else "masks" if any(c.mask for c in self.covers) else "boxes"
        return f"{kind} are {done}{left}"

    def picture(self, image: Image.Image, row: int) -> Image.Image:
        """One decoded RGB image, before it is resized."""
        cover = self.covers[row]
        if not cover:
            return image
        hidden = Image.new("L", image.size, 0)
        if cover.mask:
            with Image.open(cover.mask) as opened:
                if opened.size != image.size:
                    raise ValueError(
                        f"its mask is {opened.size[0]}x{opened.size[1]}, but the image is {image.size[0]}x{image.size[1]}"
                    )
                hidden = opened.convert("L").point(lambda v: 255 if v > 127 else 0)
        else:
            pen = ImageDraw.Draw(hidden)
            for x0, y0, x1, y1 in cover.boxes:
                if x1 > x0 and y1 > y0:
                    pen.rectangle((math.floor(x0), math.floor(y0), math.ceil(x1) - 1, math.ceil(y1) - 1), fill=255)
            for outline in cover.outlines:
                pen.polygon(outline, fill=255)
        over = image.filter(ImageFilter.GaussianBlur(self.radius)) if self.how == "blur" else Image.new("RGB", image.size)
        return Image.composite(over, image, hidden)

    def arrays(self, x: Tensor) -> Tensor:
        """The same for image arrays (N, C, H, W), all rows at once; boxes only."""
        if x.ndim != 4:
            raise UserError(f"data.hide needs images, got inputs of shape {tuple(x.shape[1:])}")
        if any(c.mask or c.outlines for c in self.covers):
            raise UserError("data.mask needs image files; for arrays use data.boxes")
        out = torch.empty_like(x)
        across, down = torch.arange(x.shape[3]), torch.arange(x.shape[2])
        for start in range(0, len(x), 2000):
            part = slice(start, min(start + 2000, len(x)))
            mask = torch.zeros(part.stop - start, *x.shape[2:], dtype=torch.bool)
            for place in range(max(len(c.boxes) for c in self.covers[part])):
                box = torch.tensor([c.boxes[place] if place < len(c.boxes) else (0.0,) * 4 for c in self.covers[part]])
                x0, y0, x1, y1 = (v[:, None] for v in (box[:, 0].floor(), box[:, 1].floor(), box[:, 2].ceil(), box[:, 3].ceil()))
                mask |= ((down >= y0) & (down < y1))[:, :, None] & ((across >= x0) & (across < x1))[:, None, :]
            over = torch.zeros_like(x[part]) if self.how == "black" else blurred(x[part], self.radius)
            out[part] = torch.where(mask[:, None], over, x[part])
        return out


def blurred(x: Tensor, radius: float) -> Tensor:
    """Every channel convolved with a Gaussian of standard deviation `radius`, edges replicated."""
    reach = max(1, round(3 * radius))
    line = torch.arange(-reach, reach + 1, dtype=torch.float32)
    kernel = (-(line**2) / (2 * radius**2)).exp()
    kernel = (kernel / kernel.sum()).view(1, 1, 1, -1)
    flat = x.float().flatten(0, 1)[:, None]
    for turn in (kernel, kernel.transpose(2, 3)):
        pad = (reach, reach, 0, 0) if turn.shape[3] > 1 else (0, 0, reach, reach)
        flat = F.conv2d(F.pad(flat, pad, mode="replicate"), turn)
    result = flat[:, 0].view(x.shape)
    return result.round().to(x.dtype) if x.dtype == torch.uint8 else result.to(x.dtype)


def hiding(frame: pl.DataFrame, cfg: DataConfig, where: str, root: Path | None = None) -> Hiding | None:
    """What the settings ask to hide, from the source's columns; None for nothing."""
    if not cfg.hide:
        return None
    if cfg.mask:
        _need(frame, [cfg.mask], where)
        if isinstance(frame[cfg.mask].dtype, pl.List):
            covers = tuple(Cover(outlines=_outlines(v, k + 1, where)) for k, v in enumerate(frame[cfg.mask].to_list()))
            return _some(Hiding(cfg.hide, cfg.blur, covers), where)
        covers = tuple(Cover(mask=str((root or Path()) / p) if p else "") for p in frame[cfg.mask].to_list())
        missing = next((c.mask for c in covers if c and not Path(c.mask).is_file()), None)
        if missing is not None:
            raise UserError(f"{where}: mask {missing} does not exist; paths are relative to the table's folder")
    else:
        _need(frame, cfg.boxes, where)
        columns = [frame[name].to_list() for name in cfg.boxes]
        covers = tuple(Cover(_boxes(values, k + 1, where)) for k, values in enumerate(zip(*columns, strict=True)))
    return _some(Hiding(cfg.hide, cfg.blur, covers), where)


def _some(found: Hiding, where: str) -> Hiding:
    if not any(found.covers):
        raise UserError(f"{where}: no row has a box or a mask to hide")
    return found


def _outlines(value: object, row: int, where: str) -> tuple[tuple[float, ...], ...]:
    outlines = []
    for corners in value if isinstance(value, list) else []:
        if not isinstance(corners, list) or len(corners) < 6 or len(corners) % 2:
            raise UserError(f"{where}: row {row} has the outline {corners}; an outline is x, y of at least three corners")
        outlines.append(tuple(float(v) for v in corners))
    return tuple(outlines)


def _boxes(values: Sequence[object], row: int, where: str) -> tuple[Box, ...]:
    lists = [v if isinstance(v, list) else [] if v is None else [v] for v in values]
    if len({len(v) for v in lists}) != 1:
        counts = ", ".join(str(len(v)) for v in lists)
        raise UserError(f"{where}: row {row} has {counts} numbers for x0, y0, x1, y1; all four need the same count")
    boxes = []
    for four in zip(*lists, strict=True):
        try:
            x0, y0, x1, y1 = (float(v) for v in four)  # type: ignore[arg-type,unused-ignore]
        except (TypeError, ValueError):
            raise UserError(f"{where}: row {row} has the box {four}; a box is four numbers") from None
        if not all(map(math.isfinite, (x0, y0, x1, y1))) or x1 < x0 or y1 < y0:
            raise UserError(f"{where}: row {row} has the box ({x0:g}, {y0:g}, {x1:g}, {y1:g}); it needs x0 <= x1 and y0 <= y1")
        boxes.append((x0, y0, x1, y1))
    return tuple(boxes)


def _need(frame: pl.DataFrame, names: Sequence[str], where: str) -> None:
    for name in names:
        if name not in frame.columns:
            raise UserError(f"{where}: data.hide needs a column {name!r}{suggest(name, frame.columns)}")
