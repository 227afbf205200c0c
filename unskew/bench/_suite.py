"""A suite: which data sets, at which settings, by which methods, how long. Read from TOML and checked whole before anything starts.

title = "..."                              # what the page is called
published = "pgd_table1.csv"               # a file of bench/published, or beside the suite
seeds = 3
columns = { aligned = "major acc %" }      # a figure of evaluate's JSON = its name in the published table; `cost`: ratio of seconds
baseline = "erm"                           # costs are ratios to this method's
split = "test"                             # judged
evaluate = { temporal = true }             # what else evaluate is asked: leakage (attack), temporal, textures, on, shared_classes

[settings]                                 # of every run, as on the command line
[scale.small]                              # seeds, settings, vars, evaluate; `only` leaves out data sets or methods
[data.NAME]                                # source with {at}, {seed} and vars; model, in settings {model}; settings; published
at = { "0.99" = "|M|/|D|=99%" }            # values of {at} = their name in the published table
[shared.NAME]                              # a run that methods use as {shared.NAME}: method, settings
[method.NAME]                              # method (NAME if not given), settings, published, model; method = "dependency" is that
                                           # command, with phi and rates among its settings, and columns name figures of its JSON
"""

import dataclasses
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from unskew import config, registry
from unskew.data._sources import pieces
from unskew.errors import UserError, suggest
from unskew.measure.bias_dependency import check_rates
from unskew.measure.leakage import Attack
from unskew.records import AVERAGES
from unskew.representations._base import spec
from unskew.stages import check_training

HERE = Path(__file__).parent
TOP = {
    *("title", "published", "seeds", "columns", "baseline", "split", "leakage", "evaluate"),
    *("settings", "scale", "data", "shared", "method"),
}
QUESTIONS = {"leakage": bool, "attack": dict, "temporal": bool, "textures": str, "on": str, "shared_classes": bool}  # of evaluate
TYPES: dict[str, tuple[type, ...]] = {
    "title": (str,), "published": (str,), "seeds": (int,), "columns": (dict,), "baseline": (str,), "settings": (dict,),
    "scale": (dict,), "data": (dict,), "shared": (dict,), "method": (dict, str), "split": (str,), "leakage": (bool,),
    "evaluate": (dict,), "vars": (dict,), "only": (list,), "source": (str,), "at": (dict,), "model": (str,), "published_at": (str,),
}  # fmt: skip
WORDS = {str: "text", int: "a whole number", dict: "a table", list: "a list", bool: "true or false"}
FIGURES = {*AVERAGES, "f1_macro", "average_precision"}  # of evaluate's JSON, whatever it is asked
ANSWERS = {  # parts of its JSON, and the question that each answers
    "leakage": "leakage", "leakage_by_bias": "leakage", "temporal": "temporal", "textures": "textures",
    "cross_dataset": "shared_classes",
}  # fmt: skip
COST = "cost"  # a column of this name is the ratio of seconds to the baseline's, not a figure of evaluate
NUMBERS = {"beta", "temporal.value"}  # figures that are no shares: shown as they are, not in per cent
PARTS = {
    "scale": {"seeds", "settings", "vars", "only", "evaluate"},
    "data": {"source", "model", "settings", "published", "at", "scale"},
    "shared": {"method", "model", "settings", "scale"},
    "method": {"method", "model", "settings", "published", "published_at", "scale"},
}


@dataclass(frozen=True, slots=True)
class Task:
    """One run: everything that a worker needs to know."""

    id: str
    data: str
    at: str
    name: str  # of the method in the suite
    seed: int
    source: str
    method: str
    model: str
    settings: dict[str, str]
    needs: tuple[str, ...] = ()  # ids of shared runs
    shared: bool = False
    judging: dict[str, Any] = dataclasses.field(default_factory=dict)  # what evaluate is asked beside accuracy
    split: str = "test"  # judged

    def json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclass(frozen=True, slots=True)
