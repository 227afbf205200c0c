"""A folder: config.json, log.jsonl, state and model weights, predictions, metrics, report."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unskew.core import notebook
from unskew.core.errors import UserError


@dataclass(frozen=True, slots=True)
class Run:
    """A folder: config.json, log.jsonl, state and model weights, predictions, metrics, report."""

    path: Path

    def __post_init__(self) -> None:
        if not (self.path / "config.json").is_file():
            raise UserError(f"{str(self.path)!r} is not a run: it has no config.json; make one with unskew train")
        try:
            known = "config" in json.loads((self.path / "config.json").read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError, TypeError):
            known = False
        if not known:
            raise UserError(f"{str(self.path)!r} is not a run: its config.json is not unskew's")

    @property
    def config(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads((self.path / "config.json").read_text(encoding="utf-8"))
        return loaded

    @property
    def finished(self) -> bool:
        return (self.path / "done.json").is_file()

    @property
    def outcome(self) -> dict[str, Any]:
        """How the training ended: steps, seconds, selected step, skipped rows."""
        if not self.finished:
            raise UserError(f"{str(self.path)!r} is not finished: run its unskew train command again to resume")
        loaded: dict[str, Any] = json.loads((self.path / "done.json").read_text(encoding="utf-8"))
        return loaded

    def log(self) -> list[dict[str, Any]]:
        """The lines of log.jsonl; where a resumed run repeats a step, its last line counts."""
        path = self.path / "log.jsonl"
        if not path.is_file():
            return []
        rows: dict[tuple[int, str], dict[str, Any]] = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                row = json.loads(line)
            except json.JSONDecodeError:  # the last line of a killed run may be cut short
                continue
            rows[(row["step"], row["kind"])] = row
        return [rows[key] for key in sorted(rows)]

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
