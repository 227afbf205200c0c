"""The runs of a suite at a scale, each with its settings, all checked down to the last key before anything starts."""

import dataclasses
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from unskew.core import config, registry
from unskew.core.durations import seconds_of
from unskew.core.errors import UserError, suggest
from unskew.core.settings import Settings, without
from unskew.data.reading import DataConfig
from unskew.data.sets import _contract as sets
from unskew.data.sources import pieces
from unskew.evaluation._contract import questions
from unskew.features import spec
from unskew.measure.bias_dependency import check_rates
from unskew.suites.figures import argument
from unskew.suites.reader import Suite, Task
from unskew.suites.tuning import candidates, label
from unskew.training.settings import check_training, repair_settings

MOST_SEEDS = 1000  # of one request
LONGEST_SEED = 10  # digits


def plan(
    suite: Suite,
    scale: str,
    *,
    seeds: int | str = 0,
    only: Iterable[str] = (),
    extra: dict[str, str] | None = None,
    roots: dict[str, str] | None = None,
) -> list[Task]:
    """Every run of the suite at a scale, shared ones first. Settings are checked here, down to the last key.

    `roots` gives the places of real sets on disk: values of the scale's vars.
    """
    scales = suite.part("scale")
    if scale not in scales:
        raise UserError(f"{suite.name} has no scale {scale!r}{suggest(scale, scales)}")
    chosen = scales[scale]
    for name in roots or {}:
        if name not in chosen.get("vars", {}):
            raise UserError(
                f"--root {name}: {suite.name} at scale {scale} has no such root: use {', '.join(chosen.get('vars', {})) or 'none'}"
            )
    asked_seeds = _seeds(seeds) or _seeds(int(chosen.get("seeds", suite.table.get("seeds", 1))))
    asked = _only(suite, list(only), "--only")
    try:
        usual = _only(suite, [str(word) for word in chosen.get("only", [])], "only")
    except UserError as error:
        raise suite.wrong(str(error), f"[scale.{scale}", "only") from None
    wanted = {kind: asked[kind] or usual[kind] for kind in asked}  # asking for a method does not change the scale's data sets
    tasks: list[Task] = []
    for data, entry in suite.part("data").items():
        if wanted["data"] and data not in wanted["data"]:
            continue
        for at in [str(a) for a in entry.get("at", {"": ""})]:
            if wanted["at"] and at not in wanted["at"]:
                continue
            for seed in asked_seeds:
                tasks += _runs(suite, scale, data, at, seed, wanted["method"], extra or {}, roots or {})
    if not tasks:
        raise UserError(f"{suite.name}: nothing to run at scale {scale} with this --only")
    ids: set[str] = set()
    for task in tasks:
        if task.id in ids:
            raise suite.wrong(f"two runs have the id {task.id}; rename one of them", f".{task.name}]")
        ids.add(task.id)
    _check_halves(suite)
    with registry.named_by(suite.path):
        _check(suite, scale, tasks, extra or {})
    return tasks


def _check_halves(suite: Suite) -> None:
    """Every data set is in one of the halves, if there are any."""
    halves = suite.table.get("halves", {})
    named = [str(name) for names in halves.values() for name in (names if isinstance(names, list) else [names])]
    if halves and (set(halves) != {"tuned", "reported"} or sorted(named) != sorted(suite.part("data"))):
        raise suite.wrong("halves must be two lists, tuned and reported, that name every data set once", "halves")


def _seeds(asked: int | str) -> range:
    """3: seeds 0 to 2; "1..2": seeds 1 and 2; 0: none, use the scale's."""
    first, dots, last = str(asked).partition("..")
    fine = all(word.isdecimal() and len(word) <= LONGEST_SEED for word in ([first, last] if dots else [first]))
    if not fine or (dots and int(last) < int(first)):
        raise UserError(f"--seeds {str(asked)[:40]}: must be a number of seeds (3) or a range (1..2)")
    asked_seeds = range(int(first), int(last) + 1) if dots else range(int(first))
    if len(asked_seeds) > MOST_SEEDS:
        raise UserError(f"--seeds {asked}: {len(asked_seeds)} seeds are too many for one bench; at most {MOST_SEEDS}")
    return asked_seeds