class Suite:
    path: Path
    table: dict[str, Any]
    text: str

    @property
    def name(self) -> str:
        return self.path.stem

    def line(self, *words: str) -> int:
        """The number of the first line after which all the words have come, for messages."""
        left = list(words)
        for number, line in enumerate(self.text.splitlines(), 1):
            while left and left[0] in line:
                left.pop(0)
            if not left:
                return number
        return 1

    def wrong(self, text: str, *words: str) -> UserError:
        return UserError(f"{self.path}:{self.line(*words)}: {text}")

    def part(self, kind: str) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = self.table.get(kind, {})
        return found

    def published(self) -> pl.DataFrame | None:
        named = self.table.get("published")
        if not named:
            return None
        for folder in (self.path.parent, HERE / "published"):
            if (folder / named).is_file():
                return pl.read_csv(folder / named, infer_schema_length=None)
        raise self.wrong(f"no published table {named!r} beside the suite or in the package", "published")


def read(named: str) -> Suite:
    """A suite of the package by its name, or any TOML file."""
    path = Path(named)
    if path.suffix != ".toml":
        known = registry.names("suites")
        if named not in known:
            raise UserError(f"no suite {named!r}{suggest(named, known)}; or name a TOML file")
        path = HERE / "suites" / f"{named}.toml"
    try:
        text = path.read_text(encoding="utf-8")
        table = tomllib.loads(text)
    except OSError as error:
        raise UserError(f"no suite {named!r}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not TOML: {error}") from None
    suite = Suite(path, table, text)
    _check_keys(suite)
    return suite


def _check_keys(suite: Suite) -> None:
    for key, value in suite.table.items():
        if key not in TOP:
            raise suite.wrong(f"unknown entry {key!r}{suggest(key, TOP)}", key)
        _check_type(suite, key, value, TYPES[key], key)
    for kind, allowed in PARTS.items():
        for name, entry in suite.part(kind).items():
            if not isinstance(entry, dict):
                raise suite.wrong(f"[{kind}.{name}] must be a table", name)
            for key in entry:
                if key not in allowed:
                    raise suite.wrong(
                        f"[{kind}.{name}] has an unknown entry {key!r}{suggest(key, allowed)}", f"[{kind}.{name}", key
                    )
                _check_type(suite, key, entry[key], TYPES[key], f"[{kind}.{name}", key)
    for table in (suite.table, *suite.part("scale").values()):
        asked = table.get("evaluate", {})
        for key in asked:
            if key not in QUESTIONS:
                raise suite.wrong(f"evaluate has an unknown entry {key!r}{suggest(key, QUESTIONS)}", "evaluate", key)
            _check_type(suite, f"evaluate.{key}", asked[key], (QUESTIONS[key],), "evaluate", key)
        try:
            config.build(Attack, asked.get("attack", {}), "attack.")
        except UserError as error:
            raise suite.wrong(str(error), "evaluate", "attack") from None
    for name, entry in suite.part("data").items():
        if not entry.get("source"):
            raise suite.wrong(f"[data.{name}] has no source", f"[data.{name}")
    for kind in ("data", "method", "scale"):
        if not suite.part(kind):
            raise suite.wrong(f"a suite needs at least one [{kind}.NAME]")
    if not suite.table.get("columns"):
        raise suite.wrong("a suite needs columns: which figures of evaluate are reported")
    _check_columns(suite)
    baseline = suite.table.get("baseline", "")
    if baseline and baseline not in suite.part("method"):
        raise suite.wrong(f"baseline {baseline!r} is no method of the suite{suggest(baseline, suite.part('method'))}", "baseline")


def _check_columns(suite: Suite) -> None:
    """Every column is a figure that evaluate will give. Whether a data set has the split that one names, its runs tell first of all."""
    if any(entry.get("method", name) == "dependency" for name, entry in suite.part("method").items()):
        return  # its columns are figures of another command's JSON
    asked = {k for t in (suite.table, *suite.part("scale").values()) for k, v in t.get("evaluate", {}).items() if v}
    asked |= {"leakage"} if suite.table.get("leakage") else set()
    for name in suite.table["columns"]:
        part, dot, figure = name.partition(".")
        if dot and part in ANSWERS:
            if ANSWERS[part] not in asked:
                raise suite.wrong(f"column {name!r} needs evaluate = {{ {ANSWERS[part]} = ... }}", "columns", part)
        elif (known := figure if dot else name) not in FIGURES | ({COST} if not dot else set()):
            allowed = FIGURES | {COST} | set(ANSWERS)
            raise suite.wrong(f"column {name!r} is no figure of evaluate{suggest(known, allowed)}", "columns", name)


