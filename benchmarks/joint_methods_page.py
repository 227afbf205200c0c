"""The page docs/results/joint-methods.md from the lines that benchmarks/joint_methods.py wrote, beside the published numbers.

python benchmarks/joint_methods_page.py
"""

import json
from pathlib import Path
from statistics import mean

RESULTS = Path(__file__).parent.parent / "docs/results"
# (aligned, conflicting) in per cent: Ahn and Yun, ICLR 2022 submission, Table 1 (100 epochs, three runs).
PGD = {
    0.995: {"erm": (99.97, 26.58), "lff": (98.05, 58.36), "rubi": (99.93, 29.36), "learned_mixin": (99.93, 39.65)},
    0.99: {"erm": (99.97, 51.97), "lff": (95.56, 81.42), "rubi": (99.90, 56.97), "learned_mixin": (99.87, 65.28)},
}
# (biased, unbiased) in per cent: Bahng et al., ICML 2020, Table 1.
REBIAS = {
    0.99: {
        "erm": (100.0, 89.1), "g": (100.0, 10.0), "hex": (66.6, 24.7), "learned_mixin": (33.6, 88.3),
        "rubi": (100.0, 93.6), "rebias": (100.0, 88.1),
    },
    0.997: {
        "erm": (100.0, 33.4), "g": (100.0, 10.0), "hex": (77.7, 16.6), "learned_mixin": (6.7, 50.2),
        "rubi": (99.4, 43.0), "rebias": (100.0, 64.2),
    },
}  # fmt: skip


def main() -> None:
    lines = [json.loads(line) for line in (RESULTS / "joint-methods.jsonl").read_text(encoding="utf-8").splitlines()]
    page = ["# The joint methods on equal terms", ""]
    page += [
        "Made by `python benchmarks/joint_methods_page.py` from joint-methods.jsonl, one line per run of",
        "`python benchmarks/joint_methods.py`: same data, network, optimiser, budget and rule (last step) for all. Per cent.",
        "",
    ]
    page += ["## Colored MNIST (PGD's protocol, 54,000 rows, convnet1, 20 epochs)", ""]
    page += table([r for r in lines if r["suite"] == "colored-mnist"], PGD, ("aligned", "conflicting"))
    page += ["## A small Biased MNIST (7x7 pixels, half the channels, 3,500 steps of 128 rows)", ""]
    page += table([r for r in lines if r["suite"] == "biased-mnist"], REBIAS, ("biased", "unbiased"))
    notes = RESULTS / "joint-methods-notes.md"
    page += [notes.read_text(encoding="utf-8")] if notes.is_file() else []
    (RESULTS / "joint-methods.md").write_text("\n".join(page), encoding="utf-8")


def table(rows, published, what):
    first, second = what
    out = [
        f"| ratio | method | seeds | {first} | {second} | published {first} | published {second} |",
        "|---|---|---|---|---|---|---|",
    ]
    for ratio in sorted({r["ratio"] for r in rows}):
        mine = [r for r in rows if r["ratio"] == ratio]
        for name in dict.fromkeys((r["name"], str(r["set"] or "")) for r in mine):
            part = [r for r in mine if (r["name"], str(r["set"] or "")) == name]
            there = published.get(ratio, {}).get(name[0]) if not name[1] else None
            values = [shown([100 * r[w] for r in sorted(part, key=lambda r: r["seed"])]) for w in what]
            label = f"{name[0]} {' '.join(f'{k}={v}' for k, v in part[0]['set'].items())}".strip()
            known = [f"{v:.1f}" for v in there] if there else ["–", "–"]
            out.append(f"| {ratio:g} | {label} | {len(part)} | {values[0]} | {values[1]} | {known[0]} | {known[1]} |")
    return [*out, ""]


def shown(values):
    """The mean, and each seed's where there are several."""
    each = f" ({', '.join(f'{v:.1f}' for v in values)})" if len(values) > 1 else ""
    return f"{mean(values):.1f}{each}"


if __name__ == "__main__":
    main()
