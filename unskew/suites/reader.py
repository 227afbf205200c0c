"""A suite: data sets, their settings, methods and budgets, read from TOML and checked; `plan` turns it into runs.

title = "..."                              # title of the page
published = "pgd_table1.csv"               # a file in suites/published or beside the suite
seeds = 3
columns = { aligned = "major acc %" }      # a figure of evaluate's JSON = its name in the published table; or one of:
                                           # `cost`: ratio of seconds; `repair.bias_after`: of the repair's JSON beside the run;
                                           # `kept.clean_aligned`: training rows left, by true or wrong label and by their bias
baseline = "erm"                           # costs are ratios to the cost of this method
average = "Average"                        # add rows of the mean over data sets, under this name in the published table
halves = { tuned = ["a"], reported = [] }  # data sets that rules were chosen on, and those that they are reported on
split = "test"                             # the split to judge
choose = "val-loss"                        # how to choose a candidate of a grid on the validation split: the lowest loss;
                                           # val-pseudo-groups: the worst group, without bias labels; oracle: (aligned + conflicting) / 2
force = true                               # use the tables of repairs that the guards refuse
evaluate = { temporal = true }             # more questions to evaluate: leakage (attack), temporal, erase, textures, on...

[settings]                                 # of every run, as on the command line
[scale.small]                              # seeds, settings, vars, evaluate; `only` leaves out data sets or methods; grid = false
                                           # takes the first value of every grid
[data.NAME]                                # source with {at}, {seed} and vars; model, in settings {model}; settings; published;
                                           # columns, instead of the suite's; methods, if not all fit
at = { "0.99" = "|M|/|D|=99%" }            # values of {at} = their name in the published table
[shared.NAME]                              # a run that methods use as {shared.NAME}: method, settings
[method.NAME]                              # method (NAME if not given), settings, published, model; method = "auto" is that command,
                                           # with budget and rule among its settings; so is "dependency", whose columns are its figures
evaluate = { noise = [1.0] }               # for this row; overrides the suite's and the scale's
judge = "base"                             # train nothing, and judge the run of [shared.base]: no method and no settings
grid = { optim.lr = [0.01, 0.02] }         # a run for every combination; the row reports the one chosen
read_from = "leakage.randomisation.0"      # report the figures of this part of the answer, not the plain ones
"""

import dataclasses
import io
import json
import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from unskew.core import registry
from unskew.core.errors import UserError, suggest
from unskew.suites.figures import COST, FIGURES, STAGES, answers, argument, arguments, toml_type
from unskew.suites.tuning import CHOOSE, spread

