"""Where the lines of a training's log go besides log.jsonl: TensorBoard if it is installed, MLflow and Weights & Biases if asked for.

None of them is needed, and none can end a training: what one of them raises is said once, and the training goes on without it.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from unskew.core import progress
from unskew.core.errors import UserError, suggest
from unskew.core.workplace import digest


class Board(Protocol):
    def add(self, kind: str, step: int, values: Mapping[str, float]) -> None: ...
    def close(self) -> None: ...


class TensorBoard:
    def __init__(self, out: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(out / "tensorboard"))  # type: ignore[no-untyped-call,unused-ignore]

    def add(self, kind: str, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self.writer.add_scalar(f"{kind}/{name}", value, step)  # type: ignore[no-untyped-call,unused-ignore]

    def close(self) -> None:
        self.writer.close()  # type: ignore[no-untyped-call,unused-ignore]


class Mlflow:
    """One MLflow run per run folder; MLFLOW_TRACKING_URI says where. A resumed training goes on in its run."""

    def __init__(self, out: Path, settings: Mapping[str, Any]) -> None:
        import mlflow

        self.mlflow = mlflow
        self.mlflow.set_experiment("unskew")
        mark = identity_of(out)
        known = self.mlflow.search_runs(filter_string=f"tags.unskew = '{mark}'", output_format="list", max_results=1)
        again = {"run_id": known[0].info.run_id} if known else {"run_name": out.name, "tags": {"unskew": mark}}
        self.mlflow.start_run(**again)
        if not known:
            self.mlflow.log_params({name: str(value)[:500] for name, value in flat(settings).items()})

    def add(self, kind: str, step: int, values: Mapping[str, float]) -> None:
        self.mlflow.log_metrics({f"{kind}.{name}": float(value) for name, value in values.items()}, step=step)

    def close(self) -> None:
        self.mlflow.end_run()


class Wandb:
    """One run of Weights & Biases per run folder; WANDB_MODE and WANDB_PROJECT say how and where."""

    def __init__(self, out: Path, settings: Mapping[str, Any]) -> None:
        import wandb

        self.run = wandb.init(id=identity_of(out), name=out.name, config=flat(settings), resume="allow", dir=str(out))

    def add(self, kind: str, step: int, values: Mapping[str, float]) -> None:
        self.run.log({f"{kind}/{name}": float(value) for name, value in values.items()}, step=step)

    def close(self) -> None:
        self.run.finish()


_ASKED: Mapping[str, Callable[[Path, Mapping[str, Any]], Board]] = {"mlflow": Mlflow, "wandb": Wandb}


def check_asked(asked: Sequence[str]) -> None:
    """Raise if a logger is unknown."""
    for name in asked:
        if name not in _ASKED:
            raise UserError(f"train.log_to={name}: there is no such logger{suggest(name, _ASKED)}")


def open_boards(out: Path, asked: Sequence[str], settings: Mapping[str, Any]) -> "list[Guarded]":
    """TensorBoard where it is installed, and what was asked for."""
    boards = []
    for name in asked:
        try:
            boards.append(Guarded(name, partial(_ASKED[name], out, settings), missing=False))
        except ImportError:
            raise UserError(f"train.log_to={name} needs the package {name}: pip install 'unskew[{name}]'") from None
    return [*boards, Guarded("tensorboard", partial(TensorBoard, out), missing=True)]


class Guarded:
    """A board whose failures are said once and end its part, not the training."""

    def __init__(self, name: str, make: Callable[[], Board], *, missing: bool = True) -> None:
        """With `missing`, a package that is not installed is no matter; else its ImportError is raised."""
        self.name = name
        self.board: Board | None = None
        try:
            self.board = make()
        except ImportError:
            if not missing:
                raise
        except Exception as error:
            self._give_up(error)

    def add(self, kind: str, step: int, values: Mapping[str, float]) -> None:
        if self.board is not None:
            try:
                self.board.add(kind, step, values)
            except Exception as error:
                self._give_up(error)

    def close(self) -> None:
        if self.board is not None:
            try:
                self.board.close()
            except Exception as error:
                self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self.board = None
        progress.say(f"{self.name} is no longer written to: {' '.join(str(error).split())[:200]}")


def identity_of(out: Path) -> str:
    """The same for one run folder whenever it is asked, so that a resumed training is recognised."""
    return digest("run", str(out.absolute()))[:16]


def flat(settings: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """
    >>> flat({"train": {"batch": 8}, "seed": 0})
    {'train.batch': 8, 'seed': 0}
    """
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found |= flat(value, f"{before}{name}.") if isinstance(value, Mapping) else {before + name: value}
    return found
