"""Options that several commands share, and the settings they stand for."""

import shlex
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import typer

from unskew.core import registry

if TYPE_CHECKING:
    from unskew.measure.leakage import Attack

Source = Annotated[
    str, typer.Argument(help="Built-in name with settings (colored-mnist:ratio=0.99), folder, table, .npz or saved data set.")
]
Settings = Annotated[
    Optional[list[str]], typer.Argument(metavar="[KEY=VALUE]...", help="Settings, e.g. train.epochs=10 optim.lr=0.01.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
Seed = Annotated[int, typer.Option(help="Seed of every random stream.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:0, mps.")]
Label = Annotated[str, typer.Option(help="Label column; several, separated by commas, make a multi-label task.")]
Bias = Annotated[
    Optional[list[str]],
    typer.Option(help="Bias column, or TABLE.parquet:COLUMN such as audit/scores.parquet:slice; may be given several times."),
]
Split = Annotated[str, typer.Option("--split", help="Split column.")]
Group = Annotated[
    str, typer.Option("--group", help="Column (patient, site, clip) whose values are never divided between splits.")
]
Protocol = Annotated[
    Literal["paper", "code"],
    typer.Option(help="Leakage: paper reports plain accuracy, code folds it about one half as the released code does."),
]
FitOn = Annotated[
    Literal["judged", "train"],
    typer.Option(help="Leakage attackers are fitted on a part of the judged rows, or on the train split (as the authors do)."),
]


Executor = Annotated[Literal["local", "ray"], typer.Option("--executor", help="Where passes over the data run: here, or on Ray.")]
Address = Annotated[
    str, typer.Option(help="With --executor ray: address of a running cluster; one is started here if not given.")
]
Gpus = Annotated[float, typer.Option(help="With --executor ray: GPUs of every worker.")]


def _trust(given: bool) -> bool:
    if given:
        registry.trust_everything()
    return given


Trust = Annotated[
    bool,
    typer.Option(
        "--trust", help="Also import modules that a run, recipe or suite names. Only for files you wrote.", callback=_trust
    ),
]


def columns(label: str, bias: list[str] | None, split: str, group: str) -> dict[str, Any]:
    """--label, --bias, --split and --group as the settings they stand for."""
    named = {"data.label": label, "data.bias": ",".join(bias or []), "data.split": split, "data.group": group}
    return {key: value for key, value in named.items() if value}


def attack_by(protocol: Literal["paper", "code"]) -> "Attack | None":
    """The attackers of a protocol; None for the default."""
    from unskew.measure.leakage import Attack

    return None if protocol == "paper" else Attack(protocol=protocol)


def command() -> str:
    """The command line as typed."""
    return shlex.join(["unskew", *sys.argv[1:]])