def _check_type(suite: Suite, name: str, value: Any, types: tuple[type, ...], *words: str) -> None:
    # In Python true is a number, in a suite it is not.
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise suite.wrong(f"{name} must be {' or '.join(WORDS[t] for t in types)}, got {value!r}", *words)
    if name == "seeds" and isinstance(value, int) and value < 1:
        raise suite.wrong(f"seeds must be at least 1, got {value}", *words)


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

    `roots` say where real sets lie on disk: values of the scale's vars.
    """
    scales = suite.part("scale")
    if scale not in scales:
        raise UserError(f"{suite.name} has no scale {scale!r}{suggest(scale, scales)}")
    chosen = scales[scale]
    for name in roots or {}:
        if name not in chosen.get("vars", {}):
            raise UserError(f"--root {name}=...: {suite.name} at scale {scale} has {', '.join(chosen.get('vars', {})) or 'none'}")
    asked_seeds = _seeds(seeds) or range(int(chosen.get("seeds", suite.table.get("seeds", 1))))
    asked = _only(suite, list(only), "--only")
    try:
        usual = _only(suite, [str(word) for word in chosen.get("only", [])], "only")
    except UserError as error:
        raise suite.wrong(str(error), f"[scale.{scale}", "only") from None
    wanted = {kind: asked[kind] or usual[kind] for kind in asked}  # a method asked for leaves the scale's data sets as they are
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
        raise UserError(f"{suite.name}: nothing is left to run")
    _check(suite, tasks)
    return tasks


def _seeds(asked: int | str) -> range:
    """3: seeds 0 to 2; "1..2": these; 0: none named."""
    first, dots, last = str(asked).partition("..")
    if not first.isdigit() or (dots and not (last.isdigit() and int(last) >= int(first))):
        raise UserError(f"--seeds {asked}: must be how many (3) or which (1..2)")
    return range(int(first), int(last) + 1) if dots else range(int(first))


def _only(suite: Suite, words: list[str], said: str) -> dict[str, set[str]]:
    """`erm`, `colored-mnist`, `0.99` sorted into methods, data sets and values of at."""
    places = {"data": set(suite.part("data")), "method": set(suite.part("method"))}
    places["at"] = {str(a) for e in suite.part("data").values() for a in e.get("at", {})}
    found: dict[str, set[str]] = {kind: set() for kind in places}
    for word in words:
        kinds = [kind for kind, known in places.items() if word in known]
        if not kinds:
            raise UserError(
                f"{said} {word}: {suite.name} has no such method, data set or setting{suggest(word, set().union(*places.values()))}"
            )
        found[kinds[0]].add(word)
    return found


def _runs(
    suite: Suite, scale: str, data: str, at: str, seed: int, methods: set[str], extra: dict[str, str], roots: dict[str, str]
) -> list[Task]:
    entry, chosen = suite.part("data")[data], suite.part("scale")[scale]
    values = {k: str(v) for k, v in chosen.get("vars", {}).items()} | roots | {"at": at, "seed": str(seed)}
    values["model"] = str(entry.get("model", ""))
    for _ in range(2):  # a var may name another, and that one {seed} or {at}
        values = {k: _filled(suite, v, values, "vars") for k, v in values.items()}
    for name in chosen.get("vars", {}):
        if "{" in values[name]:
            raise suite.wrong(f"{name} names vars that name others in turn, or each other", f"[scale.{scale}", "vars")
    where = "-".join(filter(None, (data, at, f"s{seed}")))
    common = _settings(suite.table) | _settings(entry)
    questions = (
        ({"leakage": True} if suite.table.get("leakage") else {}) | suite.table.get("evaluate", {}) | chosen.get("evaluate", {})
    )
    judging = {k: _filled(suite, v, values, "evaluate") if isinstance(v, str) else v for k, v in questions.items()}
    tasks: list[Task] = []
    paths: dict[str, str] = {}
    used = {n: e for n, e in suite.part("method").items() if not methods or n in methods}
    asked = " ".join(
        str(v) for e in used.values() for v in (_settings(e) | _settings(e.get("scale", {}).get(scale, {}))).values()
    )
    for kind, entries in (("shared", suite.part("shared")), ("method", used)):
        for name, own in entries.items():
            if kind == "shared" and f"{{shared.{name}}}" not in asked:
                continue
            settings = common | _settings(chosen) | _settings(own) | _settings(entry.get("scale", {}).get(scale, {}))
            settings |= _settings(own.get("scale", {}).get(scale, {})) | extra
            needs = tuple(paths[n] for n in paths if any(f"{{shared.{n}}}" in str(v) for v in settings.values()))
            tag = f"{where}-{'shared-' if kind == 'shared' else ''}{name}"
            task = Task(
                id=tag, data=data, at=at, name=name, seed=seed,
                source=_filled(suite, entry.get("source", ""), values, data),
                method=str(own.get("method", name)), model=str(own.get("model", entry.get("model", ""))),
                settings={k: v if "{shared." in v else _filled(suite, v, values, name) for k, v in settings.items()},
                needs=needs, shared=kind == "shared", judging=judging, split=suite.table.get("split", "test"),
            )  # fmt: skip
            if kind == "shared":
                paths[name] = tag
            tasks.append(task)
    return tasks


def _settings(table: dict[str, Any]) -> dict[str, str]:
    """Settings of a table, nested or dotted, as text."""
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
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        raise suite.wrong(f"{text!r}: no value for {error}; there are {', '.join(values)}", where) from None


def _check(suite: Suite, tasks: list[Task]) -> None:
    """Names, settings and budget of every task; data sets are asked for their settings, not made."""
    done = set()
    for task in tasks:
        if "train.epochs" not in task.settings and "train.steps" not in task.settings:
            raise suite.wrong(f"{task.id} has no budget: give train.epochs or train.steps", f".{task.name}]")
        key = (task.source.split("seed=")[0], task.method, task.model, tuple(sorted(task.settings.items())))
        if key in done:
            continue
        done.add(key)
        try:
            _check_source(task.source)
        except UserError as error:
            raise suite.wrong(f"{task.source}: {error}", f"[data.{task.data}") from None
        try:
            _check_run(task)
        except UserError as error:
            kind = "shared" if task.shared else "method"
            raise suite.wrong(str(error), f"[{kind}.{task.name}") from None


def _check_source(source: str) -> None:
    name, _, settings = source.partition(":")
    if "/" in name or Path(name).exists():
        if not Path(name).exists():
            raise UserError("there is no such file or folder")
        return
    values = config.words(list(pieces(settings)))
    values.pop("noise", None)
    config.build(registry.load("data", name).Config, values)


def check_on_disk(tasks: list[Task]) -> None:
    """Real sets that are not whole on disk are told before the first run starts."""
    for source in dict.fromkeys(task.source for task in tasks):
        name, _, settings = source.partition(":")
        if name.replace("_", "-") in registry.names("data"):
            module = registry.load("data", name)
            if hasattr(module, "listing"):
                module.listing(config.build(module.Config, config.words(list(pieces(settings)))))


def _check_run(task: Task) -> None:
    """Method, network and what is asked of evaluate, whatever is named there and wrong."""
    name, settings = task.method, {k: v for k, v in task.settings.items() if "{shared." not in v}
    if name == "dependency":
        if not settings.get("phi"):
            raise UserError("method dependency needs the setting phi: what the shortcut is read from")
        spec(settings["phi"])
        check_rates(config.numbers(settings.get("rates", "0.5"), "rates"))
        weighing = {k.removeprefix("repair."): v for k, v in settings.items() if k.startswith("repair.")}
        config.build(registry.load("repairs", "repair").Config, weighing, "repair.")
        settings = {k: v for k, v in settings.items() if k not in ("phi", "rates") and not k.startswith("repair.")}
        name = "erm"
    check_training(name, task.model, settings)
    judging = task.judging
    if judging.get("textures"):
        spec(judging["textures"])
    if judging.get("on"):
        _check_source(judging["on"])
    if judging.get("shared_classes") and not judging.get("on"):
        raise UserError("evaluate: shared_classes is for another source: name it with on")


def shown(figure: str, value: float) -> float:
    """A figure as tables show it: shares in per cent."""
    return value if figure in NUMBERS else 100 * value
