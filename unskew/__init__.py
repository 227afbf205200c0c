"""unskew: find the shortcuts in a labelled data set, measure them, repair the data, and train models that do not take them.

The verbs are the functions below. Formulas can be used alone, as plain functions: `unskew.measure`, `unskew.repairs`, `unskew.losses` and
`unskew.nn`. Nothing heavy is imported before it is used."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from unskew._auto import auto
from unskew.core import version

if TYPE_CHECKING:
    from pathlib import Path

    from unskew import losses, measure, nn, repairs
    from unskew.data.dataset import DataSet
    from unskew.measure.leakage import Attack
    from unskew.records import Audit, BenchReport, Dependency, Evaluation, Repaired, Run, Table

__version__ = version.VERSION
__all__ = [
    "DataSet", "__version__", "audit", "auto", "bench", "dependency", "evaluate", "load", "losses", "measure", "nn", "repair", "repairs",
    "report", "train",
]  # fmt: skip


def load(
    source: Any,
    *,
    label: str | Sequence[str] = "",
    bias: str | Sequence[str] = "",
    split: str = "",
    group: str = "",
    **settings: Any,
) -> "DataSet":
    """Read a labelled data set.

    Args:
        source: a built-in name with settings (`"colored-mnist:ratio=0.99"`), a folder with a folder per class, a table with a path
            column (.csv, .tsv, .jsonl, .parquet), an .npz file, a saved Hugging Face data set, a pandas or polars frame, a pair
            `(X, y)` of arrays, a torch Dataset, or a mapping of split names to torch Datasets. Labels may be text.
        label: label column of a table or frame; several make a multi-label task.
        bias: bias column or columns: what should not tell the class, such as gender or scanner.
        split: column that says train, val or test for every row. What is missing is taken from the training rows.
        group: column whose values (patient, site, clip) are never divided between splits that are taken from the training rows.
        **settings: other settings of reading, as in `unskew list settings`: `size=64`, `holdout=0.2`, `frames=8`.

    Returns:
        The data set: labels, bias columns and splits in memory, inputs in memory or decoded when they are needed.

    Example:
        >>> import unskew
        >>> unskew.load("planted:rows=200,bias=0.5").bias_names
        ('planted',)
    """
    from unskew.data.sources import load_named

    return load_named(source, label=label, bias=bias, split=split, group=group, **settings)


def audit(
    source: Any,
    *,
    bias: Sequence[str] = (),
    representations: Sequence[str] = (),
    out: "str | Path" = "audit",
    trial: bool = True,
    expect: Sequence[str] = (),
    slices: int = 2000,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    attack: "Attack | None" = None,
    fit_on: Literal["judged", "train"] = "judged",
    command: str = "",
) -> "Audit":
    """Measure what gives the label away: colour, border, texture, file facts, columns. Needs no bias labels.

    Every representation is read by a linear reader that is judged on rows it was not fitted on, and compared with permuted labels.

    Args:
        source: anything that `load` takes, or a data set that it gave.
        bias: bias columns, for their association with the label and their leakage.
        representations: only these, such as `["color:kind=mean", "texture"]`; all that apply if none is named.
        out: folder for audit.html, audit.json and scores.parquet.
        trial: tries a remedy on features before advising one.
        expect: representations that show the class by right, such as `["texture"]`; remembered for this data.
        slices: looks for slices of each class in a stratified sample of this many rows; 0: does not.
        seed: of every random stream.
        settings: how the source is read, such as `{"data.size": 64}`.
        attack: how leakage attackers are trained; their defaults if not given.
        fit_on: fit leakage attackers on a part of the audited rows, or on the train split and judge them on the test split.
        command: what the page shows as the command that made it.

    Returns:
        The findings, ranked, with `scores` (a row per sample) and `page`. Called again with the same arguments it is read from `out`.

    Example:
        found = unskew.audit("photos/", out="audit")
        print(found.verdict, [(finding.name, finding.bias) for finding in found.findings])
    """
    from unskew.verbs.audit import audit as verb

    return verb(
        source, bias=bias, representations=representations, out=out, trial=trial, expect=expect, slices=slices, seed=seed,
        settings=settings, attack=attack, fit_on=fit_on, command=command,
    )  # fmt: skip


def repair(
    source: Any,
    method: str = "repair",
    *,
    out: "str | Path" = "weights.parquet",
    how: str = "parquet",
    copy: bool = False,
    force: bool = False,
    measure: Sequence[str] = (),
    splits: Sequence[str] = (),
    model: str = "",
    seed: int = 0,
    device: str = "auto",
    settings: Mapping[str, Any] | None = None,
    command: str = "",
) -> "Repaired":
    """Weight, keep or drop rows so that less of the label can be read from a shortcut.

    Args:
        source: anything that `load` takes.
        method: a repair, see `unskew list repairs`: repair, aflite, gradients, denoise, balance, inverse_frequency.
        out: the table (.parquet or .csv), or the folder.
        how: parquet, csv, or folder: the kept images in class folders, for any other tool.
        copy: with `how="folder"`, copies instead of links.
        force: writes the result even if the guards refuse it.
        measure: representations to measure before and after; those that the repair works on if none is named.
        splits: whose rows are judged; the repair's own choice if none is named.
        model: network of a repair that trains one.
        seed: of every random stream.
        device: auto, cpu, cuda, cuda:0 or mps.
        settings: the repair's own, such as `{"phi": "color:kind=mean"}`, and with a prefix (data., optim., train., select., model.)
            those of reading the source and of training the network that some repairs need.
        command: what the page shows as the command that made it.

    Returns:
        What the repair did, with `table`: a weight per row, and `use`, how it is meant (loss, chance or keep), which `train` obeys.

    Example:
        made = unskew.repair("photos/", "repair", settings={"phi": "color:kind=mean"})
        run = unskew.train("photos/", weights=made.table, out="repaired")
    """
    from unskew.verbs.repair import repair as verb

    return verb(
        source, method, out=out, how=how, copy=copy, force=force, measure=measure, splits=splits, model=model, seed=seed, device=device,
        settings=settings, command=command,
    )  # fmt: skip


def train(
    source: Any,
    method: str = "erm",
    *,
    model: str = "",
    out: "str | Path",
    weights: "str | Path | Table | None" = None,
    seed: int = 0,
    device: str = "auto",
    settings: Mapping[str, Any] | None = None,
    force: bool = False,
    command: str = "",
) -> "Run":
    """Train a method, of one stage or several, into a run folder.

    Called again with the same arguments it resumes where it stopped, to the bit, or returns the finished run.

    Args:
        source: anything that `load` takes.
        method: see `unskew list methods`; `denoise+METHOD` and `balance+METHOD` leave rows out first; a dotted name is your own module.
        model: see `unskew list models`; chosen by the inputs if not given.
        out: the run folder.
        weights: a table from `repair`, or its path.
        seed: of every random stream.
        device: auto, cpu, cuda, cuda:0 or mps.
        settings: such as `{"train.epochs": 10, "optim.lr": 0.01, "q": 0.7}`; `unskew list settings` has them all, the method's own
            are on its card.
        force: uses the weights of a repair even if the guards refuse them.
        command: what the run records as the command that made it.

    Returns:
        The run: its folder, configuration, log and outcome.

    Example:
        run = unskew.train("photos/", "lff", out="run", settings={"train.epochs": 10})
        print(run.outcome["steps"], run.log()[-1])
    """
    from unskew.verbs.train import train as verb

    return verb(
        source, method, model=model, out=out, weights=weights, seed=seed, device=device, settings=settings, force=force,
        command=command,
    )  # fmt: skip


def evaluate(
    run: "Run | str | Path",
    on: Any = None,
    *,
    split: str = "test",
    bias: Sequence[str] = (),
    device: str = "auto",
    leakage: bool = False,
    attack: "Attack | None" = None,
    noise: Sequence[float] = (),
    alpha: float = 0.0,
    rba: float = 0.0,
    fit_on: Literal["judged", "train"] = "judged",
    corruptions: Sequence[str] = (),
    textures: str = "",
    temporal: bool = False,
    erase: str = "",
    reliance: bool = False,
    reliance_rows: int = 500,
    shared_classes: bool = False,
) -> "Evaluation":
    """Judge a finished run: accuracy by (class, bias) group with intervals, and whatever else is asked. Answers are kept.

    Args:
        run: a run, or its folder; or a table of predictions made elsewhere, and `on` the data that they are about.
        on: another source with classes that the run knows; its own data if not given.
        split: which split to judge.
        bias: other bias columns of the run's own data, or tags of `unskew explore`, to judge groups by.
        device: auto, cpu, cuda, cuda:0 or mps.
        leakage: also ask how well each bias column can be guessed from the logits, by fresh attackers.
        attack: how those attackers are trained; their defaults if not given.
        noise: with leakage, also with Gaussian noise of these levels on the embedding.
        alpha: with leakage, attack an alpha-balanced subset of the rows.
        rba: with leakage, also after calibration of the decisions within this margin.
        fit_on: with leakage, fit attackers on a part of the judged rows, or, as the authors do, on the run's training rows.
        corruptions: also on corrupted images: names such as `["fog", "shot_noise"]`, or `["all"]`.
        textures: also the mean accuracy over clusters of this representation and the classes.
        temporal: also how much features of clips change when they are played backwards.
        erase: also with the bias erased from what the last layer reads: by `leace`, or `splince`, which spares the labels.
        reliance: also what its answers depend on: colour, border, centre, detail, arrangement, motion.
        reliance_rows: with reliance, at most so many rows.
        shared_classes: let `on` have other classes, judge the rows whose class the run knows, and add average precision.

    Returns:
        Groups and named averages, also of training rows (`train`), `verdict`, `rates_by_bias`, the answers, and `predictions`.

    Example:
        print(unskew.evaluate("run", leakage=True).verdict.sentence)
    """
    from unskew.verbs.evaluate import evaluate as verb

    return verb(
        run, on, split=split, bias=bias, device=device, leakage=leakage, attack=attack, noise=noise, alpha=alpha, rba=rba, fit_on=fit_on,
        corruptions=corruptions, textures=textures, temporal=temporal, erase=erase, reliance=reliance, reliance_rows=reliance_rows,
        shared_classes=shared_classes,
    )  # fmt: skip


def dependency(
    source: Any,
    *,
    phi: str,
    out: "str | Path" = "dependency",
    model: str = "",
    method: str = "erm",
    rates: Sequence[float] = (0.25, 0.5, 0.75),
    split: str = "",
    seed: int = 0,
    device: str = "auto",
    settings: Mapping[str, Any] | None = None,
    command: str = "",
) -> "Dependency":
    """REPAIR's beta: what a model loses when rows that feed a shortcut are left out, beside as many left out at random.

    Args:
        source: anything that `load` takes.
        phi: the representation that the shortcut is read from, such as "color" or "frame".
        out: folder for weights and runs; called again it resumes there.
        model: see `unskew list models`; chosen by the inputs if not given.
        method: a method of one stage.
        rates: shares of the rows to keep.
        split: what accuracy is taken on; test where it is drawn as the training rows are, else val.
        seed: of every random stream.
        device: auto, cpu, cuda, cuda:0 or mps.
        settings: those of the training; the repair's begin with `repair.`.
        command: what the result records.

    Returns:
        Beta, and the accuracy at each keep rate; for clips also the temporal structure scores.

    Example:
        print(unskew.dependency("photos/", phi="color", out="beta").beta)
    """
    from unskew.verbs.dependency import dependency as verb

    return verb(
        source, phi=phi, out=out, model=model, method=method, rates=rates, split=split, seed=seed, device=device,
        settings=settings, command=command,
    )  # fmt: skip


def report(
    runs: "Run | str | Path | Sequence[Run | str | Path]",
    out: "str | Path" = "report.html",
    *,
    audit: "str | Path" = "",
    repairs: "Sequence[str | Path]" = (),
    on: Any = None,
) -> "Path":
    """Write one page about one run or several, and the same as JSON beside it.

    Args:
        runs: runs, or their folders; several stand side by side. A run that is not judged yet is judged first.
        out: the page; it ends in .html, opens from disk and needs no network.
        audit: folder of an audit, to stand before the runs.
        repairs: tables of repairs, to stand before the runs.
        on: the data of runs that were trained on data from Python, which cannot be read again.

    Returns:
        The path of the page.

    Example:
        unskew.report(["erm", "repaired"], "page.html", audit="audit", repairs=["weights.parquet"])
    """
    from unskew.verbs.report import report as verb

    return verb(runs, out, audit=audit, repairs=repairs, on=on)


def bench(
    suite: str,
    *,
    scale: str = "smoke",
    on: str = "local",
    out: "str | Path" = "bench",
    seeds: int | str = 0,
    only: Iterable[str] = (),
    workers: int = 0,
    address: str = "",
    settings: Mapping[str, str] | None = None,
    roots: Mapping[str, str] | None = None,
    resume: bool = False,
    command: str = "",
) -> "BenchReport":
    """Run every training of a suite beside its published numbers; called again, only what has no result is run.

    Args:
        suite: see `unskew list suites`, or a TOML file.
        scale: smoke, small or paper.
        on: local, or ray.
        out: folder for runs, results and report.
        seeds: how many (3) or which ("1..2"); the scale's own if not given.
        only: methods, data sets or settings of the suite.
        workers: runs side by side; as many as there are cores if not given.
        address: of a Ray cluster; one is started here if not given.
        settings: over those of the suite, for every run.
        roots: where real sets lie on disk, such as `{"celeba": "data/celeba"}`.
        resume: refuse to start a new bench.
        command: what the report shows as the command that made it.

    Returns:
        Mean and spread over seeds of every figure, beside the published ones, and the path of the page.

    Example:
        found = unskew.bench("pgd-table1", scale="smoke", out="bench")
        print([(row.method, row.figure, row.mean, row.published_mean) for row in found.table])
    """
    from unskew.verbs.bench import bench as verb

    return verb(
        suite, scale=scale, on=on, out=out, seeds=seeds, only=only, workers=workers, address=address, settings=settings,
        roots=roots, resume=resume, command=command,
    )  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in ("losses", "measure", "nn", "repairs"):
        from unskew.core.registry import package

        return package(name)
    if name == "DataSet":
        from unskew.data.dataset import DataSet

        return DataSet
    raise AttributeError(f"module 'unskew' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
