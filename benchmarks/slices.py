"""Precision of pseudo-conflicting rows where a shortcut was planted; no bias label is used to find them.

    python -m benchmarks.slices [--seeds 0,1,2] [--only colour,ground] --out slices.csv

Per set and seed: of the ten rows with the highest score, how many lack the shortcut (precision at 10); the same for the ten of every
conflicting slice, averaged over slices; precision and recall of all rows in conflicting slices; and whether the slice that a
shortcut explains names the right kind of nuisance. Rows are appended to the table as they are ready.
"""

import argparse
import csv
import time
from pathlib import Path

import torch

from unskew.data.dataset import DataSet
from unskew.data.sources import load
from unskew.features import compute
from unskew.measure.representation_bias import representation_bias
from unskew.parts.opinion import simple_representations
from unskew.stats.sample import stratified
from unskew.verbs.audit import audited_rows
from unskew.verbs.slices import find_slices

SETS = {
    "colour": "colored-mnist:base=digits,ratio=0.95,seed={seed}",
    "watermark": "watermarked-mnist:ratio=0.95,seed={seed}",
    "texture": "texture-shapes:rows=3000,seed={seed}",
    "ground": "places:seed={seed}",
    "motion": "moving-digits:rows=3000,seed={seed}",
}
FIELDS = (
    "planted", "seed", "rows", "conflicting_rows", "precision_at_10", "slices", "slice_precision_at_10", "precision", "recall",
    "explained_by", "features", "cpu_seconds",
)  # fmt: skip


def measure(planted: str, seed: int, most: int) -> dict[str, object]:
    data = load(SETS[planted].format(seed=seed))
    started = time.process_time()
    rows = audited_rows(data)
    rows = rows[stratified(data.y[rows], most, seed=seed)]
    specs = simple_representations(data)
    index, features = compute(data, specs, rows)
    estimates = [(s, representation_bias(features[s.name], data.y[index], permutations=0, bootstrap=0, seed=seed)) for s in specs]
    found, columns = find_slices(data, index, estimates, features, most=most, seed=seed)
    seconds = time.process_time() - started
    return scored(data, columns, found.slices) | {
        "planted": planted, "seed": seed, "rows": found.rows, "features": found.features, "cpu_seconds": round(seconds, 1),
    }  # fmt: skip


def scored(data: DataSet, columns, slices) -> dict[str, object]:  # type: ignore[no-untyped-def]
    ids = torch.from_numpy(columns["index"].to_numpy().copy())
    pairs = data.alignment()
    assert pairs is not None
    truth = pairs.of_rows(data.y[ids], data.bias[ids])[1]
    score = torch.from_numpy(columns["slice_score"].to_numpy().copy())
    inside = torch.tensor((columns["slice_kind"] == "conflicting").to_list())
    by_slice = []
    for one in slices:
        mine = torch.tensor((columns["slice_name"] == one.name).to_list()).nonzero().flatten()
        if one.kind == "conflicting":
            by_slice.append(float(truth[mine[score[mine].argsort(descending=True)[:10]]].double().mean()))
    reasons = [s.explained_by for s in slices if s.kind == "conflicting" and s.explained_by]
    return {
        "conflicting_rows": int(truth.sum()),
        "precision_at_10": float(truth[score.argsort(descending=True)[:10]].double().mean()),
        "slices": len(by_slice),
        "slice_precision_at_10": round(sum(by_slice) / max(1, len(by_slice)), 3),
        "precision": round(float(truth[inside].double().mean()), 3) if bool(inside.any()) else float("nan"),
        "recall": round(float(inside[truth].double().mean()), 3),
        "explained_by": max(set(reasons), key=reasons.count) if reasons else "",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--only", default=",".join(SETS))
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=Path("slices.csv"))
    asked = parser.parse_args()
    done = set()
    if asked.out.is_file():
        with open(asked.out, newline="") as there:
            done = {(r["planted"], int(r["seed"])) for r in csv.DictReader(there)}
    for seed in map(int, asked.seeds.split(",")):
        for planted in asked.only.split(","):
            if (planted, seed) in done:
                continue
            row = measure(planted, seed, asked.rows)
            fresh = not asked.out.is_file()
            with open(asked.out, "a", newline="") as out:
                writer = csv.DictWriter(out, FIELDS)
                if fresh:
                    writer.writeheader()
                writer.writerow(row)
            print(row, flush=True)


if __name__ == "__main__":
    main()
