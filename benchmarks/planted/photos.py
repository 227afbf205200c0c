"""The photographs: fruit, CIFAR-10 enlarged to 96 pixels, and crops of scikit-learn's two pictures. All RGB, 96 to 160 pixels."""

import io
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import polars as pl
from PIL import Image, ImageOps
from sklearn.datasets import load_sample_images

from unskew.core.fetch import fetch
from unskew.data.cifar import NAMES, cifar10
from unskew.data.sets.fruit import PHOTOGRAPHS

Rng = np.random.Generator
Drawn = tuple[list[Image.Image], list[str]]  # pictures and what they show


@lru_cache(maxsize=1)
def _fruit() -> tuple[list[bytes], list[str]]:
    (path,) = fetch("fruit", (PHOTOGRAPHS,))
    frame = pl.read_parquet(path).unique("image_data", keep="first", maintain_order=True)
    return frame["image_data"].to_list(), frame["coarse_cat"].to_list()


def fruit(n: int, rng: Rng, only: tuple[str, ...] = ()) -> Drawn:
    """Supermarket photographs at 160 x 160."""
    data, names = _fruit()
    rows = [k for k, name in enumerate(names) if not only or name in only]
    chosen = rng.permutation(rows)[:n]
    pictures = [
        ImageOps.fit(Image.open(io.BytesIO(data[k])).convert("RGB"), (160, 160), Image.Resampling.LANCZOS) for k in chosen
    ]
    return pictures, [names[k] for k in chosen]


def cifar(n: int, rng: Rng, only: tuple[str, ...] = ("cat", "dog")) -> Drawn:
    """CIFAR-10 enlarged to 96 x 96."""
    photos = cifar10()
    codes = np.array([NAMES.index(name) for name in only])
    y = photos.y.numpy()
    chosen = np.concatenate([rng.permutation(np.flatnonzero(y == c))[: -(-n // len(codes))] for c in codes])
    chosen = rng.permutation(chosen)[:n]
    pictures = [
        Image.fromarray(photos.x[int(k)].permute(1, 2, 0).numpy()).resize((96, 96), Image.Resampling.BICUBIC) for k in chosen
    ]
    return pictures, [NAMES[y[k]] for k in chosen]


def crops(n: int, rng: Rng, only: tuple[str, ...] = ()) -> Drawn:
    """Random parts of scikit-learn's two photographs at 128 x 128, mirrored half of the time."""
    wholes = [Image.fromarray(p) for p in load_sample_images().images]
    pictures, names = [], []
    for _ in range(n):
        which = int(rng.integers(2))
        side = int(rng.integers(128, 320))
        left, top = int(rng.integers(640 - side + 1)), int(rng.integers(427 - side + 1))
        part = wholes[which].resize((128, 128), Image.Resampling.LANCZOS, box=(left, top, left + side, top + side))
        pictures.append(ImageOps.mirror(part) if rng.random() < 0.5 else part)
        names.append(("temple", "flower")[which])
    return pictures, names


BASES: dict[str, Callable[..., Drawn]] = {"fruit": fruit, "cifar": cifar, "crops": crops}