HERE = Path(__file__).parent
LONGEST_NAME = 60  # bytes: several names make up the name of a file
TOP = {
    *("title", "force", "published", "seeds", "columns", "baseline", "split", "leakage", "evaluate", "choose", "average"),
    *("settings", "scale", "data", "shared", "method", "halves"),
}
TYPES: dict[str, tuple[type, ...]] = {
    "title": (str,), "force": (bool,), "published": (str,), "seeds": (int,), "columns": (dict,), "baseline": (str,), "settings": (dict,),
    "scale": (dict,), "data": (dict,), "shared": (dict,), "method": (dict,), "split": (str,), "leakage": (bool,),
    "evaluate": (dict,), "vars": (dict,), "only": (list,), "source": (str,), "at": (dict,), "model": (str,), "published_at": (str,),
    "read_from": (str,), "choose": (str,), "grid": (dict, bool), "judge": (str,), "average": (str,), "halves": (dict,), "methods": (list,),
}  # fmt: skip
WORDS = {str: "text", int: "a whole number", float: "a number", dict: "a table", list: "a list", bool: "true or false"}
KEYS = ("method", "dataset", "bias_setting", "metric", "mean")  # required columns of a published table; std is optional
PARTS = {
    "scale": {"seeds", "settings", "vars", "only", "evaluate", "grid"},
    "data": {"source", "model", "settings", "published", "at", "scale", "columns", "methods"},
    "shared": {"method", "model", "settings", "scale"},
    "method": {"method", "model", "settings", "published", "published_at", "scale", "evaluate", "read_from", "grid", "judge"},
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
    judging: dict[str, Any] = dataclasses.field(default_factory=dict)  # what to ask of evaluate besides accuracy
    split: str = "test"  # the split to judge
    read_from: str = ""  # the part of evaluate's answer whose figures are reported
    force: bool = False  # use the tables of repairs that the guards refuse
    tried: dict[str, str] = dataclasses.field(default_factory=dict)  # of a grid: the values of this candidate
    judge: str = ""  # trains nothing and judges this shared run
    choose: str = ""  # of a grid: how the candidate that is reported is chosen

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
        """The number of the line where the last of the words, searched in order, is found; for messages."""
        left = [_whole(word) for word in words]
        for number, line in enumerate(self.text.splitlines(), 1):
            while left and left[0].search(line) and not line.lstrip().startswith("#"):
                left.pop(0)
            if not left:
                return number
        return 1

    def wrong(self, text: str, *words: str) -> UserError:
        return UserError(f"{self.path}:{self.line(*words)}: {text}")

    def part(self, kind: str) -> dict[str, dict[str, Any]]:
        entries: dict[str, dict[str, Any]] = self.table.get(kind, {})
        return entries

    def columns(self, data: str) -> dict[str, str]:
        """The figures to report of a data set, with their names in the published table."""
        own: dict[str, str] = self.part("data")[data].get("columns", {}) or self.table["columns"]
        return own

    def every_column(self) -> list[str]:
        """The figures of the suite and of its data sets."""
        return list(dict.fromkeys(name for data in self.part("data") for name in self.columns(data)))

    def published_text(self) -> str:
        """The text of the published table, beside the suite or in the package; empty if the suite names none."""
        name = str(self.table.get("published", ""))
        if not name:
            return ""
        for folder in (self.path.parent, HERE / "published"):
            if (folder / name).is_file():
                return (folder / name).read_text(encoding="utf-8")
        raise self.wrong(f"no published table {name!r} beside the suite or in the package", "published")

    def published(self, text: str | None = None) -> pl.DataFrame | None:
        """The published table, or the given text, parsed and checked."""
        text = self.published_text() if text is None else text
        if not self.table.get("published"):
            return None
        try:
            table = pl.read_csv(io.StringIO(text), infer_schema=False)
            numbers = [pl.col(k).cast(pl.Float64) for k in ("mean", "std") if k in table.columns]
            return table.select(*KEYS, *(["std"] if "std" in table.columns else [])).with_columns(numbers)
        except pl.exceptions.PolarsError as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else "it is empty"
            raise self.wrong(
                f"published table {self.table['published']!r} must have the columns {', '.join(KEYS)}, mean as numbers: {reason}",
                "published",
            ) from None


def _whole(word: str) -> re.Pattern[str]:
    """A pattern for the word, but not as part of a longer one: `at`, not `data`."""
    before, after = (r"(?<!\w)" if word[:1].isalnum() else ""), (r"(?!\w)" if word[-1:].isalnum() else "")
    return re.compile(before + re.escape(word) + after)


def read(named: str) -> Suite:
    """A suite of the package by its name, or any TOML file."""
    path = Path(named)
    if path.suffix != ".toml":
        known = registry.names("suites")
        if named not in known:
            raise UserError(f"no suite {named!r}{suggest(named, known)}; or give a TOML file")
        path = HERE / f"{named}.toml"
    try:
        text = path.read_text(encoding="utf-8-sig")
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
    for kind in PARTS:
        for name, entry in suite.part(kind).items():
            _check_entry(suite, kind, name, entry)
    _check_words(suite)
    _check_evaluate(suite, suite.table)
    for kind in ("scale", "method"):
        for name, entry in suite.part(kind).items():
            _check_evaluate(suite, entry, f"[{kind}.{name}")
    for name, entry in suite.part("data").items():
        if not entry.get("source"):
            raise suite.wrong(f"[data.{name}] has no source", f"[data.{name}")
    for kind in ("data", "method", "scale"):
        if not suite.part(kind):
            raise suite.wrong(f"a suite needs at least one [{kind}.NAME]")
    if not suite.table.get("columns"):
        raise suite.wrong("a suite needs columns: the figures of evaluate to report")
    _check_columns(suite)
    for name, entry in suite.part("method").items():
        _check_read_from(suite, name, entry)
    _check_grids(suite)
    baseline = suite.table.get("baseline", "")
    if baseline and baseline not in suite.part("method"):
        raise suite.wrong(
            f"baseline {baseline!r} is not a method of the suite{suggest(baseline, suite.part('method'))}", "baseline"
        )


def _check_entry(suite: Suite, kind: str, name: str, entry: Any) -> None:
    """`[data.NAME]`, `[method.NAME]` and so on: known keys, each of its type."""
    if not isinstance(entry, dict):
        raise suite.wrong(f"[{kind}.{name}] must be a table", name)
    header = f"[{kind}.{name}"
    for key in entry:
        if key not in PARTS[kind]:
            raise suite.wrong(f"{header}] has an unknown entry {key!r}{suggest(key, PARTS[kind])}", header, key)
        _check_type(suite, key, entry[key], (str,) if key == "method" else TYPES[key], header, key)
    if kind != "scale":
        _check_name(suite, kind, name)
        _check_scales(suite, kind, name, entry.get("scale", {}))


def _check_evaluate(suite: Suite, table: dict[str, Any], *header: str) -> None:
    """Check what a table asks of evaluate: known questions, with values of their types."""
    hints = arguments()
    for key, value in table.get("evaluate", {}).items():
        words = (*header, "evaluate", key)
        if key not in hints:
            raise suite.wrong(f"evaluate has an unknown entry {key!r}{suggest(key, hints)}", *words)
        _check_type(suite, f"evaluate.{key}", value, (toml_type(hints[key]),), *words)
        try:
            argument(key, value)
        except UserError as error:
            raise suite.wrong(str(error), *words) from None


def _check_name(suite: Suite, kind: str, name: str, *, at: bool = False) -> None:
    """Names become parts of file names."""
    if re.fullmatch(r"[\w.+=-]*" if at else r"[\w.+=-]+", name) is None or ".." in name or len(os.fsencode(name)) > LONGEST_NAME:
        raise suite.wrong(
            f"{kind} {name[:80]!r}: a name may have letters, digits and . _ + = -, at most {LONGEST_NAME}",
            f"[{kind}" if not at else "at",
            name,
        )


def _check_scales(suite: Suite, kind: str, name: str, scales: dict[str, Any]) -> None:
    """`[method.pgd.scale.small]`: a scale of the suite, with settings and nothing else."""
    for scale, entry in scales.items():
        words = (f"[{kind}.{name}", "scale", scale)
        if scale not in suite.part("scale"):
            raise suite.wrong(
                f"[{kind}.{name}.scale.{scale}]: the suite has no such scale{suggest(scale, suite.part('scale'))}", *words
            )
        if not isinstance(entry, dict) or set(entry) - {"settings"} or not isinstance(entry.get("settings", {}), dict):
            raise suite.wrong(
                f"[{kind}.{name}.scale.{scale}] must be a table with the single entry settings, got {entry!r}", *words
            )


def _check_words(suite: Suite) -> None:
    """Names in the published table must be text, and vars must not clash with {at}, {seed} and {model}."""
    for table in (suite.table, *suite.part("data").values()):
        for name, metric in table.get("columns", {}).items():
            if not isinstance(metric, str):
                raise suite.wrong(f"columns: the published name of {name!r} must be text, got {metric!r}", "columns", name)
    for scale, entry in suite.part("scale").items():
        for name in {"at", "seed", "model"} & set(entry.get("vars", {})):
            raise suite.wrong(f"vars: {name} is set by every run; choose another name", f"[scale.{scale}", "vars")
    for name, entry in suite.part("data").items():
        if entry.get("at") == {}:
            raise suite.wrong(f"[data.{name}] at has no values; leave it out, or name some", f"[data.{name}", "at")
        for at, label in entry.get("at", {}).items():
            if not isinstance(label, str):  # 0.99 = "..." without quotes is an entry 99 of a table 0
                raise suite.wrong(
                    f'[data.{name}] at: {at} = {label!r} must be text; write numbers in quotes: "0.99" = "..."',
                    f"[data.{name}",
                    "at",
                )
            _check_name(suite, f"[data.{name}] at", at, at=True)
    for name, entry in suite.part("method").items():
        try:
            entry.get("published_at", "").format(at="")
        except (KeyError, IndexError, ValueError, AttributeError, TypeError):
            words = (f"[method.{name}", "published_at")
            raise suite.wrong(f"published_at = {entry['published_at']!r}: may hold {{at}} and no other braces", *words) from None


def _check_columns(suite: Suite) -> None:
    """Every column must be a figure of evaluate or of a repair. Its runs check whether a data set has the split that it names."""
    if any(entry.get("method", name) == "dependency" for name, entry in suite.part("method").items()):
        return _check_dependency(suite)  # its columns are figures of another command's JSON
    tables = (suite.table, *suite.part("scale").values(), *suite.part("method").values())
    given = {key: value for table in tables for key, value in table.get("evaluate", {}).items() if value}
    given |= {"leakage": True} if suite.table.get("leakage") else {}
    for name in suite.every_column():
        _check_column(suite, name, given)


def _check_dependency(suite: Suite) -> None:
    for name in suite.every_column():
        if name not in ("beta", COST) and re.fullmatch(r"(random|repaired)@[0-9.]+", name) is None:
            raise suite.wrong(f"column {name!r} is not a figure of dependency: use beta, random@RATE or repaired@RATE", "columns")


def _check_column(suite: Suite, name: str, given: dict[str, Any]) -> None:
    known = answers()
    part, dot, figure = name.partition(".")
    if dot and part in STAGES:
        if figure not in STAGES[part]:
            raise suite.wrong(f"column {name!r} is not a figure of {part}{suggest(figure, STAGES[part])}", "columns", name)
    elif dot and part in known:
        question = known[part]
        first = next(iter(question.arguments))
        if not question.wanted(given):
            raise suite.wrong(f"column {name!r} needs evaluate = {{ {first} = ... }}", "columns", part)
        if part == question.keys[0] and figure.partition(".")[0] not in question.figures:
            raise suite.wrong(f"column {name!r} is not a figure of {part}{suggest(figure, question.figures)}", "columns", name)
    elif dot and not part:
        raise suite.wrong(f"column {name!r} has no split before the dot", "columns", name)
    elif (figure if dot else name) not in (FIGURES if dot else {*FIGURES, COST}):
        allowed = {*FIGURES, COST, *known, *STAGES}
        raise suite.wrong(f"column {name!r} is not a figure of evaluate{suggest(figure or name, allowed)}", "columns", name)


def _check_read_from(suite: Suite, name: str, entry: dict[str, Any]) -> None:
    """`leakage.rba`: a key of evaluate's JSON, and a part of the record behind it."""
    place = entry.get("read_from", "")
    if not place:
        return
    words = (f"[method.{name}", "read_from")
    known = answers()
    key, _, inner = place.partition(".")
    if key not in known:
        raise suite.wrong(f"read_from = {place!r}: evaluate gives no answer {key!r}{suggest(key, known)}", *words)
    parts = [field.name for field in dataclasses.fields(known[key].record)]
    if inner.partition(".")[0] not in parts:
        raise suite.wrong(f"read_from = {place!r}: {key} has no part {inner!r}{suggest(inner, parts)}", *words)


def _check_grids(suite: Suite) -> None:
    """A grid has lists of values, and a suite with a grid says how to choose."""
    chosen = suite.table.get("choose", "")
    if chosen and chosen not in CHOOSE:
        raise suite.wrong(f"choose = {chosen!r}: must be one of {', '.join(CHOOSE)}", "choose")
    for scale, entry in suite.part("scale").items():
        if "grid" in entry and entry["grid"] is not False:
            raise suite.wrong("grid of a scale can only be false: the first value of every list", f"[scale.{scale}", "grid")
    for name, entry in suite.part("method").items():
        if "grid" not in entry:
            continue
        words = (f"[method.{name}", "grid")
        if not isinstance(entry["grid"], dict) or not entry["grid"]:
            raise suite.wrong("grid must be a table of settings, each with a list of values", *words)
        for key, values in spread(entry["grid"]).items():
            if not isinstance(values, list) or not values or any(isinstance(v, (list, dict)) for v in values):
                raise suite.wrong(f"grid: {key} must be a list of values, got {values!r}", *words)
        if not chosen:
            raise suite.wrong(f"[method.{name}] has a grid: add choose, one of {', '.join(CHOOSE)}", *words)


def _check_type(suite: Suite, name: str, value: Any, types: tuple[type, ...], *words: str) -> None:
    # True is an int in Python, but not in a suite; a whole number is a valid float.
    allowed = (*types, int) if float in types else types
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in types):
        raise suite.wrong(f"{name} must be {' or '.join(WORDS[t] for t in types)}, got {value!r}", *words)
    if name == "seeds" and isinstance(value, int) and value < 1:
        raise suite.wrong(f"seeds must be at least 1, got {value}", *words)
    if name == "split" and not value:
        raise suite.wrong("split must name a split, such as test", *words)


def read_json(path: Path, *needed: str) -> dict[str, Any] | None:
    """A JSON object from a file; None if the file is missing, unreadable or lacks an entry."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) and set(needed) <= set(content) else None


def read_result(path: Path) -> dict[str, Any] | None:
    """The result of a run; None if there is none that can be used."""
    result = read_json(path, "id", "seconds", "shared")
    if result is None or not isinstance(result["seconds"], float | int) or not isinstance(result.get("versions", {}), dict):
        return None
    figures = result.get("figures", {} if result["shared"] else None)
    fine = isinstance(figures, dict) and all(v is None or isinstance(v, float | int) for v in figures.values())
    return result if fine and isinstance(result.get("machine", ""), str) else None
