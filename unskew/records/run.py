"""A folder: config.json, log.jsonl, state and model weights, predictions, metrics, report."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from unskew.core import notebook, plots
from unskew.core.errors import UserError
from unskew.core.files import check_shape, read_json
from unskew.records.table import Table

# What a run that can be opened records about itself: key, and type of the value or what it holds in turn.
_RECORD: dict[str, Any] = {
    "config": {
        "method_name": str, "method": dict, "model_name": str, "model": dict, "seed": int, "data": dict, "train": {"precision": str},
    },
    "data": {
        "source": str, "classes": [str], "shape": [int], "rows": dict, "multi_label": bool, "notes": [str], "name": str,
    },
    "facts": {"class_counts": list, "size": int, "shape": [int], "multi_label": bool, "bias_sizes": [int]},
    "alignment": {"rule": str, "pairs": dict}, "labels": {"training": [str], "selection": [str]}, "fingerprint": str,
    "parameters": int, "versions": dict, "command": str,
}  # fmt: skip
_OUTCOME: dict[str, Any] = {"steps": int, "seconds": float, "selection": {"rule": str, "step": int}, "unreadable": [dict]}


@dataclass(frozen=True, slots=True)
class Run:
    """A folder: config.json, log.jsonl, state and model weights, predictions, metrics, report."""

    path: Path

    def __post_init__(self) -> None:
        if not (self.path / "config.json").is_file():
            raise UserError(f"{str(self.path)!r} is not a run: it has no config.json; make one with unskew train")
        try:
            known = "config" in read_json(self.path / "config.json")
        except UserError:
            known = False
        if not known:
            raise UserError(f"{str(self.path)!r} is not a run: its config.json is not unskew's")

    @property
    def config(self) -> dict[str, Any]:
        """What config.json says. Parts may be missing; `whole` has them all."""
        loaded = read_json(self.path / "config.json", "the record of a run")
        for part in ("config", "data"):
            if not isinstance(loaded.get(part), dict):
                raise UserError(f"{self.path / 'config.json'} is damaged or not the record of a run: it has no table {part!r}")
        return loaded

    @property
    def whole(self) -> dict[str, Any]:
        """config.json of a run that can be opened: everything is there, of its type, and agrees with itself."""
        record, path = self.config, self.path / "config.json"
        check_shape(record, _RECORD, path)
        data, facts = record["data"], record["facts"]
        if len(facts["class_counts"]) != len(data["classes"]) or facts["shape"] != data["shape"]:
            raise UserError(
                f"{path} contradicts itself: {len(data['classes'])} classes of inputs {data['shape']}, but facts of others"
            )
        return record

    @property
    def finished(self) -> bool:
        return (self.path / "done.json").is_file()

    @property
    def outcome(self) -> dict[str, Any]:
        """How the training ended: steps, seconds, selected step, skipped rows."""
        if not self.finished:
            raise UserError(f"{str(self.path)!r} is not finished: run its unskew train command again to resume")
        path = self.path / "done.json"
        outcome = read_json(path, "the outcome of a run")
        check_shape(outcome, _OUTCOME, path)
        return outcome

    def log(self) -> list[dict[str, Any]]:
        """The lines of log.jsonl; where a resumed run repeats a step, its last line counts."""
        path = self.path / "log.jsonl"
        if not path.is_file():
            return []
        rows: dict[tuple[int, str], dict[str, Any]] = {}
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):  # the last line of a killed run may be cut short
                continue
            if isinstance(row, dict) and type(row.get("step")) is int and isinstance(row.get("kind"), str):
                rows[(row["step"], row["kind"])] = row
        return [rows[key] for key in sorted(rows)]

    @property
    def predictions(self) -> pl.DataFrame:
        """What the run said of every row it was evaluated on, with a column `split`: the tables of `evaluate` in one frame.

        `trained` are rows that it was trained on.
        """
        tables = {path.stem: Table.read(path).frame for path in sorted((self.path / "predictions").glob("*.parquet"))}
        if not tables:
            raise UserError(f"{str(self.path)!r} has no predictions yet; make them with: unskew evaluate {self.path}")
        named = [frame.with_columns(pl.lit(name).alias("split")) for name, frame in tables.items()]
        return pl.concat(named, how="diagonal_relaxed")

    def plot(self) -> Any:
        """An Altair chart: what the log says of training and validation, by step."""
        rows = [
            {"x": line["step"], "y": value, "series": f"{line['kind']} {name}"}
            for line in self.log()
            for name, value in line.items()
            if name not in ("step", "kind", "lr") and isinstance(value, int | float)
        ]
        return plots.lines(rows, "step", "value")

    def _repr_html_(self) -> str:
        cfg = self.config
        about = {
            "method": cfg["config"]["method_name"],
            "model": cfg["config"]["model_name"],
            "source": cfg["data"]["source"] or cfg["data"]["name"],
            "parameters": cfg["parameters"],
            "labels used in training": ", ".join(cfg["labels"]["training"]),
            "finished": f"{self.outcome['steps']} steps, {self.outcome['seconds']:.0f} s" if self.finished else "no",
        }
        return str(notebook.facts(f"run {self.path}", about))