def _only(suite: Suite, words: list[str], option: str) -> dict[str, set[str]]:
    """Sort `erm`, `colored-mnist`, `0.99` into methods, data sets and values of at."""
    places = {"data": set(suite.part("data")), "method": set(suite.part("method"))}
    places["at"] = {str(a) for e in suite.part("data").values() for a in e.get("at", {})}
    chosen: dict[str, set[str]] = {kind: set() for kind in places}
    for word in words:
        kinds = [kind for kind, known in places.items() if word in known]
        if not kinds:
            raise UserError(
                f"{option} {word}: {suite.name} has no such method, data set or setting{suggest(word, set().union(*places.values()))}"
            )
        chosen[kinds[0]].add(word)
    return chosen


def _runs(
    suite: Suite, scale: str, data: str, at: str, seed: int, methods: set[str], extra: dict[str, str], roots: dict[str, str]
) -> list[Task]:
    entry, chosen = suite.part("data")[data], suite.part("scale")[scale]
    values = {k: str(v) for k, v in chosen.get("vars", {}).items()} | roots | {"at": at, "seed": str(seed)}
    values["model"] = str(entry.get("model", ""))
    for _ in range(2):  # a var may refer to another, and that one to {seed} or {at}
        values = {k: _filled(suite, v, values, "vars") for k, v in values.items()}
    for name in chosen.get("vars", {}):
        if "{" in values[name]:
            raise suite.wrong(f"{name} refers to vars that refer to others in turn, or to each other", f"[scale.{scale}", "vars")
    where = "-".join(filter(None, (data, at, f"s{seed}")))
    common = (
        ({"leakage": True} if suite.table.get("leakage") else {}) | suite.table.get("evaluate", {}) | chosen.get("evaluate", {})
    )
    tasks: list[Task] = []
    paths: dict[str, str] = {}
    fit = [str(n) for n in suite.part("data")[data].get("methods") or suite.part("method")]
    for n in fit:
        if n not in suite.part("method"):
            raise suite.wrong(f"methods: {n!r} is not a method{suggest(n, suite.part('method'))}", f"[data.{data}", "methods")
    used = {n: e for n, e in suite.part("method").items() if n in fit and (not methods or n in methods)}
    tables = [extra, *(table for n in used for table, _ in _layers(suite, scale, data, "method", n))]
    asked = " ".join(
        [*(v for table in tables for v in table.values()), *(f"{{shared.{e.get('judge', '')}}}" for e in used.values())]
    )
    for kind, entries in (("shared", suite.part("shared")), ("method", used)):
        for name, own in entries.items():
            if kind == "shared" and f"{{shared.{name}}}" not in asked:
                continue
            settings = {k: v for table, _ in _layers(suite, scale, data, kind, name) for k, v in table.items()} | extra
            judge = str(own.get("judge", ""))
            if judge:
                _check_judge(suite, name, own)
                settings = {"judge": f"{{shared.{judge}}}"}
            for named in re.findall(r"\{shared\.([^}]*)\}", " ".join(settings.values())):
                where_named = (f"[{kind}.{name}", f"{{shared.{named}}}")
                if named not in suite.part("shared"):
                    raise suite.wrong(f"there is no [shared.{named}]{suggest(named, suite.part('shared'))}", *where_named)
                if kind == "shared":
                    raise suite.wrong("a shared run cannot use another shared run", *where_named)
            needs = tuple(paths[n] for n in paths if any(f"{{shared.{n}}}" in str(v) for v in settings.values()))
            tag = f"{where}-{'shared-' if kind == 'shared' else ''}{name}"
            asked_here = common | own.get("evaluate", {})
            judging = {k: _filled(suite, v, values, "evaluate") if isinstance(v, str) else v for k, v in asked_here.items()}
            task = Task(
                id=tag, data=data, at=at, name=name, seed=seed,
                source=_filled(suite, entry.get("source", ""), values, data),
                method=str(own.get("method", name)), model=_filled(suite, str(own.get("model", values["model"])), values, name),
                settings={k: v if "{shared." in v else _filled(suite, v, values, name) for k, v in settings.items()},
                needs=needs, shared=kind == "shared", judging=judging, split=suite.table.get("split", "test"),
                read_from=own.get("read_from", ""), judge=judge, force=bool(suite.table.get("force", False)),
            )  # fmt: skip
            if kind == "shared":
                paths[name] = tag
            tasks += _tuned(task, own.get("grid", {}), str(suite.table.get("choose", "")), chosen.get("grid") is False, extra)
    return tasks


