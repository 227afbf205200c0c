"""An audit for other tools: its rows with their scores for Spotlight and FiftyOne, and a Croissant file with a data card."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from unskew.core.errors import UserError
from unskew.core.failures import refusing
from unskew.core.files import check_shape, read_json, write_json, write_text
from unskew.data.sources import load
from unskew.pages.cards import data_card, how_to_open
from unskew.records import Table

TABLES = ("croissant", "fiftyone", "spotlight")
ROWS = "rows.parquet"

_OWN = (
    "citeAs", "column", "equivalentProperty", "extract", "field", "fileProperty", "fileObject", "fileSet", "format", "includes",
    "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex", "repeated", "replace",
    "samplingRate", "separator", "source", "subField", "transform",
)  # fmt: skip
# The context that Croissant 1.0 prescribes, with its vocabulary for responsible AI.
_CONTEXT: dict[str, Any] = {
    "@language": "en", "@vocab": "https://schema.org/", "sc": "https://schema.org/", "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/", "dct": "http://purl.org/dc/terms/", "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"}, "examples": {"@id": "cr:examples", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"}, **{name: f"cr:{name}" for name in _OWN},
}  # fmt: skip
_TYPES = {pl.Int64: "sc:Integer", pl.Float64: "sc:Float", pl.String: "sc:Text", pl.Boolean: "sc:Boolean"}


def write_tables(form: str, audit: Path, folder: Path, source: Any = None) -> str:
    """Write an audit's rows, and what `form` needs beside them, into `folder`; returns a note."""
    path = audit / "audit.json"
    found = read_json(path, "an audit")
    check_shape(found, {"data": dict, "representations": [dict]}, path)
    rows = _rows(audit, found, source)
    rows.write_parquet(folder / ROWS)
    with refusing(f"{path} is damaged or was not written by this version of unskew; make it again"):
        card, croissant = data_card(found) + how_to_open(form), _croissant(found, rows, folder / ROWS)
    write_text(folder / "README.md", card)
    if form == "croissant":
        write_json(folder / "croissant.json", croissant)
    missing = rows["path"].null_count() if "path" in rows.columns else len(rows)
    return f"{missing} of {len(rows)} rows have no file to show" if missing and form != "croissant" else ""


def _rows(audit: Path, found: Mapping[str, Any], source: Any) -> pl.DataFrame:
    """The scores, with each row's split, bias values and the path of its file."""
    table = Table.read(audit / "scores.parquet")
    scores = table.frame
    given = source if source is not None else found["data"].get("source")
    if not given:
        raise UserError(f"{audit} measured data passed from Python; name it with --source")
    data = load(given)
    if not data.is_source(found["data"].get("fingerprint")):
        raise UserError(f"{given} is not the data that {audit} measured, or has changed since; audit it again")
    index = table.index
    known: dict[str, Any] = {"split": [data.splits[k] for k in data.split[index].tolist()]}
    for b, name in enumerate(data.bias_names):
        known[name] = [data.bias_values[b][code] if code >= 0 else None for code in data.bias[index, b].tolist()]
    added = [pl.Series(name, values) for name, values in known.items() if name not in scores.columns]
    return scores.with_columns(added)


def _croissant(found: Mapping[str, Any], rows: pl.DataFrame, path: Path) -> dict[str, Any]:
    """The description of the table, with what was measured under rai:dataBiases."""
    data = found["data"]
    told = [f["sentence"] for f in found["representations"] if f.get("verdict") not in ("clean", "trace")]
    columns = [
        f"{c['name']}: association with the class {c['association']['cramers_v']:.2f} (Cramer's V)"
        for c in found["columns"]
        if c.get("association") and "cramers_v" in c["association"]
    ]
    fields = [
        {
            "@type": "cr:Field", "@id": "rows/" + "_".join(name.split()), "name": name,
            "dataType": _TYPES.get(type_.base_type(), "sc:Text"),
            "source": {"fileObject": {"@id": ROWS}, "extract": {"column": name}},
        }
        for name, type_ in rows.schema.items()
    ]  # fmt: skip
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": data["name"],
        "description": f"{found['rows']} rows of {len(data['classes'])} classes. {found['verdict']}",
        "rai:dataBiases": [found["verdict"], *told, *columns, *found.get("questions", [])],
        "distribution": [
            {
                "@type": "cr:FileObject", "@id": ROWS, "name": ROWS, "contentUrl": ROWS, "encodingFormat": "application/x-parquet",
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            }
        ],
        "recordSet": [{"@type": "cr:RecordSet", "@id": "rows", "name": "rows", "field": fields}],
    }  # fmt: skip
