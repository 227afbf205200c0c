"""Any torch Dataset of (x, y), (x, y, bias) or dicts, or a mapping from splits to such data sets, read into memory once."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl
import torch
from PIL import Image, ImageOps
from torch import Tensor

from unskew.core import progress
from unskew.core.errors import UserError
from unskew.data.dataset import DataSet, Inputs, Memory
from unskew.data.duplicates import of_inputs, of_pixels
from unskew.data.readers import columns as _columns
from unskew.data.readers.arrays import as_inputs
from unskew.data.readers.files import to_rgb, too_many_bad
from unskew.data.readers.opening import FAILURES, upright
from unskew.data.reading import DataConfig
from unskew.data.splitting import settle

_X = ("x", "image", "img", "features", "pixel_values")
_Y = ("y", "label", "labels", "target")


def from_torch(source: Any, cfg: DataConfig) -> DataSet:
    parts = dict(source) if isinstance(source, Mapping) else {"": source}
    xs: list[Any] = []
    columns: list[dict[str, Any]] = []
    with progress.bar("reading rows", sum(len(p) for p in parts.values())) as advance:
        for split, part in parts.items():
            for k in range(len(part)):
                x, row = _row(part[k], k)
                xs.append(x)
                columns.append(row | ({"split": split} if split else {}))
                advance()
    if not xs:
        raise UserError(f"{type(source).__name__}: the torch Dataset has no rows")
    frame = pl.DataFrame(columns, infer_schema_length=None)
    x, readable = stack(xs, cfg, type(source).__name__)
    bias_given = "bias" in frame.columns and not cfg.bias
    return from_rows(x, frame, type(source).__name__, "", cfg, readable, ("bias",) if bias_given else ())


def from_rows(
    x: Tensor,
    frame: pl.DataFrame,
    name: str,
    source: str,
    cfg: DataConfig,
    readable: Tensor | None = None,
    bias_names: tuple[str, ...] = (),
) -> DataSet:
    """Inputs and their columns, already read, as a data set."""
    broken = {} if readable is None else dict.fromkeys((~readable).nonzero().flatten().tolist(), "cannot be decoded")
    return from_inputs(Memory(x, readable), frame, name, source, cfg, broken=broken, bias_names=bias_names)


def from_inputs(
    inputs: Inputs,
    frame: pl.DataFrame,
    name: str,
    source: str,
    cfg: DataConfig,
    *,
    broken: dict[int, str],
    bias_names: tuple[str, ...] = (),
    content: str = "",
) -> DataSet:
    """Inputs in memory or elsewhere, and their columns; `content` stands for inputs that are not in memory in the fingerprint."""
    y, classes = _columns.labels(frame, cfg, name)
    bias_names = cfg.bias or bias_names
    bias, values = _columns.biases(frame, bias_names, name)
    split, splits = _columns.splits(frame, cfg, name)
    settled = settle(y, split, cfg, name, columns=frame, twins=_twins(inputs, len(y)))
    data = DataSet(
        name=name,
        source=source,
        inputs=inputs,
        y=y,
        classes=classes,
        splits=splits,
        bias=bias,
        bias_names=tuple(bias_names),
        bias_values=values,
        columns=frame,
        unreadable=tuple(sorted(broken.items())),
        **settled.fields(*([f"{len(broken)} images could not be decoded and are left out"] if broken else [])),
    )
    return data.derived(content) if content else data


def _twins(inputs: Inputs, rows: int) -> Callable[[], Tensor] | None:
    """What finds near-duplicates among images; None if the inputs are something else."""
    if len(inputs.shape) != 3:
        return None
    if isinstance(inputs, Memory):
        return lambda: of_pixels(inputs.x, inputs.readable)
    return lambda: of_inputs(inputs, rows)


def _row(item: Any, k: int) -> tuple[Any, dict[str, Any]]:
    """The input of a row, and its columns."""
    if isinstance(item, Mapping):
        x_name = next((n for n in _X if n in item), None)
        y_name = next((n for n in _Y if n in item), None)
        if x_name is None or y_name is None:
            raise UserError(f"row {k}: a dict needs one of {', '.join(_X)} and one of {', '.join(_Y)}, got {', '.join(item)}")
        rest = {n: _number(v) for n, v in item.items() if n not in (x_name, y_name)}
        return item[x_name], {"label": _number(item[y_name]), **rest}
    if isinstance(item, (tuple, list)) and len(item) in (2, 3):
        row = {"label": _number(item[1])}
        return item[0], row | ({"bias": _number(item[2])} if len(item) == 3 else {})
    raise UserError(f"row {k}: must be (x, y), (x, y, bias) or a dict, got {type(item).__name__}")


def _number(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def stack(xs: list[Any], cfg: DataConfig, where: str) -> tuple[Tensor, Tensor | None]:
    if isinstance(xs[0], Image.Image):
        return stack_pictures(iter(xs), len(xs), cfg, where)
    shapes = {tuple(np.shape(x)) for x in xs}
    if len(shapes) > 1:
        raise UserError(f"{where}: inputs have different shapes {sorted(shapes)[:3]}; resize them to one shape first")
    return as_inputs(np.stack([np.asarray(x) for x in xs]), f"{where}: inputs"), None


def stack_pictures(
    pictures: Iterable[Image.Image | Callable[[], Image.Image]], n: int, cfg: DataConfig, where: str
) -> tuple[Tensor, Tensor | None]:
    """PIL images, or functions that open them, as one uint8 tensor, all of the first one's size unless `data.size` is set.

    The second value says which could be decoded; None if all could.
    """
    x: Tensor | None = None
    broken: dict[int, str] = {}
    for k, picture in enumerate(pictures):
        try:
            image = to_rgb(upright(picture() if callable(picture) else picture))
            if x is None:
                side = (cfg.size, cfg.size) if cfg.size else (image.height, image.width)
                x = torch.zeros(n, 3, *side, dtype=torch.uint8)
            if (image.height, image.width) != side:
                image = ImageOps.fit(image, (side[1], side[0]), Image.Resampling.BILINEAR)
            x[k] = torch.from_numpy(np.array(image)).permute(2, 0, 1)
        except FAILURES as error:
            broken[k] = " ".join(str(error).split()) or type(error).__name__
    too_many_bad(broken, [f"row {k} of {where}" for k in range(n)], n, cfg.max_bad)
    if x is None:
        raise UserError(f"{where}: no rows")
    readable = torch.ones(n, dtype=torch.bool)
    readable[list(broken)] = False
    return x, readable if broken else None
