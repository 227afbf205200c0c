"""Leakage and its removal on tiles: every baseline and the critic at three places, attacked by fresh attackers, 3 seeds.

python benchmarks/leakage_tiles.py [--seeds 3] [--only erm,alpha1] [--runs DIR]

One JSON line per finished variant in docs/results/leakage-tiles.jsonl; lines that are there are not repeated, and runs in --runs go on
where they stopped. All variants start from the same 15 epochs of plain training (`base`) and have 8 more, the mask at the image 4;
alpha-balanced ones have as many steps on fewer rows. The page is made by benchmarks/leakage_tiles_page.py.
"""

import argparse
import json
from pathlib import Path

import torch

import unskew
from unskew import config
from unskew.data._loader import rows_in_order
from unskew.evaluate.run import evaluate, trained_method
from unskew.files import dumps, write_json
from unskew.measure import Attack, bias_amplification, dataset_leakage, dataset_leakage_curve
from unskew.measure.leakage import Leakage, LeakageCurve

ROOT = Path(__file__).parent.parent
PLAIN = ["train.batch=128", "optim.name=adam", "model.dropout=0"]
BASE = [*PLAIN, "train.steps=1410", "optim.lr=0.003"]  # 15 epochs of 12,000 rows
FINE = [*PLAIN, "train.steps=752", "optim.lr=0.001", "optim.schedule=cosine"]  # 8
CRITIC = [*FINE, "method.warmup=1", "train.sampler=balanced"]
# At the image the critic is told the labels, so that hiding objects gains nothing, and it has no warm-up: one that is sure already has
# no gradient to reverse, and the mask stays open.
IMAGE = [*PLAIN, "train.steps=376", "optim.lr=0.001", "optim.schedule=cosine", "train.sampler=balanced", "method.at=image"]
IMAGE += ["method.lambda_=1", "method.beta=0.3", "method.conditional=true", "method.mask_channels=16,32,32"]
NOISE = (0.25, 0.5, 1.0, 1.5)
POINTS = (0.2, 0.4, 0.55, 0.65, 0.75, 0.85)  # F1 at which labels are attacked, once for all variants of a seed

# name -> (method, settings, data settings, alpha of the training rows, the run it starts from)
VARIANTS = {
    "erm": ("erm", FINE, {}, 0, "base"),
    "adversarial-last": ("adversarial", [*CRITIC, "method.lambda_=0.5"], {}, 0, "base"),
    "adversarial-middle": ("adversarial", [*CRITIC, "method.lambda_=0.5", "method.at=conv2"], {}, 0, "base"),
    "adversarial-image": ("adversarial", IMAGE, {}, 0, "base"),
    "alpha1": ("erm", FINE, {}, 1, "base-alpha1"),
    "alpha1-adversarial-last": ("adversarial", [*CRITIC, "method.lambda_=0.5"], {}, 1, "base-alpha1"),
    "black": ("erm", FINE, {"data.hide": "black"}, 0, "base-black"),
    "blur": ("erm", FINE, {"data.hide": "blur", "data.blur": "3"}, 0, "base-blur"),
    "rba": ("", [], {}, 0, "erm"),
    **{f"noise-{level:g}": ("", [], {}, 0, "erm") for level in NOISE},
}


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--seeds", default="3", help="how many, or their numbers with a comma: 1,")
    words.add_argument("--only", default=",".join(VARIANTS))
    words.add_argument("--runs", type=Path, default=Path("runs-tiles"))
    words.add_argument("--out", type=Path, default=ROOT / "docs/results/leakage-tiles.jsonl")
    given = words.parse_args()
    seeds = [int(s) for s in given.seeds.split(",") if s] if "," in given.seeds else range(int(given.seeds))
    for seed in seeds:
        for name in given.only.split(","):
            if any(line["name"] == name and line["seed"] == seed for line in lines(given.out)):
                continue
            found = {"name": name, "seed": seed, **one(name, seed, given.runs)}
            with open(given.out, "a", encoding="utf-8") as out:
                out.write(dumps(found, indent=None) + "\n")
            print({k: round(v, 4) if isinstance(v, float) else v for k, v in found.items()}, flush=True)


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def trained(name, seed, runs):
    """The run of a variant, or of what it starts from; given again, it goes on or is found finished."""
    method, settings, reading, alpha, start = VARIANTS.get(name, ("erm", BASE, {}, 0, ""))
    if name.startswith("base-"):
        _, _, reading, alpha, _ = VARIANTS[name.removeprefix("base-")]
    settings = config.words(settings) | reading
    if start:
        settings["train.start"] = str(trained(start, seed, runs).path)
    weights = None
    if alpha:
        weights = runs / f"alpha{alpha}-{seed}.parquet"
        unskew.repair(f"tiles:seed={seed}", "balance", out=weights, seed=seed, settings={"alpha": str(alpha)})
    return unskew.train(
        f"tiles:seed={seed}", method, model="convnet1", out=runs / f"{name}-{seed}", seed=seed, settings=settings, weights=weights
    )


