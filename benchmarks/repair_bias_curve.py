"""Colour bias of Colored MNIST against the colour jitter (REPAIR's protocol on real MNIST), and of grey digits.

python -m benchmarks repair_bias_curve [--out docs/results/colour-bias.md]
"""

import argparse
from pathlib import Path

import torch

from unskew.data import load
from unskew.features import compute, spec
from unskew.measure import representation_bias
from unskew.pages import charts

SIGMAS = (0.05, 0.1, 0.15, 0.2, 0.3)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--out", type=Path, default=Path("docs/results/colour-bias.md"))
    words.add_argument("--seeds", type=int, default=3)
    given = words.parse_args()
    rows = []
    for seed in range(given.seeds):
        for sigma in SIGMAS:
            data = load(f"colored-mnist:protocol=repair,std={sigma},seed={seed}")
            rows.append(measure(data, torch.cat([data.rows("train"), data.rows("test_biased")]), sigma, seed))
            print(rows[-1], flush=True)
    grey = load("colored-mnist:protocol=repair,seed=0")
    rows.append(measure(grey, grey.rows("test"), None, 0))
    print(rows[-1], flush=True)
    lines = [
        "# Colour bias of Colored MNIST",
        "",
        f"`python -m benchmarks repair_bias_curve --seeds {given.seeds}`: REPAIR's protocol on real MNIST, 70,000 coloured rows",
        "(train and biased test), colour = per-channel maximum, five folds. Every seed draws its own palette. The grey row is the",
        "10,000 grey test digits.",
        "",
        "| sigma | seed | bias | 95 % interval | chance |",
        "|---|---|---|---|---|",
    ]
    for r in rows:
        name = "grey" if r["sigma"] is None else f"{r['sigma']:g}"
        lines.append(f"| {name} | {r['seed']} | {r['bias']:.4f} | {r['low']:.4f} to {r['high']:.4f} | {r['chance']:.4f} |")
    lines += ["", "![Colour bias against sigma](colour-bias.svg)", ""]
    given.out.write_text("\n".join(lines), encoding="utf-8")
    given.out.with_suffix(".svg").write_text(plot([r for r in rows if r["sigma"] is not None]), encoding="utf-8")


def measure(data, rows, sigma, seed):
    index, features = compute(data, [spec("color:kind=max")], rows)
    e = representation_bias(features["color:kind=max"], data.y[index], permutations=5)
    return {"sigma": sigma, "seed": seed, "bias": e.bias, "low": e.low, "high": e.high, "chance": e.chance}


def plot(rows):
    import altair as alt

    base = alt.Chart(alt.Data(values=rows), width=420, height=260).encode(
        x=alt.X("sigma:Q", title="sigma of the colour"), color=alt.Color("seed:N", title="palette (seed)")
    )
    line = base.mark_line(point=True).encode(y=alt.Y("bias:Q", title="colour bias B", scale=alt.Scale(domain=[0, 1])))
    return charts.svg(line + base.mark_rule().encode(y="low:Q", y2="high:Q"))


if __name__ == "__main__":
    main()