def _check_judge(suite: Suite, name: str, own: dict[str, Any]) -> None:
    for key in ("method", "model", "settings", "grid", "scale"):
        if key in own:
            raise suite.wrong(f"[method.{name}] judges a shared run and trains nothing: leave out {key}", f"[method.{name}", key)


def _tuned(task: Task, grid: dict[str, Any], choose: str, first: bool, extra: dict[str, str]) -> list[Task]:
    """The run itself, or one for every candidate of its grid; a setting of the command line is not tuned."""
    tried = [{k: v for k, v in one.items() if k not in extra} for one in candidates(grid, first)]
    every = {label(one): one for one in tried}
    if len(every) == 1:
        return [dataclasses.replace(task, settings=task.settings | tried[0])]
    return [
        dataclasses.replace(task, id=f"{task.id}-{name}", settings=task.settings | one, tried=one, choose=choose)
        for name, one in every.items()
    ]


def _layers(suite: Suite, scale: str, data: str, kind: str, name: str) -> list[tuple[dict[str, str], tuple[str, ...]]]:
    """The settings of a run, later tables overriding earlier ones, each with the words that locate it in the file."""
    own, entry = suite.part(kind)[name], suite.part("data")[data]
    return [
        (_settings(suite.table), ("settings",)),
        (_settings(entry), (f"[data.{data}",)),
        (_settings(suite.part("scale")[scale]), (f"[scale.{scale}",)),
        (_settings(own), (f"[{kind}.{name}",)),
        (_settings(entry.get("scale", {}).get(scale, {})), (f"[data.{data}", scale)),
        (_settings(own.get("scale", {}).get(scale, {})), (f"[{kind}.{name}", scale)),
    ]


