"""How a source is read: the settings `data.*`."""

import math
from dataclasses import dataclass
from typing import Literal

from unskew.core.errors import UserError
from unskew.data.augment import preset
from unskew.data.readers.opening import MAX_PIXELS, PILLOWS_LIMIT

MOST_FRAMES = 10_000  # of a clip
MOST_WORKERS = 256  # processes


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig:
    """How a source is read."""

    label: tuple[str, ...] = ()  # label column; several make a multi-label task
    bias: tuple[str, ...] = ()  # bias columns, or TABLE.parquet:COLUMN; if empty, those of a built-in set
    split: str = ""  # split column
    group: str = ""  # column whose values (patient, site, clip) are never divided between splits that are carved
    order: str = ""  # column, as of time: its last rows become test and val; or name: blocks of neighbouring files do
    size: int = 0  # side of the images in pixels; 0: their own if they agree and are at most 224, else 224
    mode: Literal["auto", "memory", "stream"] = "auto"  # auto: in memory up to `memory` gigabytes
    memory: float = 4.0  # gigabytes up to which mode=auto keeps inputs in memory
    workers: int = 2  # processes that decode, when streaming
    max_bad: float = 0.01  # share of images that may fail to decode
    max_pixels: int = MAX_PIXELS  # pixels of an image that is decoded; a larger one counts as one that fails to decode
    holdout: float = 0.1  # share of the training rows for a val or test split that the source lacks; 0: none is carved
    duplicates: bool = True  # look for near-duplicate images, and keep them on one side of splits that are carved
    most: int = 0  # training rows to use at most, drawn at random; 0: all
    noise: float = 0.0  # share of train and val labels flipped to another class
    augment: str = "none"  # random changes of training inputs: none, light, shift, flip, crop-flip, pgd
    keep: str = ""  # table from unskew repair: rows it gives weight 0 are left out of training
    relabel: str = ""  # table from unskew explore: rows whose label it changes
    hide: Literal["", "blur", "black"] = ""  # what to do to the given boxes or masks
    boxes: tuple[str, ...] = ("x0", "y0", "x1", "y1")  # columns of the boxes, in pixels
    mask: str = ""  # column of mask files, used instead of boxes
    blur: float = 10.0  # standard deviation of the blur, in pixels
    frames: int = 0  # frames per clip; 0: inputs are images (8 for a built-in set of clips)
    sampling: Literal["uniform", "random"] = "uniform"  # which frames: the middles of equal parts, or a random one of each
    seed: int = 0  # for splits, noise and random frames

    def __post_init__(self) -> None:
        for name in ("max_bad", "holdout"):
            if not 0 <= getattr(self, name) <= 0.5:
                raise UserError(f"data.{name}={getattr(self, name)}: must lie in [0, 0.5]")
        if min(self.size, self.workers, self.memory, self.frames, self.most) < 0:
            raise UserError("data.size, data.workers, data.memory, data.frames and data.most must not be negative")
        if not 1 <= self.max_pixels <= PILLOWS_LIMIT:
            raise UserError(f"data.max_pixels={self.max_pixels}: must lie in [1, {PILLOWS_LIMIT}]")
        if self.size**2 > self.max_pixels or self.size**2 * max(self.frames, 1) > 8 * PILLOWS_LIMIT:
            raise UserError(
                f"data.size={self.size}: inputs of {max(self.frames, 1)} x {self.size} x {self.size} pixels are too large; "
                f"data.max_pixels={self.max_pixels} allows {math.isqrt(self.max_pixels)}"
            )
        if self.frames > MOST_FRAMES or self.workers > MOST_WORKERS:
            raise UserError(f"data.frames must be at most {MOST_FRAMES}, and data.workers at most {MOST_WORKERS}")
        for name in ("label", "bias"):
            given = getattr(self, name)
            twice = next((n for n in given if given.count(n) > 1), None)
            if twice is not None:
                raise UserError(f"data.{name}: column {twice!r} is named twice")
        if len(self.boxes) != 4 or self.blur <= 0:
            raise UserError("data.boxes must name four columns (x0,y0,x1,y1), and data.blur must be above 0")
        if not 0 <= self.noise < 1:
            raise UserError(f"data.noise={self.noise}: must lie in [0, 1)")
        preset(self.augment)  # raises for an unknown name
        if self.mask and not self.hide:
            raise UserError(f"data.mask={self.mask} needs data.hide=blur or data.hide=black")
