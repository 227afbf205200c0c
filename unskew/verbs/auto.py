"""The verb `auto`: audit, try what may help, choose without bias labels, and prove it.

1. The audit says whether there is a shortcut that a simple model lives on (parts.gate). If not, plain training is recommended.
2. A quarter of the training rows is held out. Candidates that fit the data learn from the rest by successive halving (stats.halving)
   and are ranked by the rule, the worst group of class x a biased model's opinion, on the rows held out.
3. The winner and erm are trained on all training rows and judged on the validation rows, which no choice has seen. The winner is
   recommended if its worst group there is better, and its class-balanced accuracy, where the opinion tells nothing, is better than
   erm's by more than its standard error. On rows as they are, giving up a shortcut always costs: that is shown, but does not decide.

The folder: `audit`, `choice.parquet` (which rows were held out), `runs` and `results` of the candidates, `models` (erm and the
winner), `state.json` (the clock, and what the budget decided), `auto.json`, `auto.html`.
"""

import dataclasses
import shlex
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from unskew.core import executor as places
from unskew.core import progress
from unskew.core.durations import seconds_of, time_in_words
from unskew.core.engine import check_device
from unskew.core.errors import UserError
from unskew.core.failures import refusing
from unskew.core.files import nothing_left, plain, read_json, replacing, write_json, write_text
from unskew.core.settings import Settings, without
from unskew.core.version import commit
from unskew.core.workplace import alone, check_place, claim, identity
from unskew.data.dataset import DataSet
from unskew.data.sources import load, remembering
from unskew.pages.auto import auto_text, render_auto
from unskew.parts.gate import Gate, gate
from unskew.records import Auto, Tried
from unskew.stats.halving import SHARES, makespan, ranked, survivors, that_fit
from unskew.training.candidates import Candidate, candidates, plain_training, shortened
from unskew.training.selection import check
from unskew.training.settings import check_training, run_config
from unskew.verbs.audit import audit
from unskew.verbs.auto_judge import KNOWN, Held, Judged, Rows, held_out, judged, missing_labels, seen_by, verdict
from unskew.verbs.auto_worker import Where, Work, do

OWN = ("auto", "audit", "state.json", "choice.parquet", "runs", "results", "models", "jobs", "lock")
RULES = ("val-pseudo-groups", "val-worst-slice", "val-worst-group")
ERM = "erm"


def auto(
    source: Any,
    *,
    bias: Sequence[str] = (),
    out: str | Path = "auto",
    budget: str = "30min",
    rule: str = RULES[0],
    expect: Sequence[str] = (),
    model: str = "",
    executor: str = "local",
    address: str = "",
    workers: int = 0,
    seed: int = 0,
    device: str = "auto",
    settings: Mapping[str, Any] | None = None,
    command: str = "",
) -> Auto:
    """Audit, try candidates within the budget, and recommend one only if it is better than erm on rows that no choice has seen."""
    limit, out = seconds_of(budget, "--budget"), Path(out)
    given = _given(settings, bias, model)
    _check_words(rule, executor, workers)
    check_place(out, "the result of auto", OWN)
    with remembering():
        data = load(source, **given["data"])
        _check_data(rule, data)
        if executor == "ray":
            _check_ray(source, address)
        cluster = places.ray_cluster(address) if executor == "ray" else nullcontext()  # one for all rungs
        passed = None if isinstance(source, (str, Path)) else source
        side_by_side = 1 if passed is not None else workers or (places.cores() if check_device(device).type == "cpu" else 1)
        where = Where(out, executor, address, side_by_side, passed)
        decides = without(dataclasses.asdict(run_config(given, model_name=model, seed=seed)), ("method", "method_name"))
        decides["data"] = without(decides["data"], ("workers", "memory", "mode"))
        asked = identity(
            fingerprint=data.fingerprint, bias=data.bias_digest, rule=rule, expect=sorted(expect), config=decides
        )  # fmt: skip
        done = _finished(out, asked, limit)
        if done is not None:
            return done
        with alone(out, "auto"), cluster:
            if executor == "ray":
                places.check_nodes(address)
            done = _finished(out, asked, limit)  # by another process, while this one waited
            return done or _Search(source, data, given, model, seed, device, command, rule, where, asked, limit).run(expect)


