"""Judge a model that was trained elsewhere from its predictions: groups, leakage, slices and a page."""

import dataclasses
from pathlib import Path
from typing import Any

import polars as pl
import torch
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.files import plain, write_json, write_text
from unskew.core.workplace import alone
from unskew.data.dataset import DataSet
from unskew.data.predictions import read_predictions
from unskew.data.sources import load
from unskew.evaluation import leakage as leaks
from unskew.evaluation.textures import accuracy_by_texture
from unskew.features import Spec, compute
from unskew.measure.explained_errors import explained_errors
from unskew.measure.leakage import Attack
from unskew.measure.representation_bias import BiasEstimate, representation_bias
from unskew.pages.runs import render_predictions
from unskew.pages.verdict import judge_groups
from unskew.parts.opinion import nuisances
from unskew.records import Evaluation, Slices, Table, TrainGroups
from unskew.stats.sample import stratified
from unskew.training.judge import bias_rates, confusion_matrix, judge, label_figures, predicted_counts, true_counts
from unskew.verbs.slices import SAMPLE, find_slices, with_slices

ELSEWHERE = "the model was trained elsewhere"


def evaluate_predictions(
    table: str | Path,
    source: Any,
    *,
    leakage: bool = False,
    attack: Attack | None = None,
    textures: str = "",
    slices: int = SAMPLE,
    seed: int = 0,
    workers: int = 2,
) -> Evaluation:
    """Judge the rows of a table of predictions; page, JSON and scores go into a folder beside it, NAME-evaluation."""
    path = Path(table)
    if source is None:
        raise UserError(f"{path} holds predictions: name the data that they are about with --source")
    data = load(source)
    index, logits = read_predictions(path, data)
    out = path.with_name(f"{path.stem}-evaluation")
    answers: dict[str, Any] = {}
    if leakage:
        options = leaks.Options(leakage=True, attack=attack)
        answers |= leaks.leakage_of(logits, data, index, options, seed).json()
    if textures:
        answers |= accuracy_by_texture(logits, data, index, textures, workers=workers).json()
    with alone(out, "evaluation"):
        sliced, columns, explained = _slices(data, index, logits, slices, seed, workers)
        answers |= {"slices": None if sliced is None else sliced.json(), "explained_errors": explained}
        frame = pl.DataFrame({"index": index.numpy(), "logits": logits.tolist()})
        scores = Table(frame, {"name": "evaluate", "fingerprint": data.fingerprint, "predictions": path.name})
        evaluation = _evaluation(path, data, index, logits, answers, scores)
        with_slices(scores, columns).save(out / "scores.parquet")
        write_text(out / "evaluation.html", render_predictions(evaluation))
        write_json(out / "metrics.json", evaluation.json())
    return evaluation


def _slices(
    data: DataSet, index: Tensor, logits: Tensor, most: int, seed: int, workers: int
) -> tuple[Slices | None, pl.DataFrame, dict[str, Any]]:
    """Slices by the model's own errors, and how well each nuisance explains these."""
    if not most:
        return None, pl.DataFrame(), {}
    if data.multi_label or not data.has_inputs or len(torch.unique(data.y[index])) < 2:
        return find_slices(data, index, [], {}, most=most)[0], pl.DataFrame(), {}
    picked = stratified(data.y[index], most, seed=seed)
    rows, specs = index[picked], nuisances(data)
    ids, features = compute(data, specs, rows, workers=workers) if specs else (rows, {})
    picked = picked[torch.isin(rows, ids)]
    y, estimates = data.y[ids], list[tuple[Spec, BiasEstimate]]()
    for one in specs:
        try:
            estimates.append((one, representation_bias(features[one.name], y, permutations=0, bootstrap=0, seed=seed)))
        except UserError:  # too few rows of a class to read anything from
            continue
    wrong = logits[picked].argmax(1) != y
    explained = {one.name: dataclasses.asdict(explained_errors(e.gain, wrong, y, seed=seed)) for one, e in estimates}
    explained = dict(sorted(explained.items(), key=lambda item: -_or_zero(item[1]["value"])))
    sliced, columns = find_slices(
        data, ids, estimates, features, most=len(ids), seed=seed, workers=workers, logits=logits[picked]
    )  # fmt: skip
    return dataclasses.replace(sliced, of=len(index)), columns, explained


def _or_zero(value: float) -> float:
    return value if value == value else 0.0


def _evaluation(path: Path, data: DataSet, index: Tensor, logits: Tensor, answers: dict[str, Any], table: Table) -> Evaluation:
    groups, predicted = judge(logits, data, index), predicted_counts(logits, data)
    several = len(data.bias_names) > 1
    return Evaluation(
        run=str(path), split="predicted rows", on=data.source or data.name, selection={"rule": ELSEWHERE, "step": 0, "labels": []},
        labels={"training": [ELSEWHERE]}, aligned_rule=data.aligned()[1], aligned_in_words=data.aligned_in_words(), groups=groups,
        verdict=judge_groups(groups, multi_label=data.multi_label, predicted=predicted, rows=true_counts(data, index)),
        predicted=dict(zip(data.classes, predicted, strict=True)), confusion=confusion_matrix(logits, data, index),
        train=TrainGroups(None, reason=ELSEWHERE),
        rates_by_bias=bias_rates(logits, data, index),
        by_bias={name: judge(logits, data.only_bias([name]), index) for name in data.bias_names} if several else {},
        label_figures=label_figures(logits, data, index), answers=plain(answers), predictions=table, data=data, rows=index,
    )  # fmt: skip
