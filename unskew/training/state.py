"""What happens between the steps of a training: looks at the validation split, checkpoints, the choice of weights, the log."""

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from unskew.core import checkpoint, progress
from unskew.core import engine as processes
from unskew.core.durations import steps_of
from unskew.core.engine import Engine
from unskew.core.errors import UserError
from unskew.core.failures import refusing
from unskew.core.files import dumps, write_json
from unskew.data.dataset import DataSet
from unskew.data.loader import Loader
from unskew.methods._contract import Method
from unskew.training.loggers import Guarded, open_boards
from unskew.training.predict import most_likely, predict
from unskew.training.selection import GUESSED, LOOKS_AT, better, by_class, score
from unskew.training.settings import RunConfig

SAVE_SECONDS = 30.0  # between saved states of a training with slow steps


@dataclass
class Known:
    """What missing bias labels cost: the true worst group at the step a rule chose without them, and the best of all looks."""

    chosen: float = 0.0  # accuracy of the validation split's worst (class, bias) group at the chosen step
    best: float = 0.0  # its best over all looks, which val-worst-group would have chosen
    step: int = 0  # the step of the best

    def look(self, worst: float, step: int, chosen: bool) -> None:
        """Note a look; `chosen` if the rule prefers this step to all before."""
        if chosen:
            self.chosen = worst
        if not self.step or worst > self.best:
            self.best, self.step = worst, step

    def words(self, rule: str) -> str:
        """In a sentence."""
        gap = 100 * (self.best - self.chosen)
        return (
            f"{rule} chose weights whose worst (class, bias) group has {100 * self.chosen:.1f} % on the validation rows; with bias "
            f"labels, step {self.step} has {100 * self.best:.1f} %: missing labels cost {gap:.1f} points"
        )


