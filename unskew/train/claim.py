"""Whose place a run's folder is: free, this run's own, or another's."""

import json
from pathlib import Path
from typing import Any

from unskew.errors import UserError
from unskew.files import dumps
from unskew.records import Run

IDENTITY = ("config", "fingerprint", "weights")


def check_place(out: Path) -> None:
    """Refuse a place that holds something else, before any work is done."""
    if out.is_file() or (out.is_dir() and any(out.iterdir()) and not (out / "config.json").is_file()):
        raise UserError(f"{out} exists and is not a run; choose another --out")


def claim(out: Path, record: dict[str, Any], default: dict[str, Any]) -> Run | None:
    """The finished run that is there already, None if there is work to do; another run in the folder is an error.

    A setting that did not exist when the run was made had the effect of its value in `default`.
    """
    path = out / "config.json"
    if not path.is_file():
        return None
    there = Run(out).config
    ours = json.loads(dumps(record))
    there["config"] = _filled(there["config"], json.loads(dumps(default)))
    for key in IDENTITY:
        if there.get(key) != ours[key]:
            raise UserError(
                f"{out} holds another run ({_difference(there.get(key), ours[key], key)}); choose another --out, or remove it"
            )
    return Run(out) if Run(out).finished else None


def _filled(given: dict[str, Any], default: dict[str, Any]) -> dict[str, Any]:
    """`given` with what it lacks of `default`, table by table."""
    return default | {
        k: _filled(v, default[k]) if isinstance(v, dict) and isinstance(default.get(k), dict) else v for k, v in given.items()
    }


def _difference(there: Any, ours: Any, name: str) -> str:
    """The first setting in which two records differ."""
    if isinstance(there, dict) and isinstance(ours, dict):
        for key in sorted(
            set(there) | set(ours), key=lambda k: (not k.endswith("_name"), k)
        ):  # a name says more than its settings
            if there.get(key) != ours.get(key):
                return _difference(there.get(key), ours.get(key), f"{name}.{key}")
    return f"{name} is {there} there and {ours} here"
