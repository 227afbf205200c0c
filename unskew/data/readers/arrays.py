"""An .npz with `x` (or `features`) and `y`; every other array with the same number of rows is a column."""

import dataclasses
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.failures import refusing
from unskew.core.files import replacing
from unskew.data.dataset import DataSet, Memory
from unskew.data.duplicates import of_pixels
from unskew.data.readers import columns as _columns
from unskew.data.readers.images import as_built
from unskew.data.reading import DataConfig
from unskew.data.splitting import settle


def from_arrays_file(path: Path, cfg: DataConfig) -> DataSet:
    arrays = read_npz(path)
    with refusing(f"{path} holds arrays that do not fit together"):
        return _from_arrays(arrays, path, cfg)


def _from_arrays(arrays: dict[str, np.ndarray[Any, Any]], path: Path, cfg: DataConfig) -> DataSet:
    where = str(path)
    x_name = next((n for n in ("x", "features", "X") if n in arrays), None)
    if x_name is None:
        raise UserError(f"{where}: no array 'x' or 'features'; it has {', '.join(arrays)}")
    x = arrays.pop(x_name)
    if x.ndim < 2 or not len(x):
        raise UserError(f"{where}: {x_name!r} has shape {x.shape}; it needs at least one row, and one number per row")
    # Written by `unskew data` to normalise the inputs. Arrays of these names with one value per row are columns.
    meta = {k: arrays.pop(k) for k in ("mean", "std") if k in arrays and arrays[k].ndim == 1 and len(arrays[k]) != len(x)}
    channels = x.shape[-3] if x.ndim >= 4 else x.shape[-1]
    if meta and (set(meta) != {"mean", "std"} or any(len(v) != channels or v.dtype.kind != "f" for v in meta.values())):
        raise UserError(f"{where}: needs both 'mean' and 'std', with one number for each of the {channels} channels")
    names = {k: arrays.pop(k) for k in list(arrays) if k.startswith("values_") or k == "classes"}
    aligned = {k: torch.from_numpy(arrays.pop(k)) for k in list(arrays) if k.startswith("aligned_")}
    lengths = {k: len(a) if a.ndim else 0 for k, a in arrays.items()}
    wrong = next((k for k, n in lengths.items() if n != len(x)), None)
    if wrong is not None:
        raise UserError(f"{where}: {x_name!r} has {len(x)} rows but {wrong!r} has {lengths[wrong]}")
    frame = pl.DataFrame({k: a if a.ndim == 1 else a.tolist() for k, a in arrays.items() if a.ndim in (1, 2)})
    label = cfg.label or tuple(n for n in ("y", *_columns.LABEL_NAMES) if n in arrays)[:1]
    if not label:
        raise UserError(f"{where}: no label array 'y'; it has {', '.join(arrays)}; name one with --label")
    if len(label) == 1 and label[0] in arrays and arrays[label[0]].ndim == 2:
        y, classes = label_matrix(arrays[label[0]], where)
    else:
        y, classes = _columns.labels(frame, dataclasses.replace(cfg, label=label), where)
    bias_names = cfg.bias or tuple(k.removeprefix("values_") for k in names if k.startswith("values_"))
    coded = [n for n in bias_names if f"values_{n}" in names]  # codes, with -1 for missing
    frame = frame.with_columns([pl.when(pl.col(n) >= 0).then(pl.col(n)).alias(n) for n in coded])
    bias, values = _columns.biases(frame, bias_names, where)
    split, splits = _columns.splits(frame, cfg, where)
    inputs = as_inputs(x, f"{where}: {x_name!r}")
    twins = (lambda: of_pixels(inputs)) if inputs.ndim == 4 else None
    settled = settle(y, split, as_built(path.parent, cfg), where, columns=frame, twins=twins)
    y, classes = _named(y, classes, names.get("classes"), len(label) == 1)
    for k, name in enumerate(bias_names):
        bias[:, k], value = _named(bias[:, k], values[k], names.get(f"values_{name}"), True)
        values = (*values[:k], value, *values[k + 1 :])
    return DataSet(
        name=path.parent.name if path.name == "data.npz" else path.stem,
        source=where,
        inputs=Memory(inputs),
        y=y,
        classes=classes,
        splits=splits,
        bias=bias,
        bias_names=tuple(bias_names),
        bias_values=values,
        aligned_by_design=_designed(aligned, bias_names, classes, values),
        mean=tuple(meta["mean"].tolist()) if "mean" in meta else (),
        std=tuple(meta["std"].tolist()) if "std" in meta else (),
        columns=frame,
        **settled.fields(),
    )


