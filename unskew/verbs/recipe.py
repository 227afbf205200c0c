"""`train --recipe`: a row of a suite, whose shared runs are trained first, or the user's own TOML file."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unskew.core import config
from unskew.suites.recipe import recipe
from unskew.verbs.train import train


@dataclass(frozen=True, slots=True)
class Request:
    """A requested training."""

    source: str
    method: str
    model: str
    settings: Mapping[str, Any]


def read_recipe(text: str, out: Path, seed: int, device: str, words: Mapping[str, Any], command: str) -> Request:
    """The training of a recipe; settings on the command line override its own. Shared runs of a suite go beside `out`."""
    if text.endswith(".toml"):
        named, values = config.recipe(Path(text))
        settings = config.merged(values, dict(words))
        return Request(named.get("source", ""), named.get("method", "erm"), named.get("model", ""), settings)
    row = recipe(text, seed)
    paths = {}
    for task in row.shared:
        place = out.absolute().with_name(f"{out.absolute().name}-{task.name}")
        run = train(
            task.source,
            task.method,
            model=task.model,
            out=place,
            seed=seed,
            device=device,
            settings=task.settings,
            command=command,
        )
        paths[f"{{shared.{task.name}}}"] = str(run.path)
    task = row.task
    settings = {key: _filled(value, paths) for key, value in task.settings.items()}
    return Request(task.source, task.method, task.model, {**settings, **words})


def _filled(text: str, paths: Mapping[str, str]) -> str:
    for name, path in paths.items():
        text = text.replace(name, path)
    return text
