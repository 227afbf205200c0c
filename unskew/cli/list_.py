"""`unskew list`: the names of all components of a kind, the settings, or the kinds."""

from typing import Annotated

import typer

from unskew.cli.app import app, examples, show
from unskew.cli.options import Json
from unskew.core import reference, registry
from unskew.core.errors import UserError, suggest

PREFIXES = {  # what can be put before a method
    "denoise+METHOD": "any of these, after dropping rows with wrong labels",
    "balance+METHOD": "any of these, after dropping rows until every label has the bias values equally often",
}
MEANING = {
    "methods": "ways to train: --method",
    "models": "networks: --model",
    "data": "built-in data sets: a source",
    "measures": "formulas with intervals: unskew.measure",
    "repairs": "from rows to weights: repair --with",
    "representations": "what a shortcut can be read from: audit --representation, phi=",
    "questions": "what evaluate can ask",
    "suites": "published tables to reproduce: bench, train --recipe",
    "settings": "every setting of a run, with type, default and meaning",
}


@app.command("list", epilog=examples("unskew list methods", "unskew list settings"))
def list_(
    kind: Annotated[str, typer.Argument(help=f"{', '.join([*registry.KINDS, 'settings'])}; the kinds if not given.")] = "",
    json: Json = False,
) -> None:
    """List the components of a kind, or every setting."""
    if not kind:
        show({"kinds": MEANING}, json, "\n".join(f"{name:16} {meaning}" for name, meaning in MEANING.items()))
        return
    if kind == "settings":
        settings = reference.run_settings()
        width = max(len(f"{s.name}={s.default}") for s in settings if len(s.default) < 20)
        text = "\n".join(s.line(width) for s in settings)
        show(
            {kind: [s.json() for s in settings]},
            json,
            f"{text}\n\nA method, repair or network has settings of its own: unskew explain NAME",
        )
        return
    kind = registry.ALIASES.get(kind, kind)
    if kind not in registry.KINDS:
        raise UserError(f"no list of {kind!r}{suggest(kind, [*registry.KINDS, 'settings'])}")
    rows = {name: registry.first_line(kind, name) for name in registry.names(kind)}
    rows |= PREFIXES if kind == "methods" else {}
    show({kind: rows}, json, "\n".join(f"{name:16} {first}" for name, first in rows.items()))