def one(name, seed, runs):
    run = trained("erm" if name == "rba" or name.startswith("noise") else name, seed, runs)
    known = curve(seed, runs)
    if name == "rba" or name.startswith("noise"):
        return derived(name, run, seed, known)
    found = evaluate(run)
    logits, y, a = found.predictions.column("logits").float(), found.data.y[found.rows], found.data.bias[found.rows, 0]
    more = bias_amplification(logits, y, a, seed=seed, curve=known)
    out = told(more) | {"f1": found.metrics["f1_macro"], "average_precision": found.metrics["average_precision"]}
    out |= {"intervals": found.metrics["label_intervals"], "seconds": run.outcome["seconds"]}
    out |= {"dataset": known.at(1.0).value}
    if name.startswith("alpha"):  # the labels' own leakage where they are balanced, as the model saw them
        data, weights = found.data, unskew.records.Table.read(runs / f"alpha1-{seed}.parquet")
        kept = weights.index[weights.column("weight") > 0]
        balanced = dataset_leakage(data.y[kept], data.bias[kept, 0], seed=seed)
        out |= {"dataset_balanced": balanced.value, "kept": len(kept)}
    if name == "adversarial-image":
        out |= mask_means(run, found)
    return out


def derived(name, run, seed, known):
    """The plain run with noise on its embedding, or calibrated."""
    from unskew.evaluate.attack import predict_and_embed, quality
    from unskew.evaluate.rba import rba, training_ratios
    from unskew.evaluate.run import open_run

    method, data = open_run(run)
    index, logits, embedding = predict_and_embed(method, data, data.rows("test"))
    y, a = data.y[index], data.bias[index, 0]
    extra = {}
    if name == "rba":
        train = data.rows("train")
        made = rba(logits, a, training_ratios(data.y[train], data.bias[train, 0], len(data.classes), 2))
        logits, extra = made.scores, {"outside_before": made.violations[0], "outside_after": made.violations[1]}
    else:
        logits = embedding.noisy(float(name.removeprefix("noise-")), seed)
    found = quality(logits, y, seed)
    more = told(bias_amplification(logits, y, a, seed=seed, curve=known))
    return more | {"f1": found["f1_macro"], "average_precision": found["average_precision"]} | extra


def told(more):
    return {
        "model": more.model.value, "dataset_at_f1": more.dataset_at_f1.value, "amplification": more.delta,
        "low": more.low, "high": more.high,
    }  # fmt: skip


def curve(seed, runs):
    """Labels of the test rows attacked at several F1, kept in a file."""
    path = runs / f"labels-{seed}.json"
    if not path.is_file():
        data = unskew.load(f"tiles:seed={seed}")
        rows = data.rows("test")
        y, a = data.y[rows], data.bias[rows, 0]
        found = dataset_leakage_curve(y, a, [*POINTS, 1.0], attack=Attack(), seed=seed)
        fields = ("value", "low", "high", "f1", "rounds", "chance", "n", "error", "note")
        write_json(path, [{f: getattr(p, f) for f in fields} for p in found.points])
    return LeakageCurve(
        tuple(Leakage(**p | {"rounds": tuple(p["rounds"])}) for p in json.loads(path.read_text(encoding="utf-8")))
    )


def mask_means(run, found):
    """Mean of the mask on pixels of the person, of the objects and of the background, over 1,000 test rows."""
    method, data = trained_method(run), found.data
    box = torch.tensor([data.columns[c].to_list() for c in ("x0", "y0", "x1", "y1")]).T
    index, x = next(rows_in_order(data, found.rows[:1000], 1000))
    with torch.inference_mode():
        mask = method.mask(x)[:, 0]
    ink = x.amax(1) > 0.35  # above the noise
    x0, y0, x1, y1 = (v[:, None, None] for v in box[index].unbind(1))
    down, across = torch.arange(x.shape[2])[None, :, None], torch.arange(x.shape[3])[None, None]
    person = (down >= y0) & (down < y1) & (across >= x0) & (across < x1)
    return {
        "mask_person": float(mask[person & ink].mean()),
        "mask_objects": float(mask[~person & ink].mean()),
        "mask_background": float(mask[~ink].mean()),
    }


if __name__ == "__main__":
    main()