class State:
    """What happens between the steps: looks at the validation split, checkpoints, the choice of weights."""

    def __init__(
        self, out: Path, method: Method, optimizers: dict[str, Any], data: DataSet, cfg: RunConfig,
        engine: Engine, per_epoch: int, total: int, loader: Loader,
    ) -> None:  # fmt: skip
        self.out, self.method, self.optimizers, self.data, self.cfg = out, method, optimizers, data, cfg
        self.engine, self.total, self.loader = engine, total, loader
        self.save_every = max(1, steps_of(cfg.train.checkpoint, per_epoch, total, "train.checkpoint"))
        self.look_every = max(1, steps_of(cfg.select.every, per_epoch, total, "select.every"))
        self.step, self.best_step, self.before = 0, 0, 0.0
        self.best: float | None = None
        self.guessed: Tensor | None = None  # (N,) groups of validation rows, for a rule that finds them without bias labels
        self.known = Known()
        self.started = self.saved_at = time.monotonic()
        self.log: Callable[[str, int, dict[str, float]], None] = lambda kind, step, values: None
        self.advance: progress.Advance = lambda steps=1, note="": None

    def resume(self) -> None:
        path = self.out / "state.safetensors"
        if path.is_file():
            tensors, facts = checkpoint.read(path)
            with refusing(f"{path} is not the state of this training; remove it to start again"):
                self._check(facts, path)
                try:
                    checkpoint.unpack(tensors, facts, self.method, self.optimizers)
                except UserError as error:
                    raise UserError(f"{path} is not the state of this training: {error}; remove it to start again") from None
                self.step, self.best, self.best_step = facts["step"], facts["best"], facts["best_step"]
                self.before, self.engine.scaler = facts["seconds"], facts["scaler"]
                self.known = Known(*facts.get("known", ()))
                self.loader.unreadable.update(facts["unreadable"])
            progress.say(f"resuming at step {self.step} of {self.total}")

    def _check(self, facts: dict[str, Any], path: Path) -> None:
        """Raise if a saved state contradicts itself or this training."""
        step, best_step, best = facts["step"], facts["best_step"], facts["best"]
        if type(step) is not int or not 0 < step < self.total:
            raise UserError(f"{path} claims step {step} of {self.total}; remove it to start again")
        if type(best_step) is not int or not 0 <= best_step <= step or not isinstance(best, float | int | None):
            raise UserError(f"{path} claims that step {best_step} of {step} was the best so far; remove it to start again")
        if not isinstance(facts["seconds"], float | int) or not 0 <= facts["seconds"] < 1e10:
            raise UserError(f"{path} claims {facts['seconds']} seconds; remove it to start again")
        if not all(type(k) is int and 0 <= k < len(self.data) for k in facts["unreadable"]):
            raise UserError(f"{path} lists unreadable rows that {self.data.name} does not have; remove it to start again")
        if best is not None and not (self.out / "best.safetensors").is_file():
            raise UserError(
                f"{self.out / 'best.safetensors'} is missing, which {path.name} refers to; remove both to start again"
            )

    def after(self, done: int) -> bool:
        """Validate and save when due; true if select.patience has run out."""
        self.advance(1)
        self.step = done
        if done > self.method.prelude and (done % self.look_every == 0 or done == self.total):
            self._look(done)
            patience = self.cfg.select.patience
            if patience and done - max(self.best_step, self.method.prelude) >= patience * self.look_every:
                return True
        # A single process also saves by the clock, so that a slow training loses little; several would have to agree.
        late = processes.world() == 1 and time.monotonic() - self.saved_at > SAVE_SECONDS
        if (done % self.save_every == 0 or late) and done < self.total:
            self._save(done)
            self.saved_at = time.monotonic()
        return False

    def _look(self, done: int) -> None:
        split = LOOKS_AT[self.cfg.select.rule][0] or ("val" if self.data.has("val") else "")
        if not split:
            return
        kept = most_likely if by_class(self.cfg.select.rule, self.data) else None  # of each row, by every process
        rows, workers = self.data.rows(split), self.cfg.data.workers
        index, logits = predict(self.method, self.data, rows, workers=workers, summary=kept)
        value = score(self.cfg.select.rule, logits, self.data, index, self.guessed)
        name = "accuracy" if self.cfg.select.rule == "last" else self.cfg.select.rule
        self.log(split, done, {name: value})
        self.advance(0, f"{split} {name} {value:.3f}")
        chosen = self.cfg.select.rule != "last" and better(value, self.best)
        if self.cfg.select.rule in GUESSED and self.data.bias_names:  # for comparison only: it decides nothing
            self.known.look(score("val-worst-group", logits, self.data, index), done, chosen)
        if chosen:
            self.best, self.best_step = value, done
            if self.engine.lead:
                checkpoint.save(self.out / "best.safetensors", self.method.state_dict(), {"step": done})

    def _save(self, done: int) -> None:
        self._count_unreadable()
        if self.engine.lead:
            tensors, facts = checkpoint.pack(self.method, self.optimizers)
            facts |= {
                "step": done, "best": self.best, "best_step": self.best_step,
                "seconds": self.before + time.monotonic() - self.started, "unreadable": sorted(self.loader.unreadable),
                "scaler": self.engine.scaler, "known": list(dataclasses.astuple(self.known)),
            }  # fmt: skip
            checkpoint.save(self.out / "state.safetensors", tensors, facts)

    def _count_unreadable(self) -> None:
        bad = len(self.loader.unreadable)
        if bad > self.cfg.data.max_bad * len(self.data):
            raise UserError(
                f"{bad} of {len(self.data)} images cannot be decoded, more than data.max_bad={self.cfg.data.max_bad:g} allows; "
                f"for example {self._file(min(self.loader.unreadable))}"
            )

    def _file(self, row: int) -> str:
        return self.data.paths[row] if self.data.paths else ""

    def finish(self) -> None:
        self._count_unreadable()
        if not self.engine.lead:
            return
        rule, chosen = self.cfg.select.rule, self.step
        if rule == "last":
            checkpoint.save(self.out / "model.safetensors", self.method.state_dict(), {"step": self.step})
        else:
            tensors, facts = checkpoint.read(self.out / "best.safetensors")
            if facts.get("step") != self.best_step:
                raise UserError(
                    f"{self.out / 'best.safetensors'} is of step {facts.get('step')}, not of step {self.best_step}; "
                    f"remove {self.out} to start again"
                )
            chosen = self.best_step
            checkpoint.save(self.out / "model.safetensors", tensors, facts)
        listed = dict(self.data.unreadable) | dict.fromkeys(sorted(self.loader.unreadable), "cannot be decoded")
        outcome: dict[str, Any] = {
            "steps": self.step,
            "seconds": self.before + time.monotonic() - self.started,
            "selection": {"rule": rule, "step": chosen, "score": self.best, "labels": list(LOOKS_AT[rule][1])},
            "unreadable": [{"index": k, "path": self._file(k), "why": why} for k, why in sorted(listed.items())],
        }
        if rule in GUESSED and self.known.step:
            outcome["selection"] |= {"cost": dataclasses.asdict(self.known)}
            progress.say(self.known.words(rule))
        write_json(self.out / "done.json", outcome)
        for name in ("state.safetensors", "best.safetensors"):
            (self.out / name).unlink(missing_ok=True)


class Log:
    """JSON lines, and the boards: TensorBoard if it is installed, others if asked for."""

    def __init__(self, out: Path, lead: bool, cfg: RunConfig) -> None:
        self.out, self.lead, self.cfg = out, lead, cfg

    def __enter__(self) -> "Log":
        self.boards: list[Guarded] = []
        if self.lead:
            self.boards = open_boards(self.out, self.cfg.train.log_to, dataclasses.asdict(self.cfg))
            self.lines = open(self.out / "log.jsonl", "a", encoding="utf-8")
        return self

    def __exit__(self, *error: object) -> None:
        if self.lead:
            self.lines.close()
        for board in self.boards:
            board.close()

    def __call__(self, kind: str, step: int, values: dict[str, float]) -> None:
        if not self.lead:
            return
        self.lines.write(dumps({"step": step, "kind": kind, **values}, indent=None) + "\n")
        self.lines.flush()
        for board in self.boards:
            board.add(kind, step, values)
