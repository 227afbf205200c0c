"""Every joint method on equal terms: the recipes of one data set, at several ratios and seeds, beside the published numbers.

python benchmarks/joint_methods.py --suite colored-mnist [--ratios 0.995,0.99] [--seeds 2] [--only erm,lff] [--share 0/2]
python benchmarks/joint_methods.py --suite biased-mnist [--ratios 0.99,0.997]

One JSON line per finished run in docs/results/joint-methods.jsonl; runs that are there are not repeated. `--share k/n` makes every n-th
run, for n processes side by side. The page is made by benchmarks/joint_methods_page.py.
"""

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path

from unskew import config
from unskew.evaluate.run import evaluate
from unskew.files import dumps
from unskew.train.run import train

ROOT = Path(__file__).parent.parent
RATIOS = {"colored-mnist": "0.995,0.99", "biased-mnist": "0.99,0.997"}
ORDER = {
    "colored-mnist": ["erm", "lff", "grl", "group_dro", "lnl", "gray", "rubi", "learned_mixin", "blind_eye", "reweight"],
    "biased-mnist": ["erm", "g", "rebias", "rubi", "learned_mixin", "hex"],
}


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--suite", choices=list(ORDER), required=True)
    words.add_argument("--ratios", default="")
    words.add_argument("--seeds", type=int, default=2)
    words.add_argument("--only", default="")
    words.add_argument("--share", default="0/1")
    words.add_argument("--out", type=Path, default=ROOT / "docs/results/joint-methods.jsonl")
    words.add_argument("--set", nargs="*", default=[], help="settings over the recipe's, e.g. method.mu=1; the line keeps them")
    given = words.parse_args()
    mine, of = map(int, given.share.split("/"))
    names = given.only.split(",") if given.only else ORDER[given.suite]
    ratios = [float(r) for r in (given.ratios or RATIOS[given.suite]).split(",")]
    extra = config.words(given.set)
    plan = [(seed, ratio, name) for seed in range(given.seeds) for ratio in ratios for name in names]
    for k, (seed, ratio, name) in enumerate(plan):
        key = {"suite": given.suite, "name": name, "ratio": ratio, "seed": seed, "set": extra}
        if k % of != mine or any(all(line.get(f) == v for f, v in key.items()) for line in lines(given.out)):
            continue
        found = {**key, **one(given.suite, name, ratio, seed, extra)}
        with open(given.out, "a", encoding="utf-8") as out:
            out.write(dumps(found, indent=None) + "\n")
        print({k: round(v, 4) if isinstance(v, float) else v for k, v in found.items()}, flush=True)


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def one(suite, name, ratio, seed, extra):
    named, nested = config.recipe(ROOT / "recipes" / f"{suite}-{name}.toml")
    source = named["source"].rpartition(",ratio=")[0] + f",ratio={ratio},seed={seed}"
    folder = Path(tempfile.mkdtemp())
    started = time.perf_counter()
    run = train(
        source, named["method"], model=named["model"], out=folder / "run", seed=seed, settings=config.merged(nested, extra)
    )
    seconds = time.perf_counter() - started
    groups = evaluate(run).groups
    found = {"seconds": seconds, "steps": run.outcome["steps"], "plain": groups.plain.value}
    found |= {"aligned": groups.aligned.value, "conflicting": groups.conflicting.value, "unbiased": groups.unbiased.value}
    if suite == "biased-mnist":
        found["biased"] = evaluate(run, split="test_biased").groups.plain.value
    shutil.rmtree(folder)
    return found


if __name__ == "__main__":
    main()
