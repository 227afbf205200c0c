"""De-noising on real Colored MNIST at 99 % bias and 5 % label noise: which rows are kept, beside PGD's Table 16.

python benchmarks/denoise_colored_mnist.py [--table d.parquet] [--out docs/results/denoise.md]

--table takes the result of `unskew repair colored-mnist:ratio=0.99,noise=0.05 --with denoise --out d.parquet` instead of making it.
"""

import argparse
import json
from pathlib import Path

import torch

import unskew
from unskew.records import Table

SOURCE = "colored-mnist:ratio=0.99,noise=0.05"
# Rows kept: clean major, clean minor, noisy major, noisy minor (Ahn and Yun, ICLR 2022 submission, Table 16).
PUBLISHED = {
    "published, before": (50586, 568, 2820, 26),
    "published, FINE": (47455, 12, 0, 0),
    "published, PGD": (50577, 331, 1, 4),
}


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--table", type=Path)
    words.add_argument("--out", type=Path, default=Path("docs/results/denoise.md"))
    given = words.parse_args()
    path = given.table or unskew.repair(SOURCE, "denoise", out="denoise.parquet").path
    table, data = Table.read(path), unskew.load(SOURCE)
    index, score = table.index, table.column("score")
    truth = torch.tensor(data.columns["clean_label"].to_list())[index]
    clean, minor = truth == data.y[index], data.bias[index, 0] != truth
    groups = [clean & ~minor, clean & minor, ~clean & ~minor, ~clean & minor]
    rows = {"before": [int(g.sum()) for g in groups]}
    for factor in (1.0, 1.25, 1.5, 2.0):
        rows[f"factor {factor:g}"] = [int((g & (score < factor)).sum()) for g in groups]
    settings = dict(table.made_by["training"])
    lines = [
        "# De-noising on Colored MNIST",
        "",
        f"`python benchmarks/denoise_colored_mnist.py`: {SOURCE}, 54,000 rows. Rows kept; in brackets the share of noisy rows",
        "dropped and of clean minor (conflicting) rows kept. `factor=1` is the paper's rule; above 1 the line is steeper and keeps more.",
        "",
        "| | clean major | clean minor | noisy major | noisy minor | noisy dropped | clean minor kept |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, kept in [*rows.items(), *PUBLISHED.items()]:
        base = PUBLISHED["published, before"] if name.startswith("published") else rows["before"]
        dropped = 1 - (kept[2] + kept[3]) / (base[2] + base[3])
        lines.append(f"| {name} | {' | '.join(map(str, kept))} | {100 * dropped:.1f} % | {100 * kept[1] / base[1]:.1f} % |")
    lines += ["", f"Training of the network: {json.dumps(settings)}.", ""]
    notes = given.out.with_name("denoise-notes.md")
    lines += [notes.read_text(encoding="utf-8")] if notes.is_file() else []
    given.out.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