def _given(settings: Mapping[str, Any] | None, bias: Sequence[str], model: str) -> Settings:
    words = plain(dict(settings or {})) | ({"data.bias": ",".join(bias)} if bias else {})
    given = Settings.of(words)
    if given.own:
        raise UserError(
            f"setting {next(iter(given.own))!r}: auto sets those of the methods itself; give data., train., optim., model."
        )
    if given["data"].get("keep") or given["train"].get("weights"):
        raise UserError("auto sets data.keep and train.weights itself; leave them out")
    check_training(ERM, model, given.dotted())
    return given


def _check_words(rule: str, executor: str, workers: int) -> None:
    if rule not in RULES:
        raise UserError(f"--rule {rule}: must be one of {', '.join(RULES)}; the last one uses bias labels for the choice")
    if executor not in ("local", "ray"):
        raise UserError(f"--executor {executor}: must be local or ray")
    if workers < 0:
        raise UserError(f"--workers {workers}: must be at least 1, or 0 for one per core")


def _check_data(rule: str, data: DataSet) -> None:
    if not data.has("val"):
        raise UserError(
            f"auto needs validation rows, and {data.name} has none; set data.holdout=0.1, or name a split column with --split"
        )
    if rule == KNOWN:
        check(KNOWN, data)


def _check_ray(source: Any, address: str) -> None:
    if not isinstance(source, (str, Path)):
        raise UserError(
            "--executor ray: other machines cannot read data passed from Python; name a source, or use executor=local"
        )
    places.check_ray(address)


def _finished(out: Path, asked: Mapping[str, Any], limit: float) -> Auto | None:
    """The finished result in the folder; None if there is none, or if a larger budget may change it."""
    for name in ("state.json", "auto.json"):
        if (out / name).is_file():
            there = read_json(out / name, "the record of auto").get("identity")
            if not isinstance(there, dict):
                raise UserError(
                    f"{out / name} is damaged or not the record of auto: its identity is not a table; choose another --out"
                )
            claim(out, "auto", there, asked)
    path = out / "auto.json"
    if not path.is_file():
        return None
    with refusing(f"{path} is damaged or was not written by this version of unskew; remove it, or choose another --out"):
        result = Auto.of_json(read_json(path), out / "auto.html")
        auto_text(result)  # what the command prints, and what it writes: whatever is missing is noticed here
        result.json()
    if result.cut and limit > result.budget:
        return None
    progress.say(f"{out} is already finished; nothing to do")
    return result


class _Clock:
    """Seconds spent over all attempts, and what the budget decided; kept in state.json."""

    def __init__(self, path: Path, asked: Mapping[str, Any], limit: float) -> None:
        there = read_json(path, "the record of auto") if path.is_file() else {}
        same = there.get("budget") == limit
        self.path, self.asked, self.limit = path, asked, limit
        self.decided: dict[str, list[str]] = dict(there.get("decided", {})) if same else {}
        self.cut: list[str] = list(there.get("cut", [])) if same else []
        self.before, self.started = float(there.get("seconds", 0.0)), time.perf_counter()

    @property
    def spent(self) -> float:
        return self.before + time.perf_counter() - self.started

    @property
    def left(self) -> float:
        return self.limit - self.spent

    def save(self) -> None:
        state = {"identity": self.asked, "budget": self.limit, "seconds": self.spent, "decided": self.decided, "cut": self.cut}
        write_json(self.path, state)

    def decide(self, what: str, names: list[str], cut: str = "") -> list[str]:
        """The same names as before the process was stopped; else these. `cut` says what the budget left out."""
        if what not in self.decided:
            self.decided[what] = names
            self.cut += [cut] if cut else []
            self.save()
        return self.decided[what]


