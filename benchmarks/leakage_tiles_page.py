"""docs/results/leakage-tiles.md and its plane from the lines of benchmarks/leakage_tiles.py."""

import json
import statistics
from pathlib import Path

import polars as pl

from unskew.report.charts import plane

RESULTS = Path(__file__).parent.parent / "docs/results"
PUBLISHED = {  # Wang et al. 2019, Tables 1 and 4, COCO: F1, mAP, lambda_M, lambda_D(F1), Delta
    "erm": (53.75, 58.23, 70.46, 60.53, 9.93),
    "adversarial-last": (52.54, 56.35, 64.92, 60.35, 4.57),
    "adversarial-middle": (51.08, 55.18, 66.66, 60.12, 6.54),
    "adversarial-image": (52.82, 56.14, 68.49, 60.47, 8.02),
    "alpha1": (42.89, 48.23, 63.22, 52.85, 10.37),
    "alpha1-adversarial-last": (38.98, 43.71, 54.91, 52.40, 2.51),
    "black": (41.81, 47.42, 64.00, 58.71, 5.29),
    "blur": (50.26, 55.06, 68.19, 59.99, 8.20),
    "rba": (51.28, 56.46, 73.31, 60.16, 13.15),
}
COLUMNS = ("f1", "average_precision", "model", "dataset_at_f1", "amplification")


def main() -> None:
    lines = [json.loads(line) for line in (RESULTS / "leakage-tiles.jsonl").read_text(encoding="utf-8").splitlines()]
    order = list(dict.fromkeys(["erm", *PUBLISHED, *sorted(line["name"] for line in lines)]))
    by_name = {name: [line for line in lines if line["name"] == name] for name in order}
    text = [
        "# Leakage on tiles",
        "",
        "Made by `python benchmarks/leakage_tiles.py` and `python benchmarks/leakage_tiles_page.py`.",
        "",
    ]
    text += [
        "Mean over seeds, spread in brackets, per cent; intervals of one seed are in the JSON lines. Published: COCO, Wang et al. 2019,",
        "Tables 1 and 4 (black: their blackout-box; rba: on their CRF, whose own Delta is 12.85).",
        "",
        "| variant | seeds | F1 | mAP | λ_M | λ_D(F1) | Δ | lowest end of Δ's intervals | published F1, mAP, λ_M, λ_D(F1), Δ |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    points = []
    for name, found in by_name.items():
        if not found:
            continue
        cells = [spread([100 * line[c] for line in found]) for c in COLUMNS]
        published = ", ".join(f"{v:g}" for v in PUBLISHED[name]) if name in PUBLISHED else ""
        lowest = f"{100 * min(line['low'] for line in found):.1f}"
        text.append(f"| {name} | {len(found)} | {' | '.join(cells)} | {lowest} | {published} |")
        noise = float(name.removeprefix("noise-")) if name.startswith("noise-") else 0.0
        point = {k: statistics.mean(line[f] for line in found) for k, f in (("f1", "f1"), ("delta", "amplification"))}
        point |= {k: statistics.mean(line[k] for line in found) for k in ("low", "high")}
        points.append({"run": "erm" if noise else name, "noise": noise, **point})
    masked = by_name["adversarial-image"]
    if masked:
        means = {k: spread([line[f"mask_{k}"] for line in masked], 3) for k in ("person", "objects", "background")}
        text += [
            "",
            f"Mean of the mask (1: all stays): person {means['person']}, objects {means['objects']}, background {means['background']}.",
        ]
    balanced = by_name["alpha1"]
    if balanced:
        kept = spread([line["kept"] for line in balanced], 0)
        text += [
            "",
            f"λ_D of the test labels {spread([100 * line['dataset'] for line in by_name['erm']])}; of the α = 1 training rows "
            f"{spread([100 * line['dataset_balanced'] for line in balanced])}, {kept} of 12,000 rows kept.",
        ]
    (RESULTS / "leakage-tiles.svg").write_text(plane(points), encoding="utf-8")
    text += ["", "![F1 against amplification; diamonds: noise on the embedding of erm](leakage-tiles.svg)", ""]
    notes = RESULTS / "leakage-tiles-notes.md"
    text += [notes.read_text(encoding="utf-8").strip(), ""] if notes.is_file() else []
    (RESULTS / "leakage-tiles.md").write_text("\n".join(text), encoding="utf-8")
    print(pl.DataFrame(points))


def spread(values, digits=1):
    mean = f"{statistics.mean(values):.{digits}f}"
    return f"{mean} ({statistics.stdev(values):.{digits}f})" if len(values) > 1 else mean


if __name__ == "__main__":
    main()
