"""Clips: video files and folders of frames, as (frames, 3, H, W). Decoded on demand, or once if they fit into memory."""

import os
import stat
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from PIL import Image, ImageOps
from torch import Tensor

from unskew.core import progress
from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.data.dataset import DataSet, Inputs, Memory
from unskew.data.manifest import Look, facts_of, glimpse
from unskew.data.readers.files import _FAILURES, check_names, to_rgb, too_many_bad
from unskew.data.readers.images import Labels, below, fingerprints
from unskew.data.readers.listing import EXTENSIONS, images_below
from unskew.data.readers.opening import opened
from unskew.data.readers.walking import Found
from unskew.data.reading import DataConfig
from unskew.data.splitting import settle
from unskew.data.texts import Content, Texts

VIDEO = {".avi", ".mp4", ".webm", ".mkv", ".mov", ".mpg", ".mpeg"}
DEFAULT_SIDE = 112


def places(total: int, wanted: int, how: str, key: str, seed: int = 0) -> list[int]:
    """Numbers of the frames to take: the middles of equal parts (uniform), or a random one of each (random, seeded by clip name).

    >>> places(16, 4, "uniform", "")
    [2, 6, 10, 14]
    >>> places(2, 4, "uniform", "")
    [0, 0, 1, 1]
    """
    edges = np.linspace(0, total, wanted + 1)
    where = np.full(wanted, 0.5) if how == "uniform" else torch.rand(wanted, generator=stream(seed, "frames", key)).numpy()
    return [min(int(a + (b - a) * t), total - 1) for a, b, t in zip(edges[:-1], edges[1:], where, strict=True)]


def read_clip(path: str, frames: int, side: tuple[int, int], how: str = "uniform", seed: int = 0) -> Tensor:
    """One clip as (frames, 3, H, W) bytes. Raises OSError or ValueError if it cannot be decoded."""
    pictures = _from_folder(path, frames, how, seed) if os.path.isdir(path) else _from_video(path, frames, how, seed)
    shown = [ImageOps.fit(p, (side[1], side[0]), Image.Resampling.BILINEAR) for p in pictures]
    return torch.from_numpy(np.stack([np.asarray(p) for p in shown])).permute(0, 3, 1, 2).contiguous()


def _from_folder(path: str, frames: int, how: str, seed: int) -> list[Image.Image]:
    files = images_below(Path(path))
    if not files:
        raise ValueError("the folder has no frames")
    pictures = []
    for k in places(len(files), frames, how, Path(path).name, seed):
        with opened(files[k]) as image:
            pictures.append(to_rgb(image))
    return pictures


def _from_video(path: str, frames: int, how: str, seed: int) -> list[Image.Image]:
    """Frames in order; those between are decoded and dropped, so memory holds only the frames kept."""
    av = _av()
    try:
        with av.open(path) as video:
            if not video.streams.video:
                raise ValueError("the file has no video track")
            track = video.streams.video[0]
            track.thread_type = "AUTO"
            total = track.frames or sum(1 for _ in video.decode(video=0))
        if not total:
            raise ValueError("the video has no frames")
        wanted = places(total, frames, how, Path(path).name, seed)
        pictures: list[Image.Image] = []
        last: Any = None
        with av.open(path) as video:
            video.streams.video[0].thread_type = "AUTO"
            for number, frame in enumerate(video.decode(video=0)):
                last = frame
                while len(pictures) < frames and wanted[len(pictures)] == number:
                    pictures.append(frame.to_image())
                if len(pictures) == frames:
                    break
    except av.error.FFmpegError as error:
        raise ValueError(str(error)) from None
    if last is None:
        raise ValueError("the video has no frames")
    # Headers may promise more frames than the file has: repeat the last one.
    return pictures + [last.to_image()] * (frames - len(pictures))


def _av() -> Any:
    try:
        import av
    except ImportError:
        raise UserError("video files need PyAV: pip install 'unskew[video]'") from None
    return av


@dataclass(frozen=True)
class Clips:
    """Inputs decoded on demand. Picklable, for worker processes."""

    paths: Sequence[str]
    frames: int
    side: tuple[int, int]
    how: str = "uniform"
    seed: int = 0
    in_memory: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.frames, 3, *self.side)

    def rows(self, index: Tensor) -> tuple[Tensor, Tensor]:
        x = torch.zeros(len(index), *self.shape, dtype=torch.uint8)
        fine = torch.ones(len(index), dtype=torch.bool)
        for k, i in enumerate(index.tolist()):
            try:
                x[k] = read_clip(self.paths[i], self.frames, self.side, self.how, self.seed)
            except _FAILURES:
                fine[k] = False
        return x, fine


def clips_below(folder: Path) -> list[Path]:
    """Video files anywhere under a folder, and folders of frames directly in it."""
    videos = [p for p in folder.rglob("*") if p.suffix.lower() in VIDEO and p.is_file() and not p.name.startswith(".")]
    return sorted(videos + [p for p in folder.iterdir() if p.is_dir() and first_frame(str(p))])


