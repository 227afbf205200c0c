"""`unskew explain`: the card of a component, or what a setting means."""

from typing import Annotated

import typer

from unskew.cli.app import app, examples, show
from unskew.cli.options import Json
from unskew.core import reference, registry
from unskew.core.errors import UserError, suggest


@app.command(epilog=examples("unskew explain lff", "unskew explain train.batch"))
def explain(
    name: Annotated[
        str, typer.Argument(help="Name of a component (erm, colored-mnist, pgd-table1) or of a setting (train.batch, lff.q).")
    ],
    json: Json = False,
) -> None:
    """Print a card: equation, source, how ours differs, settings. Or a setting: type, default, meaning."""
    kinds = [kind for kind in registry.KINDS if registry.is_known(kind, name)]
    if not kinds and "." in name:
        settings = reference.find(name)
        show({"settings": [s.json() for s in settings]}, json, "\n".join(_setting(s) for s in settings))
        return
    if not kinds:
        raise UserError(f"nothing is called {name!r}{suggest(name, {n for k in registry.KINDS for n in registry.names(k)})}")
    cards = [{"kind": kind, "name": name, "card": registry.card(kind, name)} for kind in kinds]
    text = [_card(kind, name, headed=k > 0) for k, kind in enumerate(kinds)]  # repair is both a repair and a method
    show({**cards[0], "others": cards[1:]}, json, "\n\n".join(text))


def _card(kind: str, name: str, headed: bool) -> str:
    head = f"{registry.singular(kind)}: {name}\n\n" if headed else ""
    settings = reference.component_settings(kind, name) if kind in reference.COMPONENTS else []
    width = max((len(f"{s.name}={s.default}") for s in settings if len(s.default) < 24), default=0)
    listed = "\n\nSettings:\n" + "\n".join(f"  {s.line(width)}" for s in settings) if settings else ""
    return f"{head}{registry.card(kind, name)}{listed}"


def _setting(s: reference.Setting) -> str:
    return f"{s.name}\n  {s.meaning}\n  type: {s.type}\n  default: {'none; it must be given' if s.required else s.shown}"
