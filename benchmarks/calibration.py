"""Can the measure be trusted? Planted bias of known size, many seeds.

    python -m benchmarks calibration [--seeds 100] [--out docs/results/calibration.md]

Three questions: does the 95 % interval contain the true bias? Is an independent property called a shortcut on imbalanced classes?
Is a property found that carries 5 % of the label's entropy? Finished rows are kept in a CSV beside the table, from which an
interrupted run resumes.
"""

import argparse
import csv
import re
from pathlib import Path

from unskew.data import load
from unskew.measure import representation_bias

SHARES = {"50 %": "0.5,0.5", "80 %": "0.8,0.2", "90 %": "0.9,0.1", "95 %": "0.95,0.05"}
CASES = [(b, "50 %") for b in (0.05, 0.2, 0.5)] + [(0.05, s) for s in list(SHARES)[1:]] + [(0.0, s) for s in SHARES]
TITLE = "# Calibration of representation bias"


def write_section(path: Path, title: str, text: str) -> None:
    """Replace the part of a page under this heading, or add it; other benchmarks have their own parts."""
    parts = re.split(r"^(?=# )", path.read_text(encoding="utf-8"), flags=re.MULTILINE) if path.exists() else []
    kept = [text if part.startswith(title) else part for part in parts if part]
    kept += [] if text in kept else [text]
    path.write_text("\n".join(part.rstrip() + "\n" for part in kept), encoding="utf-8")


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--seeds", type=int, default=100)
    words.add_argument("--out", type=Path, default=Path("docs/results/calibration.md"))
    given = words.parse_args()
    record = given.out.with_suffix(".csv")
    done = {}
    if record.exists():
        with open(record, newline="") as file:
            done = {(float(r["bias"]), r["share"], int(r["seed"])): r for r in csv.DictReader(file)}
    with open(record, "a", newline="") as file:
        out = csv.DictWriter(file, ["bias", "share", "seed", "found", "low", "high", "chance_high", "called"])
        if not done:
            out.writeheader()
        for seed in range(given.seeds):
            for bias, share in CASES:
                if (bias, share, seed) in done:
                    continue
                data = load(f"planted:bias={bias},shares={SHARES[share]},rows=5000,seed={seed}")
                e = representation_bias(data.inputs.x, data.y, seed=seed)
                row = {
                    "bias": bias,
                    "share": share,
                    "seed": seed,
                    "found": round(e.bias, 5),
                    "low": round(e.low, 5),
                    "high": round(e.high, 5),
                }
                row |= {"chance_high": round(e.chance_high, 5), "called": int(e.above_chance)}
                out.writerow(row)
                file.flush()
                done[bias, share, seed] = {k: str(v) for k, v in row.items()}
    write_section(given.out, TITLE, table(done, given.seeds))
    print(given.out.read_text(encoding="utf-8"))


def table(done: dict, seeds: int) -> str:
    lines = [
        TITLE,
        "",
        f"`make bench NAME=calibration` (`python -m benchmarks calibration --seeds {seeds}`): 5,000 rows, features = one-hot of",
        "the planted symbol and four numbers of noise, five folds, 19 permutations. The single runs are in calibration.csv.",
        "",
        "| true bias | larger class | seeds | true bias inside the 95 % interval | called above chance | mean estimate |",
        "|---|---|---|---|---|---|",
    ]
    for bias, share in CASES:
        rows = [r for (b, s, k), r in done.items() if b == bias and s == share and k < seeds]
        inside = sum(float(r["low"]) <= bias <= float(r["high"]) for r in rows)
        called = sum(int(r["called"]) for r in rows)
        mean = sum(float(r["found"]) for r in rows) / len(rows)
        lines.append(f"| {bias:g} | {share} | {len(rows)} | {inside} | {called} | {mean:.4f} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