def read_npz(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of an .npz; never unpickled."""
    with refusing(f"{path} is not an .npz archive, or it is damaged"):
        if not zipfile.is_zipfile(path):
            raise UserError(f"{path} is not an .npz archive{' but a single array' if _is_npy(path) else ''}; it needs x and y")
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if member.filename.endswith(".npy"):
                    _check_header(archive, member, path)
        with np.load(path, allow_pickle=False) as archive:
            arrays = {}
            for name in archive.files:
                try:
                    arrays[name] = _usual(archive[name])
                except (ValueError, TypeError) as error:
                    raise UserError(
                        f"{path}: array {name!r} cannot be used ({error}); save numbers or text, not objects"
                    ) from None
            return arrays


def _is_npy(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(6) == b"\x93NUMPY"


def _check_header(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path) -> None:
    """Raise if an array says that it is larger than what is stored: nothing so large is allocated for it."""
    with archive.open(member) as file:
        try:
            version = np.lib.format.read_magic(file)
            reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, kind = reader(file)
        except (ValueError, KeyError, SyntaxError) as error:
            raise UserError(f"{path}: {member.filename} is not an array ({' '.join(str(error).split())[:100]})") from None
        if not kind.hasobject and math.prod(shape) * kind.itemsize > member.file_size:
            raise UserError(
                f"{path}: {member.filename} says it has shape {shape}, but holds {member.file_size} bytes; it was cut"
            )


def _usual(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array in a type that tables and tensors know: native byte order, 32 or 64 bits, text instead of bytes."""
    if array.dtype.kind in "cVO":
        raise ValueError(f"it holds {array.dtype}")
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8", "replace")
    if array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
        return array.astype(np.float32 if array.dtype.itemsize < 4 else np.float64)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def as_inputs(x: np.ndarray[Any, Any], where: str) -> Tensor:
    """Vectors (N, D), images (N, C, H, W) or clips (N, T, C, H, W); grey (N, H, W) and channels-last inputs are converted."""
    if x.dtype.kind not in "uifb":
        raise UserError(f"{where} holds {x.dtype}, not numbers")
    if x.ndim not in (2, 3, 4, 5) or 0 in x.shape:
        raise UserError(f"{where} has shape {x.shape}; allowed: (N, D), (N, H, W), (N, C, H, W), (N, T, C, H, W)")
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        rows = np.argwhere(~np.isfinite(x.reshape(len(x), -1)).all(1)).ravel()
        raise UserError(f"{where} has NaN or infinity in {len(rows)} rows, first in row {rows[0]}")
    with np.errstate(over="ignore"):
        t = torch.from_numpy(x if x.dtype == np.uint8 else x.astype(np.float32))
    if t.dtype != torch.uint8 and not bool(torch.isfinite(t).all()):
        raise UserError(f"{where} has numbers too large for 32-bit floats; scale them")
    if t.ndim == 3:
        t = t[:, None]
    if t.ndim >= 4 and t.shape[-1] in (1, 3) and t.shape[-3] not in (1, 3):
        t = t.movedim(-1, -3)
    return t.contiguous()


def label_matrix(y: np.ndarray[Any, Any], where: str) -> tuple[Tensor, tuple[str, ...]]:
    if y.dtype.kind not in "uifb" or not np.isin(y, (0, 1)).all():
        raise UserError(f"{where}: a label matrix must hold 0 and 1")
    return torch.from_numpy(y.astype(np.float32)), tuple(map(str, range(y.shape[1])))


def _designed(
    aligned: dict[str, Tensor], biases: tuple[str, ...], classes: tuple[str, ...], values: tuple[tuple[str, ...], ...]
) -> tuple[Tensor, ...] | None:
    """The aligned pairs of every bias column, if the file has them all in the right shape."""
    matrices = [aligned.get(f"aligned_{name}") for name in biases]
    shapes = [(len(classes), len(v)) for v in values]
    if not biases or any(m is None or tuple(m.shape) != s for m, s in zip(matrices, shapes, strict=True)):
        return None
    return tuple(m.bool() for m in matrices if m is not None)


def _named(code: Tensor, found: tuple[str, ...], given: Any, single: bool) -> tuple[Tensor, tuple[str, ...]]:
    """Codes and names if the file names all values: a value that no row has keeps its code."""
    if given is None:
        return code, found
    names = tuple(map(str, given.tolist()))
    if not single or code.ndim == 2:
        return code, names if len(names) == len(found) else found
    if not all(f.isdigit() for f in found):
        return code, found  # already text: the names in the file do not apply
    place = torch.tensor([int(f) for f in found] + [-1])  # -1, a missing value, picks the last
    if int(place.max()) >= len(names):
        raise UserError(f"label or bias code {int(place.max())} has no name: the file names only {len(names)}")
    return place[code], names


def write_arrays(data: DataSet, path: Path) -> None:
    """Write a data set in memory as an .npz; `from_arrays_file` reads back the same rows, names and splits."""
    if not isinstance(data.inputs, Memory):
        raise UserError(f"{data.name}: its inputs are already files; nothing to write")
    arrays: dict[str, Any] = {"x": data.inputs.x.numpy(), "y": data.y.numpy(), "classes": np.array(data.classes)}
    arrays["split"] = np.array(data.splits)[data.split.numpy()]
    for k, name in enumerate(data.bias_names):
        arrays[name] = data.bias[:, k].numpy()
        arrays[f"values_{name}"] = np.array(data.bias_values[k])
        if data.aligned_by_design is not None:
            arrays[f"aligned_{name}"] = data.aligned_by_design[k].numpy()
    for name in data.columns.columns:
        if name not in arrays and data.columns[name].dtype.is_numeric():
            arrays[name] = data.columns[name].to_numpy()
    if data.mean:
        arrays |= {"mean": np.array(data.mean), "std": np.array(data.std)}
    with replacing(path) as part, zipfile.ZipFile(part, "w", allowZip64=True) as out:
        for name, array in arrays.items():
            with out.open(f"{name}.npy", "w", force_zip64=True) as member:
                whole = np.ascontiguousarray(array)
                np.lib.format.write_array_header_2_0(member, np.lib.format.header_data_from_array_1_0(whole))
                member.write(whole.data.cast("B") if whole.dtype.kind != "U" else whole.tobytes())  # no copy of the pixels
