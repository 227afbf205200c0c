"""The verb `evaluate`: logits by sample id, group tables and the named averages, and whatever else is asked of a finished run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from unskew.core.engine import check_device
from unskew.core.errors import UserError
from unskew.core.files import nothing_left, plain, read_json, safe_name, write_json
from unskew.core.workplace import alone
from unskew.data.dataset import DataSet
from unskew.data.predictions import is_predictions
from unskew.evaluation._contract import Judged, Question, questions
from unskew.measure.leakage import Attack
from unskew.methods._contract import Method
from unskew.pages.verdict import judge_groups
from unskew.records import Evaluation, Growing, Run, Table, TableFile, TrainGroups
from unskew.records.growing import opened
from unskew.training.answers import Answers, answers_of
from unskew.training.finished import other_data, own_data, trained_method
from unskew.training.judge import bias_rates, confusion_matrix, judge, label_figures, predicted_counts, true_counts
from unskew.training.predict import predict_parts, predictions_frame
from unskew.training.trained import train_logits
from unskew.verbs.predictions import evaluate_predictions


def evaluate(
    run: Run | str | Path,
    on: Any = None,
    *,
    split: str = "test",
    bias: Sequence[str] = (),
    device: str = "auto",
    leakage: bool = False,
    attack: Attack | None = None,
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
) -> Evaluation:
    """One forward pass over a split; predictions and metrics go into the run's folder. Earlier answers are kept.

    A table of predictions in place of a run is judged on the source `on`: see verbs.predictions. With `bias`, a run is judged by other
    columns or tags of its own data; the metrics have a file of their own.
    """
    asked = _asked(
        leakage=leakage, attack=attack, noise=tuple(noise), alpha=alpha, rba=rba, fit_on=fit_on,
        corruptions=tuple(corruptions),
        textures=textures, temporal=temporal, erase=erase, reliance=reliance, reliance_rows=reliance_rows,
        shared_classes=shared_classes,
    )  # fmt: skip
    if is_predictions(run):
        _only(asked, "leakage", "textures")
        return evaluate_predictions(Path(str(run)), on, leakage=leakage, attack=attack, textures=textures)
    run = run if isinstance(run, Run) else Run(Path(run))
    target = check_device(device)
    if shared_classes and on is None:
        raise UserError("--shared-classes needs another source: name it with --on")
    # Playing clips backwards asks nothing of their classes, so any clips will do; accuracy is that of the classes the run knows.
    only_played = temporal and on is not None and not shared_classes and len(asked) == 1
    if bias and on is not None:
        raise UserError("--bias names columns or tags of a run's own data; leave out --on")
    data, known = (own_data(run, bias), None) if on is None else other_data(run, on, shared_classes or only_played, only_played)
    for question, options in asked:
        question.check(data, options)
    place = split if on is None else f"{split}-{data.fingerprint[:8]}"
    place += f"-by-{'-'.join(safe_name(name) for name in data.bias_names)}" if bias else ""
    made_by = {"name": "evaluate", "run": str(run.path), "fingerprint": data.fingerprint, "split": split}
    with (
        alone(run.path, "evaluation"),
        nothing_left(run.path / "predictions"),
        Growing(run.path / "predictions" / f"{place}.parquet", made_by) as table,
    ):
        method = trained_method(run).to(target)
        workers = run.config["config"]["data"]["workers"]
        rows = _rows(data, split, on is None, None if only_played else known)
        # Logits go into the table part by part; what is judged is kept of each row.
        said = answers_of(
            _written(predict_parts(method, data, rows, workers=workers), table, data, known if only_played else None), data
        )
        judged = Judged(
            run, method, data, said.index, lambda: table.column("logits").float(), lambda: data if on is None else own_data(run)
        )  # fmt: skip
        kept = said.only(known[said.index]) if only_played and known is not None else said
        answers = _known(run, place)
        for question, options in asked:
            answers = {k: v for k, v in answers.items() if k not in question.keys} | question.ask(judged, options).json()
        train = _train_groups(run, lambda: method, data if on is None else None, split, len(said.index))
        evaluation = _evaluation(run, data, table.table, kept, split, answers, train, own=on is None)
        table.save()
        write_json(run.path / f"metrics-{place}.json", evaluation.json())
    return evaluation


def recall(run: Run, split: str = "test", on: Any = None) -> Evaluation:
    """The evaluation of a run from its saved predictions; if there are none, evaluate now."""
    path = run.path / "predictions" / f"{split}.parquet"
    if on is not None or not Table.is_at(path):
        return evaluate(run, on, split=split)
    table = opened(path)
    data = own_data(run)
    if not data.is_source(table.made_by.get("fingerprint")):
        raise UserError(f"{data.source} has changed since {run.path} was judged on it; run unskew evaluate again")
    if (
        not len(table)
        or int(table.index.max()) >= len(data)
        or any(_width(part) != len(data.classes) for part in table.parts("logits"))
    ):
        raise UserError(f"{path} does not hold predictions for {data.name}; remove it, and evaluate again")
    said = answers_of(((part.index, part.column("logits").float()) for part in table.parts("logits")), data)
    train = _train_groups(run, lambda: trained_method(run), data, split, len(table))
    return _evaluation(run, data, table, said, split, _known(run, split), train, own=True)


def _width(table: Table) -> int:
    """Logits of a row; -1 if they are not lists."""
    shape = table.column("logits").shape
    return shape[1] if len(shape) == 2 else -1


def _written(
    parts: Iterator[tuple[Tensor, Tensor]], table: Growing, data: DataSet, known: Tensor | None
) -> Iterator[tuple[Tensor, Tensor]]:
    """The same parts, after the rows of each whose class is `known` have been added to the table."""
    for index, logits in parts:
        kept = slice(None) if known is None else known[index]
        table.add(predictions_frame(index[kept], data.y[index[kept]], logits[kept]))
        yield index, logits


def _train_groups(run: Run, method: Callable[[], Method], own: DataSet | None, split: str, judged: int) -> TrainGroups:
    """The group table of the rows that the run was trained on; `own` is None when the rows judged are of another source."""
    if own is not None and split == "train":
        return TrainGroups(None, reason="the rows judged are the training rows")
    try:
        data = own_data(run) if own is None else own
    except UserError as error:
        return TrainGroups(None, reason=str(error))
    table, of, note = train_logits(run, method, data, judged, run.config["config"]["data"]["workers"])
    return TrainGroups(judge(table.column("logits").float(), data, table.index), len(table), of, note=note)


def _asked(**given: Any) -> list[tuple[Question, Any]]:
    """The questions that these arguments ask, each with its options; bad options are rejected here."""
    asked = []
    for question in questions():
        options = question.options(**{name: given[name] for name in question.arguments})
        if question.wanted(given):
            asked.append((question, options))
    return asked


def _only(asked: Sequence[tuple[Question, Any]], *allowed: str) -> None:
    """Raise if another question is asked of predictions alone."""
    for question, _ in asked:
        if question.name not in allowed:
            raise UserError(f"{question.name} needs the model itself, not its predictions; these answer {' and '.join(allowed)}")


def _rows(data: DataSet, split: str, own: bool, known: Tensor | None) -> Tensor:
    """The rows to judge. A source without splits of its own is judged as a whole: none of its rows was trained on."""
    rows = data.rows(split) if own or split not in data.carved else torch.arange(len(data))
    if known is not None:
        rows = rows[known[rows]]
        if not len(rows):
            raise UserError(f"no row of {data.name} has a class that the run knows: {', '.join(data.classes[:8])}")
    return rows


def _known(run: Run, place: str) -> dict[str, Any]:
    """Earlier answers on the same rows, which take minutes to compute; only shared classes are judged anew each time."""
    saved = run.path / f"metrics-{place}.json"
    known = read_json(saved, "the metrics of a run") if saved.is_file() else {}
    answers = {key: known[key] for q in questions() if q.name != "cross_dataset" for key in q.keys if key in known}
    alien = next((key for key, answer in answers.items() if not isinstance(answer, dict | list)), None)
    if alien is not None:
        raise UserError(f"{saved} is damaged or not unskew's: {alien} is {answers[alien]!r}; remove it, and evaluate again")
    return answers


def _evaluation(
    run: Run, data: DataSet, table: Table | TableFile, answered: Answers, split: str, answers: Mapping[str, Any], train: TrainGroups,
    *, own: bool,
) -> Evaluation:  # fmt: skip
    # No row is left to judge if clips of other classes were only played backwards.
    index, logits = answered.index, answered.said
    by_bias = {}
    if len(data.bias_names) > 1:
        by_bias = {name: judge(logits, data.only_bias([name]), index) for name in data.bias_names}
    groups, predicted, rows = judge(logits, data, index), predicted_counts(logits, data), true_counts(data, index)
    comparable = train.groups if train.groups is not None and train.groups.bias_names == groups.bias_names else None
    said = judge_groups(
        groups, multi_label=data.multi_label, train=comparable, predicted=predicted, rows=rows, own_rows=own
    )  # fmt: skip
    # Data of another source is judged by the pairs that the run recorded; its own data, by today's rule.
    rule = data.aligned()[1] if own else run.config["alignment"]["rule"]
    return Evaluation(
        run=str(run.path), split=split, on=data.source or data.name, selection=run.outcome["selection"],
        labels=run.config["labels"], aligned_rule=rule, aligned_in_words=data.aligned_in_words(), groups=groups, verdict=said,
        predicted=dict(zip(data.classes, predicted, strict=True)), confusion=confusion_matrix(logits, data, index), train=train,
        rates_by_bias=bias_rates(logits, data, index, answered.sure),
        by_bias=by_bias, label_figures=label_figures(logits, data, index), answers=plain(answers), predictions=table, data=data,
        rows=index,
    )  # fmt: skip