class _Search:
    """One request, from the audit to the result."""

    def __init__(
        self, source: Any, data: DataSet, given: Settings, model: str, seed: int, device: str, command: str, rule: str,
        where: Where, asked: Mapping[str, Any], limit: float,
    ) -> None:  # fmt: skip
        self.source, self.data, self.given, self.model = source, data, given, model
        self.seed, self.device, self.command, self.rule = seed, device, command, rule
        self.where, self.out, self.asked = where, where.out, asked
        self.clock = _Clock(self.out / "state.json", asked, limit)
        self.workers = where.side_by_side
        self.held: Held | None = None

    def run(self, expect: Sequence[str]) -> Auto:
        # Nothing before the last figures sees the bias columns, unless the rule asks for them.
        with nothing_left(self.out):
            self.out.mkdir(parents=True, exist_ok=True)
            self.clock.save()
            found = audit(
                seen_by(self.rule, self.data), out=self.out / "audit", seed=self.seed, expect=expect, command=self.command
            )
            self.clock.save()
        opened = gate(found)
        progress.say(f"auto: the gate is {'open' if opened.open else 'closed'}: {opened.reason}")
        tried, winner = self._halving(opened) if opened.open else ([], None)
        on = None if self.held is None else self.held.judge_rows()
        finalists = self._final(winner, on)
        erm, last = finalists[0], finalists[-1]
        gain = on.gain(last.said, erm.said) if on is not None and winner is not None and winner.name != ERM else None
        chosen, words = verdict(opened, [f.record for f in finalists], gain)
        result = Auto(
            verdict=words, recommended=chosen.name, run=chosen.run, gate=opened.json(), rule=self.rule, tried=tried,
            finalists=[f.record for f in finalists], gain=gain, missing_labels=missing_labels(tried, winner.name) if winner else "",
            cut=self.clock.cut, budget=self.clock.limit, seconds=self.clock.spent, rows=self._rows(), source=self._named(),
            seed=self.seed, command=self.command, identity=self.asked, page=self.out / "auto.html",
            audit=self.out / "audit" / "audit.html", test_bias=self.data.bias_names, commit=commit(),
        )  # fmt: skip
        with nothing_left(self.out / "auto.html"):
            write_text(self.out / "auto.html", render_auto(result))
            write_json(self.out / "auto.json", result.json())  # last: its presence marks the result as complete
        return result

    def _named(self) -> str:
        return self.data.source or self.data.name

    def _rows(self) -> dict[str, int]:
        held = 0 if self.held is None else len(self.held.rows)
        return {"trained": len(self.data.rows("train")) - held, "choice": held, "val": len(self.data.rows("val"))}

    def _halving(self, opened: Gate) -> tuple[list[Tried], Candidate]:
        """Every candidate with what became of it, and the winner."""
        fit, unfit = candidates(self.data, opened.named, self.model)
        self.held = held = held_out(self.data, self.rule, opened.named, self.seed, self.out / "choice.parquet")
        order, by_name = [c.name for c in fit], {c.name: c for c in fit}
        held.take(by_name[ERM], 0, self._rung([by_name[ERM]], 0)[ERM])
        self._check_budget(held)
        admitted = self._first_rung(fit, held)
        standing = [by_name[name] for name in admitted]
        for k in range(len(SHARES)):
            results = self._rung(standing, k) if k else {}  # the first rung is done
            for one in standing if k else []:
                held.take(one, k, results[one.name])
            standing = [one for one in standing if held.stands(one.name)]
            best = ranked({one.name: held.standing(one.name) for one in standing}, order)
            if k + 1 < len(SHARES):
                best = self._next(best, k + 1, held, len(admitted))
            standing = [by_name[name] for name in (best if k + 1 < len(SHARES) else best[:1])]
            progress.say(f"auto: after rung {k + 1} of {len(SHARES)}: {', '.join(best)}")
            if len(standing) == 1:
                break
        tried = held.fates(fit, admitted, standing[0].name)
        left = [Tried(name=name, settings={}, fate="left out", reason=why) for name, why in unfit.items()]
        return [*tried, *left], standing[0]

    def _rung(self, standing: Sequence[Candidate], k: int) -> dict[str, dict[str, Any]]:
        """The results of candidates in a rung. One that is solved was trained in full in the first."""
        assert self.held is not None
        jobs = {}
        for one in standing:
            rung = 0 if one.solved else k
            steps = shortened(one, SHARES[rung], self.held.data, self.given, self.model)
            name = f"{one.name}-{rung + 1}"
            if one.tabled and rung:
                self._carry(f"{one.name}-{rung}", name)
            jobs[one.name] = self._job(
                name, one, self.out / "runs" / name / "run", steps, self.held.rows.tolist(), str(self.held.table)
            )
        results = do(list(jobs.values()), self.where)
        self.clock.save()
        return {name: results[job.id] for name, job in jobs.items()}

    def _carry(self, before: str, name: str) -> None:
        """The weights of the rows do not depend on the length of the training: take those of the rung before."""
        for path in sorted((self.out / "runs" / before).glob("run-weights.*")):  # the table itself last
            place = self.out / "runs" / name / path.name
            if not place.exists():
                with replacing(place) as part:
                    shutil.copyfile(path, part)

    def _job(self, name: str, one: Candidate, place: Path, more: Mapping[str, Any], rows: list[int], keep: str) -> Work:
        source = "" if self.where.source is not None else str(self.source)
        if self.where.executor == "ray" and source and Path(source).exists():
            source = str(Path(source).absolute())
        return Work(
            id=name, source=source, method=one.method or one.name, model=self.model, seed=self.seed, device=self.device,
            settings={**self.given.dotted(), **one.settings, **more}, keep=str(Path(keep).absolute()) if keep else "",
            place=str(place.absolute()), rows=rows, command=self.command, wanted=not keep,
        )  # fmt: skip

    def _check_budget(self, held: Held) -> None:
        """Stop if the budget does not even cover plain training."""
        if "refused" in held.results[ERM] or "failed" in held.results[ERM]:
            raise UserError(f"plain training fails: {held.why(ERM)}")
        need = held.cost(ERM)
        if need > self.clock.left and not self.clock.decided:
            least = time_in_words(1.2 * (self.clock.spent + need))
            raise UserError(
                f"--budget {time_in_words(self.clock.limit)} is too short: {time_in_words(self.clock.spent)} are spent and plain training "
                f"needs about {time_in_words(need)} more; give at least {least}, or lower train.steps"
            )

    def _first_rung(self, fit: Sequence[Candidate], held: Held) -> list[str]:
        """Train the candidates whose first rung fits the budget, as many at a time as there are workers; their names, erm first."""
        waiting, admitted, number = [c for c in fit if c.name != ERM], [ERM], 0
        while waiting:
            wave, waiting, number = waiting[: self.workers], waiting[self.workers :], number + 1
            begun: list[Candidate] = []
            for one in wave:  # one that is too dear does not stand in the way of the next
                begun += [one] if self._fits([*begun, one], held) else []
            names = self.clock.decide(f"wave {number}", [c.name for c in begun])
            begun = [c for c in wave if c.name in names]
            results = self._rung(begun, 0)
            for one in begun:
                held.take(one, 0, results[one.name])
            admitted += names
        gone = [c.name for c in fit if c.name not in admitted]
        return self.clock.decide("first", admitted, f"not tried for lack of time: {', '.join(gone)}" if gone else "")

    def _fits(self, begun: Sequence[Candidate], held: Held) -> bool:
        """Whether the first rung of these leaves time for the last trainings, whoever wins."""
        full = [*(held.cost(name) for name in held.rungs), *(held.guess(one, 1.0, ERM) for one in begun)]
        first = makespan([held.guess(one, SHARES[0], ERM) for one in begun], self.workers)
        return first + makespan([held.cost(ERM), max(full)], self.workers) <= self.clock.left

    def _next(self, best: Sequence[str], k: int, held: Held, n: int) -> list[str]:
        """The candidates of the next rung: half as many, or fewer if the budget asks for it."""
        wanted = list(best[: survivors(n, k)])
        reserve = makespan([held.cost(ERM), max(held.cost(name) for name in wanted)], self.workers)
        again = [0.0 if held.rungs[name][-1].share == 1 else held.cost(name, SHARES[k]) for name in wanted]
        fits = that_fit(again, reserve, self.clock.left, self.workers)
        kept = wanted if fits == len(wanted) else wanted[: max(1, fits)]
        if len(kept) == 1 and len(wanted) > 1:
            cut = f"rung {k + 1} was left out for lack of time: the choice is that of rung {k}"
        elif len(kept) < len(wanted):
            cut = f"rung {k + 1} was cut to {len(kept)} candidates for lack of time: without {', '.join(wanted[len(kept) :])}"
        else:
            cut = ""
        return self.clock.decide(f"rung {k + 1}", kept, cut)

    def _final(self, winner: Candidate | None, on: Rows | None) -> list[Judged]:
        """Plain training, erm first, and the winner, trained on all training rows."""
        plain_ones = plain_training(self.data, self.model)
        models = list({c.name: c for c in (*plain_ones, *([winner] if winner else []))}.values())
        rows = {split: self.data.rows(split) for split in ("val", "test") if self.data.has(split)}
        ids = [i for part in rows.values() for i in part.tolist()]
        jobs = [self._job(f"final-{one.name}", one, self.out / "models" / one.name, {}, ids, "") for one in models]
        results = do(jobs, self.where)
        self.clock.save()
        for job in jobs:
            why = results[job.id].get("refused") or results[job.id].get("failed")
            if why:
                raise UserError(f"the final training of {job.method} fails: {shlex.quote(job.place)}: {why}")
        place = self.out / "models"
        return [judged(c.name, place / c.name, results[job.id], self.data, rows, on) for c, job in zip(models, jobs, strict=True)]
