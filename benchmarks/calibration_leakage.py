"""Can the interval of leakage be trusted? Labels whose leakage is known, many seeds, short attackers.

    python -m benchmarks calibration_leakage [--seeds 200] [--out docs/results/calibration.md]

Labels balanced exactly leak one half: in classes, in sets of labels, or label by label; as networks see them, and as a table of
counts. Beside them labels that are independent of the column, and labels that leak 65 %. Finished rows are kept in a CSV beside
the table, from which an interrupted run resumes.
"""

import argparse
import csv
import statistics
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.calibration import write_section
from unskew.measure import Attack, dataset_leakage

ROWS = 2000
SHORT = {"rounds": 5, "hidden": 32, "lr": 2e-3, "epochs": 6, "min_steps": 0}
TITLE = "# Calibration of leakage"


def classes(g: torch.Generator) -> tuple[Tensor, Tensor]:
    """100 classes with ten rows of each value."""
    return torch.arange(ROWS) // 2 % 100, torch.arange(ROWS) % 2


def sets(g: torch.Generator) -> tuple[Tensor, Tensor]:
    """30 labels; every set of them occurs as often with either value."""
    x = (torch.rand(ROWS // 2, 30, generator=g) < 0.2).float()
    return torch.cat([x, x]), torch.arange(ROWS) // (ROWS // 2)


def one_by_one(g: torch.Generator) -> tuple[Tensor, Tensor]:
    """30 labels; every single one of them occurs as often with either value, sets of them do not."""
    x, a = sets(g)
    other = [column[torch.randperm(ROWS // 2, generator=g)] for column in x[ROWS // 2 :].T]
    return torch.cat([x[: ROWS // 2], torch.stack(other, 1)]), a


def two_by_two(g: torch.Generator) -> tuple[Tensor, Tensor]:
    return torch.arange(ROWS) // 2 % 2, torch.arange(ROWS) % 2


def independent_sets(g: torch.Generator) -> tuple[Tensor, Tensor]:
    return (torch.rand(ROWS, 30, generator=g) < 0.2).float(), torch.randint(0, 2, (ROWS,), generator=g)


def independent_classes(g: torch.Generator) -> tuple[Tensor, Tensor]:
    return torch.randint(0, 8, (ROWS,), generator=g), torch.randint(0, 2, (ROWS,), generator=g)


def leaking(g: torch.Generator) -> tuple[Tensor, Tensor]:
    """Five classes; the likelier value is right in (0.3 + 0.25 + 0.2 + 0.25 + 0.3) / 2 = 65 % of the rows."""
    a = torch.randint(0, 2, (ROWS,), generator=g)
    chances = torch.tensor([[0.3, 0.25, 0.2, 0.15, 0.1], [0.1, 0.15, 0.2, 0.25, 0.3]])
    return torch.multinomial(chances[a], 1, generator=g).flatten(), a


CASES = {  # labels, attacker, protocol, true leakage
    "balanced: 100 classes": (classes, "network", "paper", 0.5),
    "balanced: sets of 30 labels": (sets, "network", "paper", 0.5),
    "balanced: 30 labels, one by one": (one_by_one, "network", "paper", 0.5),
    "balanced: 2 x 2": (two_by_two, "table", "paper", 0.5),
    "balanced: 100 classes, folded": (classes, "network", "code", 0.5),
    "independent: sets of 30 labels": (independent_sets, "network", "paper", 0.5),
    "independent: 8 classes": (independent_classes, "table", "paper", 0.5),
    "leaking: 5 classes": (leaking, "network", "paper", 0.65),
    "leaking: 5 classes, table": (leaking, "table", "paper", 0.65),
}


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--seeds", type=int, default=200)
    words.add_argument("--out", type=Path, default=Path("docs/results/calibration.md"))
    given = words.parse_args()
    record = given.out.with_name("calibration-leakage.csv")
    done = {}
    if record.exists():
        with open(record, newline="") as file:
            done = {(r["case"], int(r["seed"])): r for r in csv.DictReader(file)}
    with open(record, "a", newline="") as file:
        out = csv.DictWriter(file, ["case", "seed", "found", "low", "high"])
        if not done:
            out.writeheader()
        for case, (make, attacker, protocol, _) in CASES.items():
            for seed in range(given.seeds):
                if (case, seed) in done:
                    continue
                attack = Attack(attacker=attacker, protocol=protocol, **SHORT)
                e = dataset_leakage(*make(torch.Generator().manual_seed(seed)), attack=attack, seed=seed)
                row = {"case": case, "seed": seed, "found": round(e.value, 5), "low": round(e.low, 5), "high": round(e.high, 5)}
                out.writerow(row)
                file.flush()
                done[case, seed] = {k: str(v) for k, v in row.items()}
    write_section(given.out, TITLE, table(done, given.seeds))
    print(given.out.read_text(encoding="utf-8"))


def table(done: dict, seeds: int) -> str:
    lines = [
        TITLE,
        "",
        f"`make bench NAME=calibration_leakage` (`python -m benchmarks calibration_leakage --seeds {seeds}`): {ROWS:,} rows, two values,",
        f"five attackers of {SHORT['hidden']} hidden units and {SHORT['epochs']} epochs, or a table of counts. The single runs are in",
        "calibration-leakage.csv. Networks must cover exactly balanced labels in 92 to 98 % of the seeds: they are judged on drawn rows.",
        "A table of counts draws nothing and finds exactly 50 %. The folded protocol splits at random and cannot go below 50 %. Where",
        "labels are independent of the column the interval is conservative.",
        "",
        "| labels | attacker | protocol | true leakage | seeds | inside the 95 % interval | median width | mean estimate |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for case, (_, attacker, protocol, truth) in CASES.items():
        rows = [[float(r[k]) for k in ("low", "high", "found")] for (c, k), r in done.items() if c == case and k < seeds]
        inside = sum(low <= truth <= high for low, high, _ in rows) / len(rows)
        width = statistics.median(high - low for low, high, _ in rows)
        mean = statistics.mean(found for _, _, found in rows)
        lines.append(
            f"| {case} | {attacker} | {protocol} | {100 * truth:g} % | {len(rows)} | {100 * inside:.1f} % | {100 * width:.1f} points | "
            f"{100 * mean:.2f} % |"
        )
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
