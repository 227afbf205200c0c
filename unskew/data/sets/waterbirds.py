r"""waterbirds: birds on land and water, read from disk; or any set with the metadata.csv of group DRO.

.. math::  (x_i, y_i, b_i) = (\text{img\_filename}_i,\ \text{y}_i,\ \text{place}_i)

In the training split 95 % of the birds are where they belong; val and test have every bird equally often on both grounds. The root is
the folder waterbird_complete95_forest2water2: metadata.csv with the columns img_filename, y, split (0 train, 1 val, 2 test) and place,
and the images beside it. For another set of that layout, `label` and `bias` name the columns; classes and bias values are then called
by their numbers.

Source: Sagawa, Koh, Hashimoto, Liang, "Distributionally robust neural networks for group shifts", ICLR 2020
(github.com/kohpangwei/group_DRO), from Caltech-UCSD Birds 200-2011 and Places.
Differs: nothing.
"""

from dataclasses import dataclass

import polars as pl

from unskew.core.errors import UserError, suggest
from unskew.data.readers.listing import Listing, Need, Row, check_root

NEEDS = (Need("metadata.csv", "img_filename, y, split and place of every image; the images lie beside it"),)
SPLITS = ("train", "val", "test")
NAMES = {"y": ("landbird", "waterbird"), "place": ("land", "water")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    root: str = ""  # folder of the data set
    label: str = "y"  # column of the class
    bias: str = "place"  # column of the bias


def listing(cfg: Config) -> Listing:
    root = check_root(cfg.root, NEEDS, "waterbirds")
    path = root / "metadata.csv"
    try:
        table = pl.read_csv(path, infer_schema_length=None)
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not a table ({error})") from None
    for column in ("img_filename", "split", cfg.label, cfg.bias):
        if column not in table.columns:
            raise UserError(f"{path}: no column {column!r}{suggest(column, table.columns)}")
    classes, kinds = (_names(table, column, path) for column in (cfg.label, cfg.bias))
    rows = []
    for number, (file, part, y, b) in enumerate(table.select("img_filename", "split", cfg.label, cfg.bias).iter_rows(), 2):
        if part not in (0, 1, 2):
            raise UserError(f"{path}:{number}: split {part!r} must be 0 (train), 1 (val) or 2 (test)")
        rows.append(Row(str(file), classes[y], SPLITS[part], {cfg.bias: kinds[b]}))
    return Listing("waterbirds", root, rows, tuple(classes.values()), {cfg.bias: tuple(kinds.values())})


def _names(table: pl.DataFrame, column: str, path: object) -> dict[int, str]:
    """What each number of a column is called: land and water for Waterbirds, the number itself elsewhere."""
    values = table[column]
    if not values.dtype.is_integer() or values.null_count():
        raise UserError(f"{path}: column {column!r} must hold whole numbers")
    codes = sorted(set(values.to_list()))
    known = NAMES.get(column, ())
    return {v: known[v] if "place" in table.columns and 0 <= v < len(known) else str(v) for v in codes}