def _settings(table: dict[str, Any]) -> dict[str, str]:
    """The settings of a table, nested or dotted, as text."""
    spread: dict[str, str] = {}

    def walk(prefix: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(f"{prefix}.{key}" if prefix else key, inner)
        else:
            spread[prefix] = ",".join(map(str, value)) if isinstance(value, list) else str(value)

    walk("", table.get("settings", {}))
    return spread


def _filled(suite: Suite, text: str, values: dict[str, str], where: str) -> str:
    try:
        return text.format(**values)
    except KeyError as error:
        raise suite.wrong(f"{text!r}: no value for {error}; there are {', '.join(values)}", where) from None
    except (IndexError, ValueError, AttributeError, TypeError) as error:
        raise suite.wrong(f"{text!r}: braces must hold the name of a value, such as {{seed}} ({error})", where) from None


def _check(suite: Suite, scale: str, tasks: list[Task], extra: dict[str, str]) -> None:
    """Check the names, settings and budget of every task; data sets are not made."""
    done = set()
    for task in tasks:
        if (
            task.model and not task.judge and not {"train.epochs", "train.steps"} & set(task.settings)
        ):  # the default training has a budget
            raise suite.wrong(f"{task.id} has no budget: give train.epochs or train.steps", f".{task.name}]")
        key = (task.source, task.method, task.model, tuple(sorted(task.settings.items())), str(task.judging))
        if key in done:
            continue
        done.add(key)
        try:
            _check_source(task.source)
        except UserError as error:
            raise suite.wrong(f"{task.source}: {error}", f"[data.{task.data}") from None
        _check_judging(suite, task)
        try:
            _check_run(task)
        except UserError as error:
            raise _blamed(suite, scale, task, extra, str(error)) from None


def _blamed(suite: Suite, scale: str, task: Task, extra: dict[str, str], message: str) -> UserError:
    """The error, with the line of the suite that the setting or network comes from; no line if it is from the command line."""
    kind = "shared" if task.shared else "method"
    for key in task.settings:
        if re.search(rf"(?<![\w.])(method\.)?{re.escape(key)}(?![\w.])", message) is None:
            continue
        if key in extra:
            return UserError(message)
        for settings, header in reversed(_layers(suite, scale, task.data, kind, task.name)):
            if key in settings:
                return suite.wrong(message, *header, key.rpartition(".")[2])
    if message.startswith("no model") and "model" not in suite.part(kind)[task.name]:
        return suite.wrong(message, f"[data.{task.data}", "model")
    return suite.wrong(message, f"[{kind}.{task.name}")


def _check_source(source: str) -> None:
    name, _, settings = source.partition(":")
    if "/" in name or Path(name).exists():
        if not Path(name).exists():
            raise UserError("there is no such file or folder")
        return
    if Path(name).suffix in (".csv", ".parquet", ".jsonl", ".npz"):
        raise UserError("there is no such file")
    values = config.words(list(pieces(settings)))
    config.build(DataConfig, {"noise": values.pop("noise")} if "noise" in values else {}, "data.")
    config.build(sets.load(name).config, values)


def check_on_disk(tasks: list[Task]) -> None:
    """Reject real sets that are incomplete on disk before the first run starts."""
    named = [source for task in tasks for source in (task.source, task.judging.get("on", "")) if source]
    for source in dict.fromkeys(named):
        name, _, settings = source.partition(":")
        if name.replace("_", "-") in registry.names("data"):
            built_in = sets.load(name)
            if built_in.listing is not None:
                built_in.listing(config.build(built_in.config, config.words(list(pieces(settings)))))
    pairs = {(t.source, t.judging["on"]) for t in tasks if t.judging.get("on") and t.judging.get("shared_classes")}
    for source, other in sorted(pairs):
        check_shared(source, other)


def check_shared(source: str, other: str) -> None:
    """Refuse to train for a judgement that cannot be made: the two sources must have classes of the same name."""
    known = [set(_classes(name)) for name in (source, other)]
    if all(known) and len(known[0] & known[1]) < 2:
        names = " and ".join(", ".join(sorted(k)[:4]) for k in known)
        raise UserError(f"{source} and {other} share {len(known[0] & known[1])} classes by name ({names}); at least 2 are needed")


def _classes(source: str) -> tuple[str, ...]:
    """The classes of a real set in its official layout; empty for other sources, which their runs check."""
    name, _, settings = source.partition(":")
    if name.replace("_", "-") not in registry.names("data") or sets.load(name).listing is None:
        return ()
    listing = sets.load(name).listing
    assert listing is not None
    return tuple(listing(config.build(sets.load(name).config, config.words(list(pieces(settings))))).classes)


def _check_run(task: Task) -> None:
    """Check the method, the network and their settings."""
    if task.judge:
        return  # the shared run is checked
    name, settings = task.method, {k: v for k, v in task.settings.items() if "{shared." not in v}
    if name == "dependency":
        if not settings.get("phi"):
            raise UserError("method dependency needs the setting phi: the representation to read the shortcut from")
        spec(settings["phi"])
        check_rates(config.numbers(settings.get("rates", "0.5"), "rates"))
        weighing, rest = Settings.of(without(settings, ("phi", "rates"))).under("repair")
        repair_settings("repair", weighing.own)
        settings = rest.dotted()
        name = "erm"
    if name == "auto":
        seconds_of(settings.get("budget", "30min"), "budget")
        settings = without(settings, ("budget", "rule"))
        name = "erm"
    check_training(name, task.model, settings)


def _check_judging(suite: Suite, task: Task) -> None:
    """Reject what evaluate cannot answer."""
    judging = task.judging
    own = suite.part("method").get(task.name, {}).get("evaluate", {})

    def wrong(text: str, key: str) -> UserError:
        return suite.wrong(f"evaluate: {text}", *([f"[method.{task.name}"] if key in own else []), "evaluate", key)

    for key, check in (("textures", spec), ("on", _check_source)):
        try:
            if judging.get(key):
                check(judging[key])
        except UserError as error:
            raise wrong(f"{key} = {judging[key]!r}: {error}", key) from None
    if judging.get("shared_classes") and not judging.get("on"):
        raise wrong("shared_classes needs another source: name it with on", "shared_classes")
    for question in questions():
        given = {name: argument(name, judging[name]) for name in question.arguments if name in judging}
        try:
            question.options(**given)
        except UserError as error:
            raise wrong(str(error), next((name for name in given if name in own), next(iter(given)))) from None