def first_frame(folder: str) -> str:
    """The first of `images_below`, from the folder's names alone; empty if there is none."""
    with os.scandir(folder) as entries:
        found = list(entries)
    if any(entry.is_dir() for entry in found):  # frames may lie deeper
        return next((str(path) for path in images_below(Path(folder))), "")
    names = sorted(e.name for e in found if os.path.splitext(e.name)[1].lower() in EXTENSIONS and not e.name.startswith("."))
    return next((path for name in names if os.path.isfile(path := os.path.join(folder, name))), "")


def _looked_at(full: Texts) -> tuple[Texts, Found]:
    """What is opened of each clip, a video or its first frame, and the size and time of change by which a changed clip is noticed."""
    opened, size, mtime = list[str](), np.zeros(len(full), dtype=np.int64), np.zeros(len(full), dtype=np.int64)
    for k, path in enumerate(full):
        about = os.stat(path)
        folder = about.st_mtime_ns if stat.S_ISDIR(about.st_mode) else 0  # changes with the names in it
        opened.append(first_frame(path) if folder else path)
        if opened[-1]:
            about = os.stat(opened[-1])
            size[k] = about.st_size
        mtime[k] = max(folder, about.st_mtime_ns)
    return Texts.of(opened), Found(full, size, mtime)


def _glimpsed(content: Content) -> Look:
    """The digest of a clip's file; nothing is decoded. Raises OSError: a disk that cannot be read is no damaged clip."""
    return Look(glimpse(str(content))) if content else Look()


def clip_set(
    root: Path,
    paths: Sequence[str],
    y: Tensor,
    classes: tuple[str, ...],
    split: Tensor,
    splits: tuple[str, ...],
    cfg: DataConfig,
    *,
    bias: Tensor | None = None,
    bias_values: tuple[tuple[str, ...], ...] = (),
    columns: pl.DataFrame | None = None,
    source: str = "",
) -> DataSet:
    """Like `image_set`, for clips: `data.frames` frames of each, chosen by `data.sampling`."""
    if cfg.hide:
        raise UserError("data.hide works on images, not on clips")
    check_names((*paths, *classes), source or str(root))
    full = below(root, Texts.of(paths))
    side = (cfg.size or DEFAULT_SIDE,) * 2
    clips = Clips(full, cfg.frames, side, cfg.sampling, cfg.seed)
    gigabytes = len(full) * cfg.frames * 3 * side[0] * side[1] / 1e9
    inputs: Inputs = clips
    broken: dict[int, str] = {}
    if cfg.mode == "memory" or (cfg.mode == "auto" and gigabytes <= cfg.memory):
        x, broken = _read_all(clips)
        too_many_bad(broken, full, len(full), cfg.max_bad)
        readable = torch.ones(len(full), dtype=torch.bool)
        readable[list(broken)] = False
        inputs = Memory(x, readable if broken else None)
    bias = torch.zeros(len(y), 0, dtype=torch.long) if bias is None else bias
    names, (files, known) = Texts.of(paths), _looked_at(full)
    labels = Labels(
        y=y, classes=classes, split=split, splits=splits, bias=bias, bias_names=tuple(cfg.bias), bias_values=bias_values
    )  # fmt: skip
    kept = facts_of(
        os.path.abspath(source or str(root)), names, files, known.size, known.mtime, labels.frame(), look=_glimpsed
    )  # fmt: skip
    seen = [os.fsencode(name) + b"\0" + (row.tobytes() if row.any() else b"") for name, row in zip(paths, kept.hash, strict=True)]
    settled = settle(y, split, cfg, source or str(root), columns=columns, paths=paths)
    facts = (classes, splits, side, cfg.frames, cfg.sampling)
    fingerprint, former = fingerprints(facts, seen, (y, settled.split), bias, tuple(cfg.bias), bias_values)
    return DataSet(
        name=root.name or str(root), source=source or str(root), inputs=inputs, y=y, classes=classes, splits=splits,
        bias=bias, bias_names=tuple(cfg.bias), bias_values=bias_values, columns=pl.DataFrame() if columns is None else columns,
        paths=full, fingerprint=fingerprint, former=former,
        **settled.fields(*([f"{len(broken)} clips could not be decoded and are left out"] if broken else [])),
        unreadable=tuple(sorted(broken.items())),
    )  # fmt: skip


def _read_all(clips: Clips, threads: int = 4) -> tuple[Tensor, dict[int, str]]:
    x = torch.zeros(len(clips.paths), *clips.shape, dtype=torch.uint8)
    broken: dict[int, str] = {}
    with progress.bar("reading clips", len(clips.paths)) as advance:

        def one(k: int) -> None:
            try:
                x[k] = read_clip(clips.paths[k], clips.frames, clips.side, clips.how, clips.seed)
            except _FAILURES as error:
                broken[k] = " ".join(str(error).split()) or type(error).__name__
            advance(1)

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(one, range(len(clips.paths))))
    return x, broken
