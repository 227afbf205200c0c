"""Verbs to functions. No logic here: read the words, call the function, print what it returns."""

import errno
import os
import shlex
import sys
import time
from pathlib import Path
from typing import Annotated, Any, NoReturn, Optional

import typer

app = typer.Typer(
    name="unskew",
    help="Find the shortcuts in a labelled data set, measure them, repair the data, and train models that do not take them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Source = Annotated[
    str, typer.Argument(help="Built-in name with settings (colored-mnist:ratio=0.99), folder, table, .npz, saved data set.")
]
Settings = Annotated[
    Optional[list[str]], typer.Argument(metavar="[KEY=VALUE]...", help="Settings, e.g. train.epochs=10 optim.lr=0.01.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
Seed = Annotated[int, typer.Option(help="Seed of every random stream.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:0, mps.")]
Label = Annotated[str, typer.Option(help="Label column; several, separated by commas, make a multi-label task.")]
Bias = Annotated[Optional[list[str]], typer.Option(help="Bias column; may be given several times.")]
Split = Annotated[str, typer.Option("--split", help="Split column.")]


@app.command()
def audit(
    source: Source,
    settings: Settings = None,
    representation: Annotated[Optional[list[str]], typer.Option(help="Only this one; may be given several times.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for page, JSON and scores.")] = Path("audit"),
    label: Label = "",
    bias: Bias = None,
    split: Split = "",
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Measure what gives the label away: colour, background, texture, file facts, columns. Needs no bias labels."""
    from unskew import config
    from unskew.audit.run import audit as verb
    from unskew.report.text import audit_table

    values = config.words(settings or []) | _columns(label, None, split)
    named = [name for text in bias or [] for name in text.split(",")]
    found = verb(
        source, bias=named, representations=representation or [], out=out, seed=seed, settings=values, command=_command()
    )
    _show({"page": str(found.page), **found.json}, json, f"{audit_table(found.json)}\n\npage: {found.page.resolve()}")


@app.command()
def repair(
    source: Source,
    settings: Settings = None,
    method: Annotated[str, typer.Option("--with", help="See: unskew list repairs.")] = "repair",
    out: Annotated[Path, typer.Option(help="The table (.parquet, .csv), or the folder.")] = Path("weights.parquet"),
    how: Annotated[str, typer.Option("--as", help="parquet, csv, or folder (kept images in class folders).")] = "parquet",
    copy: Annotated[bool, typer.Option("--copy", help="With --as folder: copies instead of links.")] = False,
    measure: Annotated[
        Optional[list[str]], typer.Option(help="Representation to measure before and after; several times.")
    ] = None,
    splits: Annotated[str, typer.Option(help="Splits to judge, separated by commas; the repair's own choice if not given.")] = "",
    model: Annotated[str, typer.Option(help="Network of a repair that trains one.")] = "",
    label: Label = "",
    bias: Bias = None,
    split: Split = "",
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Weights, subsets and cleaned labels that any training code can use. Given again, it goes on where it stopped."""
    from unskew import config
    from unskew.repair._run import repair as verb
    from unskew.report.text import repair_table

    values = config.words(settings or []) | _columns(label, bias, split)
    found = verb(
        source, method, out=out, how=how, copy=copy, measure=measure or [], splits=[s for s in splits.split(",") if s],
        model=model, seed=seed, device=device, settings=values, command=_command(),
    )  # fmt: skip
    _show({"out": str(found.path), **found.json}, json, repair_table(found.json, str(found.path), str(found.page)))


@app.command()
def train(
    source: Annotated[str, typer.Argument(help="As for audit; may stand in the recipe instead.")] = "",
    settings: Settings = None,
    method: Annotated[
        str, typer.Option(help="See: unskew list methods, unskew list stages. erm if neither it nor the recipe says.")
    ] = "",
    model: Annotated[str, typer.Option(help="See: unskew list models. Chosen by the inputs if not given.")] = "",
    weights: Annotated[Optional[Path], typer.Option(help="Table with a column weight, from unskew repair.")] = None,
    recipe: Annotated[
        Optional[Path], typer.Option(help=r"TOML file: \[run] source, method, model; settings. Words on the line win.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Run folder.")] = Path("run"),
    label: Label = "",
    bias: Bias = None,
    split: Split = "",
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Train a method into a run folder. Given again, it goes on where it stopped."""
    from unskew import config
    from unskew.stages import train as verb

    if "=" in source and recipe and ":" not in source:
        settings, source = [source, *(settings or [])], ""  # the source is the recipe's: the first word is a setting
    named, values = config.recipe(recipe) if recipe else ({}, {})
    values = config.merged(values, config.words(settings or []) | _columns(label, bias, split))
    run = verb(
        source or named.get("source", ""), method or named.get("method", "erm"), model=model or named.get("model", ""),
        out=out, weights=weights, seed=seed, device=device, settings=values, command=_command(),
    )  # fmt: skip
    _show({"run": str(run.path), **run.outcome}, json, f"{run.path}: done. Next: unskew evaluate {shlex.quote(str(run.path))}")


@app.command()
def evaluate(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    on: Annotated[str, typer.Option(help="Another source with the same classes, or see --shared-classes.")] = "",
    split: Annotated[str, typer.Option(help="Which split to judge on.")] = "test",
    leakage: Annotated[bool, typer.Option("--leakage", help="Also attack: can the bias be guessed from the logits?")] = False,
    noise: Annotated[
        str, typer.Option(help="With --leakage: also with noise of these levels on the embedding, e.g. 0.5,1,2.")
    ] = "",
    alpha: Annotated[float, typer.Option(help="With --leakage: attack an alpha-balanced subset of the rows.")] = 0.0,
    rba: Annotated[float, typer.Option(help="With --leakage: also after calibration to the training ratios, this margin.")] = 0.0,
    corruptions: Annotated[str, typer.Option(help="Also on spoilt images: all, or names such as fog,shot_noise.")] = "",
    textures: Annotated[
        str,
        typer.Option(
            metavar="REPRESENTATION", help="Also over clusters of this: texture, or layer:model=vgg16,... (see explain)."
        ),
    ] = "",
    temporal: Annotated[
        bool, typer.Option("--temporal", help="Clips: also how much features change when played backwards.")
    ] = False,
    shared_classes: Annotated[
        bool, typer.Option("--shared-classes", help="With --on: judge the classes that both have, and their average precision.")
    ] = False,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Judge a run: accuracy by (class, bias) group and the named averages."""
    from unskew import config
    from unskew.evaluate.corrupt import asked_for
    from unskew.evaluate.run import evaluate as verb
    from unskew.report.text import group_table

    found = verb(
        run, on or None, split=split, device=device, leakage=leakage, noise=config.numbers(noise, "noise"), alpha=alpha, rba=rba,
        corruptions=asked_for(corruptions), textures=textures, temporal=temporal, shared_classes=shared_classes,
    )  # fmt: skip
    _show(found.metrics, json, group_table(found))


@app.command()
def dependency(
    source: Source,
    settings: Settings = None,
    phi: Annotated[
        str, typer.Option(help="Representation that the shortcut is read from; see: unskew list representations.")
    ] = "",
    model: Annotated[str, typer.Option(help="See: unskew list models. Chosen by the inputs if not given.")] = "",
    method: Annotated[str, typer.Option(help="See: unskew list methods.")] = "erm",
    rates: Annotated[str, typer.Option(help="Shares of the rows to keep.")] = "0.25,0.5,0.75",
    on_split: Annotated[
        str, typer.Option(help="Split that accuracy is taken on; test if drawn as the training rows are, else val.")
    ] = "",
    out: Annotated[Path, typer.Option(help="Folder for weights and runs.")] = Path("dependency"),
    label: Label = "",
    bias: Bias = None,
    split: Split = "",
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """REPAIR's beta: what a model loses when rows that feed a shortcut are left out, beside as many left out at random."""
    from unskew import config
    from unskew.dependency import dependency as verb
    from unskew.report.text import dependency_table

    found = verb(
        source, phi=phi, out=out, model=model, method=method, rates=config.numbers(rates, "rates"), split=on_split,
        seed=seed, device=device, settings=config.words(settings or []) | _columns(label, bias, split), command=_command(),
    )  # fmt: skip
    _show(found, json, dependency_table(found))


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders; several stand side by side.")],
    audit: Annotated[str, typer.Option(help="Folder of an audit, to stand before the runs.")] = "",
    repair: Annotated[
        Optional[list[str]], typer.Option(help="Table of a repair, to stand before the runs; may be repeated.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The page.")] = Path("report.html"),
    json: Json = False,
) -> None:
    """Write one page about one run or several, and the same as JSON."""
    from unskew.report.run import report as verb

    page = verb(runs, out, audit=audit, repairs=repair or [])
    _show({"page": str(page), "json": str(page.with_suffix(".json"))}, json, f"page: {page}")


@app.command()
def bench(
    suite: Annotated[str, typer.Argument(help="See: unskew list suites; or a TOML file. `report` only writes the report again.")],
    settings: Settings = None,
    scale: Annotated[str, typer.Option(help="smoke, small or paper.")] = "smoke",
    on: Annotated[str, typer.Option(help="local, or ray.")] = "local",
    address: Annotated[str, typer.Option(help="With --on ray: of a cluster that runs; one is started here if not given.")] = "",
    only: Annotated[str, typer.Option(help="Methods, data sets or settings of the suite, separated by commas.")] = "",
    seeds: Annotated[str, typer.Option(help="How many (3) or which (1..2); the scale's own if not given.")] = "0",
    root: Annotated[
        Optional[list[str]], typer.Option(metavar="NAME=DIR", help="Where a real set of the suite lies; may be repeated.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Runs side by side; as many as there are cores if not given.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what --out holds; also done without this word.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for runs, results and report.")] = Path("bench"),
    json: Json = False,
) -> None:
    """Reproduce a published table: every run of a suite, beside its numbers. Given again, it goes on where it stopped."""
    from unskew import config
    from unskew.bench._report import table_text
    from unskew.bench.run import again
    from unskew.bench.run import bench as verb

    if suite == "report":
        found = again(out)
    else:
        found = verb(
            suite, scale=scale, on=on, out=out, seeds=seeds, only=[w.strip() for w in only.split(",") if w.strip()], workers=workers,
            address=address, settings=config.words(settings or []), roots=config.words(root or []), resume=resume,
            command=_command(),
        )  # fmt: skip
    _show(found, json, f"{table_text(found)}\n\npage: {found['page']}")
    if found["failed"]:
        _stop(1, f"{len(found['failed'])} runs failed: {', '.join(found['failed'][:5])}; see their logs in {out / 'tasks'}")


@app.command()
def data(
    name: Annotated[str, typer.Argument(help="See: unskew list data.")],
    settings: Settings = None,
    out: Annotated[Path, typer.Option(help="Folder to write.")] = Path("data"),
    how: Annotated[str, typer.Option("--as", help="npz (one array file), or images (class folders and metadata.csv).")] = "npz",
    root: Annotated[str, typer.Option(help="Where a real set lies on disk, in its official layout.")] = "",
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing: say what of a real set is there and what is missing.")
    ] = False,
    json: Json = False,
) -> None:
    """Write a built-in data set to disk, or check a real one."""
    from unskew.data import load
    from unskew.data._write import write

    settings = [*(settings or []), *([f"root={root}"] if root else [])]
    if check:
        from unskew.data._check import check as look

        found = look(name, root)
        _show(found, json, found.pop("text"))
        if not found["whole"]:
            _stop(2, f"{name}: not complete in {root}")
        return
    started = time.perf_counter()
    made = load(f"{name}:{','.join(settings or [])}")
    place = write(made, out, how)
    about = {**made.describe(), "seconds": time.perf_counter() - started}
    rows = ", ".join(f"{n} {s}" for s, n in about["rows"].items() if n)
    columns = [word for name in made.bias_names for word in ("--bias", name)] if how == "images" else []
    _show(
        {"out": str(place), **about},
        json,
        f"{place}: {rows}; bias columns: {', '.join(made.bias_names) or 'none'}; {about['seconds']:.1f} s\n"
        f"as a source: {shlex.join([str(place), *columns])}",
    )


@app.command("list")
def list_(
    kind: Annotated[str, typer.Argument(help="methods, stages, models, data, measures, repairs, representations, suites.")],
    json: Json = False,
) -> None:
    """The names of all components of a kind."""
    from unskew import registry
    from unskew.errors import UserError, suggest

    if kind not in registry.KINDS:
        raise UserError(f"no list of {kind!r}{suggest(kind, registry.KINDS)}")
    rows = {name: registry.card(kind, name).partition("\n")[0] for name in registry.names(kind)}
    _show({kind: rows}, json, "\n".join(f"{name:16} {first}" for name, first in rows.items()))


@app.command()
def explain(
    name: Annotated[str, typer.Argument(help="Name of a method, model, data set or measure.")],
    json: Json = False,
) -> None:
    """The card of a component: equation, source, and how ours differs."""
    from unskew import registry
    from unskew.errors import UserError, suggest

    kinds = [k for k in registry.KINDS if name.replace("-", "_") in (n.replace("-", "_") for n in registry.names(k))]
    if not kinds:
        raise UserError(f"nothing is called {name!r}{suggest(name, {n for k in registry.KINDS for n in registry.names(k)})}")
    cards = [{"kind": kind, "name": name, "card": registry.card(kind, name)} for kind in kinds]
    text = cards[0]["card"] + "".join(
        f"\n\n{c['kind']}: {name}\n\n{c['card']}" for c in cards[1:]
    )  # repair is a repair and a stage
    _show({**cards[0], "others": cards[1:]}, json, text)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the run and the page.")] = Path("demo-out"),
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """The whole pipe on a built-in biased digit set, minutes on two cores."""
    from unskew.demo import demo as verb

    found, text = verb(out, seed)
    _show(found, json, text)


def _columns(label: str, bias: list[str] | None, split: str) -> dict[str, Any]:
    """--label, --bias and --split as the settings they stand for."""
    named = {"data.label": label, "data.bias": ",".join(bias or []), "data.split": split}
    return {key: value for key, value in named.items() if value}


def _command() -> str:
    return shlex.join(["unskew", *sys.argv[1:]])


def _show(value: dict[str, Any], json: bool, text: str) -> None:
    if os.environ.get("RANK", "0") != "0":
        return
    if json:
        from unskew.files import dumps

        text = dumps(value)
    print(text)


def _stop(status: int, text: str) -> NoReturn:
    if os.environ.get("RANK", "0") == "0":
        print(f"unskew: {' '.join(text.split())}", file=sys.stderr)
    raise SystemExit(status)


def main() -> None:
    """Exit status 0: done; 2: the request or the input is wrong, said in one line; 1: anything else."""
    from unskew import progress
    from unskew.errors import UserError

    if os.environ.get("RANK", "0") == "0":
        progress.switch_on()
    try:
        status = app(standalone_mode=False)
        if isinstance(status, int) and status:  # an interrupt comes back as a number in some versions of typer
            _stop(status, "interrupted; give the same command again to go on" if status == 130 else "stopped")
    except UserError as error:
        _stop(2, str(error))
    except KeyboardInterrupt:
        _stop(130, "interrupted; give the same command again to go on")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except OSError as error:
        _stop_on_disk_trouble(error)
        raise
    except Exception as error:
        _stop_on_wrong_words(error)
        raise


def _stop_on_wrong_words(error: Exception) -> None:
    """Complaints of the command-line parser. Recognised by shape: typer carries its own copy of click in some versions."""
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error.format_message())  # type: ignore[attr-defined]
        raise SystemExit(2) from None
    if type(error).__name__ == "Abort":
        _stop(130, "interrupted; give the same command again to go on")
    if hasattr(error, "format_message"):
        _stop(2, f"{error.format_message()} See: unskew --help")


_FULL = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}
_FORBIDDEN = {errno.EACCES, errno.EROFS, errno.EPERM, errno.ENOTDIR, errno.ENOENT}


def _stop_on_disk_trouble(error: OSError) -> None:
    if error.errno in _FULL:
        _stop(2, f"the disk is full ({error.strerror}); free some space and give the same command again")
    if error.errno in _FORBIDDEN:
        _stop(2, f"{error.filename}: {error.strerror}; choose another place")
