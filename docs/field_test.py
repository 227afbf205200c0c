"""The page of the field test, from its committed results.

`python -m docs.field_test FOLDER` adds the results of a bench folder, or of a folder of `unskew auto` on one of the suite's sets. make docs
writes the page again from docs/results/field-test.csv.
"""

import csv
import json
import statistics
import sys
import textwrap
import tomllib
from pathlib import Path

HERE = Path(__file__).parent / "results"
TABLE = HERE / "field-test.csv"
FIGURES = ("worst_group", "conflicting", "aligned", "class_balanced")
COLUMNS = (*FIGURES, "f1_macro")  # the last one for several labels per row
TWO = ("ground", "tint")  # the shortcuts of places-two: for each, aligned minus conflicting accuracy
ENDED = ("collapsed", "inverted")  # what a run must not end as; empty: neither; "?": the run's folder is gone
MORE = (*TWO, "ended")
WORST_GROUP = ("places", "places-two")  # families whose every test group has at least 30 rows, as the suite says
UNBIASED = ("0.5", "0.1", "0.125", "0.16667", "0.2", "1")
SEVERAL = "tiles"  # several labels per row: its figure is F1, and it has a table of its own
KNOWN = ("group_dro", "dfr")
METHODS = ("erm", "plain", "advised", "auto", "last_layer", "independence", "repair", "ccdb", "pgd", "jtt", "lff", *KNOWN)
# Candidates of auto that have a row: neutralise has none, but advised may be it; or a last layer, balanced or plain, or independence.
CANDIDATES = ("erm", "last_layer", "independence", "repair", "ccdb", "pgd", "jtt", "advised")
ALWAYS = ("auto", "erm", "pgd", "last_layer")  # whose regret is shown
SUITE = tomllib.loads((Path(__file__).parent.parent / "unskew" / "suites" / "field-test.toml").read_text(encoding="utf-8"))
Rows = list[dict[str, str]]


def collect(folder: Path) -> None:
    """Merge the results of a folder into the table; a run that is already there is replaced."""
    rows = {(r["data"], r["at"], r["method"], r["seed"]): r for r in read()}
    if (folder / "auto.json").is_file():
        one = of_auto(folder)
        rows[one["data"], one["at"], one["method"], one["seed"]] = one
    benched = [] if (folder / "auto.json").is_file() else sorted((folder / "results").glob("*.json"))
    for path in benched:
        one = json.loads(path.read_text(encoding="utf-8"))
        figures = {name: "" if one["figures"].get(name) is None else f"{100 * one['figures'][name]:.2f}" for name in COLUMNS}
        key = (one["data"], one["at"], one["name"], str(one["seed"]))
        names = ("data", "at", "method", "seed")
        about = {"seconds": f"{one['seconds']:.0f}", "commit": one["commit"]}
        rows[key] = dict(zip(names, key, strict=True)) | figures | judged(folder / "runs" / path.stem / "run") | about
    with open(TABLE, "w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, ("data", "at", "method", "seed", *COLUMNS, *MORE, "seconds", "commit"), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[key] for key in sorted(rows))


def judged(run: Path) -> dict[str, str]:
    """What the judgement of a run says beyond its figures."""
    try:
        found = json.loads((run / "metrics-test.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return dict.fromkeys(TWO, "") | {"ended": "?"}
    by_bias = found.get("by_bias", {})
    gaps = {name: 100 * (by_bias[name]["aligned"] - by_bias[name]["conflicting"]) for name in TWO if len(by_bias) > 1}
    ended = " ".join(kind for kind in found["verdict"]["kinds"] if kind in ENDED)
    return {name: f"{gaps[name]:.2f}" if name in gaps else "" for name in TWO} | {"ended": ended}


def of_auto(folder: Path) -> dict[str, str]:
    """The row of the model that `unskew auto` recommends, in the suite's terms."""
    found = json.loads((folder / "auto.json").read_text(encoding="utf-8"))
    chosen = next(f for f in found["finalists"] if f["name"] == found["recommended"])
    data, at = place_of(found["source"], found["seed"])
    values = {name: chosen["test"][name]["value"] for name in FIGURES}
    figures = {name: "" if value is None else f"{100 * value:.2f}" for name, value in values.items()}
    about = {"data": data, "at": at, "method": "auto", "seed": str(found["seed"])}
    more = {"f1_macro": ""} | dict.fromkeys(TWO, "") | {"ended": "?"}
    return {**about, **figures, **more, "seconds": f"{found['seconds']:.0f}", "commit": found["commit"]}


def place_of(source: str, seed: int) -> tuple[str, str]:
    """The data set and the alignment of the suite whose source this is."""
    for data, entry in SUITE["data"].items():
        for at in entry["at"]:
            if entry["source"].format(at=at, seed=seed) == source:
                return data, at
    raise SystemExit(f"{source} with seed {seed} is not in the suite field-test")


def read() -> Rows:
    rows = csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines()) if TABLE.is_file() else []
    return [{"f1_macro": "", "ended": "?"} | dict.fromkeys(TWO, "") | row for row in rows]


def metric(data: str, at: str) -> str:
    return "class_balanced" if at in UNBIASED else "worst_group" if data in WORST_GROUP else "conflicting"


def cell(rows: Rows, data: str, at: str, method: str, figure: str) -> list[float]:
    return [float(r[figure]) for r in rows if (r["data"], r["at"], r["method"]) == (data, at, method) and r[figure]]


def page() -> str:
    rows = read()
    every = sorted({(r["data"], r["at"]) for r in rows}, key=lambda c: (c[0], c[1] in UNBIASED, c[1]))
    cells = [c for c in every if c[0] != SEVERAL]
    seeds = sorted({r["seed"] for r in rows})
    lines = [
        "# Field test",
        "",
        "Default commands, each set with a planted shortcut at two strengths and without one. The rules were set while looking at seed 0",
        "of all families (of places-two, also at seed 1 and 95 %), so other seeds are the held-out judgement, on the same families. Made",
        "by `make docs` from [field-test.csv](field-test.csv), which has every run with its commit; the runs are those of",
        "",
        "    unskew bench field-test --scale small --out field",
        "    python -m docs.field_test field",
        "",
        f"Seeds so far: {', '.join(seeds)}. Per cent; with several seeds, the mean and half the range. The metric is the worst group of",
        "places and places-two, the conflicting rows of the others, and class-balanced accuracy of unbiased twins. group_dro and dfr",
        "know the shortcut. A dash: not run yet, or refused by a guard.",
        "",
        f"| set | alignment | {' | '.join(METHODS)} |",
        f"|---|---|{'---:|' * len(METHODS)}",
    ]
    for data, at in cells:
        shown = [_shown(cell(rows, data, at, method, metric(data, at))) for method in METHODS]
        lines.append(f"| {data} | {'unbiased' if at in UNBIASED else f'{100 * float(at):g} %'} | {' | '.join(shown)} |")
    several = [c for c in every if c[0] == SEVERAL]
    return "\n".join(
        [
            *lines,
            "",
            *_verdicts(rows, cells),
            "",
            *_two(rows),
            *(_several(rows, several) if several else []),
            *_regret(rows, cells),
            "",
        ]
    )


def _two(rows: Rows) -> list[str]:
    """Reliance on each of two shortcuts: repairing one must not feed the other."""
    ats = [at for at in SUITE["data"]["places-two"]["at"] if any(r["at"] == at and r[TWO[0]] for r in rows)]
    if not ats:
        return []
    methods = [m for m in METHODS if any(r["method"] == m and r[TWO[0]] for r in rows)]
    lines = [
        "## Two shortcuts at once",
        "",
        "places-two: accuracy where a shortcut agrees with the class minus accuracy where it does not, in points, for each of the two by",
        "itself; the other one agrees with the class in half of both. 0: not used. A method that ends one by leaning on the other would",
        "have more of the other than erm.",
        "",
        f"| alignment | shortcut | {' | '.join(methods)} |",
        f"|---|---|{'---:|' * len(methods)}",
    ]
    for at in ats:
        for name in TWO:
            shown = [_shown(cell(rows, "places-two", at, method, name)) for method in methods]
            lines.append(f"| {'unbiased' if at in UNBIASED else f'{100 * float(at):g} %'} | {name} | {' | '.join(shown)} |")
    return [*lines, ""]


def _several(rows: Rows, cells: list[tuple[str, str]]) -> list[str]:
    """The set with several labels per row."""
    methods = SUITE["data"][SEVERAL]["methods"]
    lines = [
        "## Several labels per row",
        "",
        "F1, mean over labels, of methods that take several labels; test rows are drawn like training rows, so this is what a method",
        "costs. What it gains is a matter of leakage: [leakage-tiles.md](leakage-tiles.md).",
        "",
        f"| set | labels with the person | {' | '.join(methods)} |",
        f"|---|---|{'---:|' * len(methods)}",
    ]
    for data, at in cells:
        shown = [_shown(cell(rows, data, at, method, "f1_macro")) for method in methods]
        lines.append(f"| {data} | {SUITE['data'][data]['at'][at]} | {' | '.join(shown)} |")
    return [*lines, ""]


def _shown(values: list[float]) -> str:
    if not values:
        return "–"
    spread = f" ± {(max(values) - min(values)) / 2:.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{spread}"


def _verdicts(rows: Rows, cells: list[tuple[str, str]]) -> list[str]:
    """What the issue of the defaults asks: gaps closed, and harm where there is nothing to close."""
    closed, lost, harm = [], [], []
    for data, at in cells:
        mean = {m: statistics.mean(v) for m in METHODS if (v := cell(rows, data, at, m, metric(data, at)))}
        base, known = (max((mean[m] for m in names if m in mean), default=None) for names in (("erm", "plain"), KNOWN))
        if base is None or known is None or "advised" not in mean:
            continue
        if at in UNBIASED:
            harm.append((data, mean["advised"] - base))
        elif known - base >= 10:
            closed.append((f"{data} {100 * float(at):g} %", (mean["advised"] - base) / (known - base)))
        else:
            lost.append((f"{data} {100 * float(at):g} %", mean["advised"] - base))
    half = sum(share >= 0.5 for _, share in closed)
    known_end = [r for r in rows if r["ended"] != "?"]
    badly = [f"{r['method']} on {r['data']} {r['at']}, seed {r['seed']} ({r['ended']})" for r in known_end if r["ended"]]
    return [
        "## What it says",
        "",
        "erm is the better of erm and plain; known groups the better of group_dro and dfr.",
        "",
        f"- Where known groups beat erm by 10 points or more, `advised` closes at least half of the gap in {half} of {len(closed)} cells:",
        *(f"  - {name}: {100 * share:.0f} % of the gap" for name, share in closed),
        *_wrapped("- Elsewhere it gains or loses, in points: " + (_points(lost) or "no such cell") + "."),
        *_wrapped(f"- On unbiased twins class-balanced accuracy changes by, in points: {_points(harm)}."),
        *_wrapped(
            f"- Ended inverted or collapsed to one class, of {len(known_end)} runs whose verdict is kept: {'; '.join(badly) or 'none'}."
        ),
    ]


def _points(found: list[tuple[str, float]]) -> str:
    return ", ".join(f"{name} {value:+.1f}" for name, value in found)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 130, subsequent_indent="  ", break_on_hyphens=False)


def regrets(rows: Rows, data: str, at: str) -> dict[str, float] | None:
    """The best candidate's figure minus that of each way to choose, in points, where auto has been run; the mean over its seeds."""
    figure, seeds = metric(data, at), sorted({r["seed"] for r in rows if (r["data"], r["at"], r["method"]) == (data, at, "auto")})
    found: dict[str, list[float]] = {}
    for seed in seeds:
        values = {
            r["method"]: float(r[figure]) for r in rows if (r["data"], r["at"], r["seed"]) == (data, at, seed) and r[figure]
        }
        best = max(values[name] for name in (*CANDIDATES, "auto") if name in values)
        for name in ALWAYS:
            if name in values:
                found.setdefault(name, []).append(best - values[name])
    return {name: statistics.mean(values) for name, values in found.items()} or None


def _regret(rows: Rows, cells: list[tuple[str, str]]) -> list[str]:
    """What `auto` lost by not knowing the best candidate, in the half that its rules were chosen on and in the other."""
    lines = [
        "## Regret of `unskew auto`",
        "",
        "The best candidate's figure minus that of the model that was chosen, in points: 0 is best. Beside it, always training the same",
        f"way. Candidates with a row: {', '.join(CANDIDATES)} (a last layer,",
        "independence or neutralise, so it counts as one where those were not run on their own). Rules were chosen on the half",
        "*tuned*; the half *reported* was named in the suite before auto was run on any of its sets. Only cells with a run of auto are",
        "listed; a candidate that was not run there, as the table above shows, may be better than all that were.",
        "",
        f"| half | set | alignment | best candidate | {' | '.join(n if n == 'auto' else f'always {n}' for n in ALWAYS)} |",
        f"|---|---|---|---|{'---:|' * len(ALWAYS)}",
    ]
    for half, names in SUITE["halves"].items():
        listed = [(data, at) for data, at in cells if data in names and regrets(rows, data, at)]
        for data, at in listed:
            found = regrets(rows, data, at) or {}
            values = {m: statistics.mean(v) for m in CANDIDATES if (v := cell(rows, data, at, m, metric(data, at)))}
            best = max(values, key=lambda name: values[name]) if values else "–"
            shown = [f"{found[name]:.1f}" if name in found else "–" for name in ALWAYS]
            alignment = "unbiased" if at in UNBIASED else f"{100 * float(at):g} %"
            lines.append(f"| {half} | {data} | {alignment} | {best} | {' | '.join(shown)} |")
        if not listed:
            lines.append(f"| {half} | not run yet: {', '.join(names)} | | | {' | '.join('–' for _ in ALWAYS)} |")
    known, harm = [], []
    for data, at in cells:
        mean = {m: statistics.mean(v) for m in METHODS if (v := cell(rows, data, at, m, metric(data, at)))}
        if "auto" in mean and at in UNBIASED and "erm" in mean:
            harm.append(f"{data} {mean['auto'] - mean['erm']:+.1f}")
        elif "auto" in mean and at not in UNBIASED and any(m in mean for m in KNOWN):
            known.append(f"{data} {100 * float(at):g} % {mean['auto'] - max(mean[m] for m in KNOWN if m in mean):+.1f}")
    return [
        *lines,
        "",
        *_wrapped(
            f"- Beside the better of group_dro and dfr, which know the groups, auto is at, in points: {', '.join(known) or 'not run yet'}."
        ),
        *_wrapped(
            f"- On unbiased twins its class-balanced accuracy beside that of erm, in points: {', '.join(harm) or 'not run yet'}."
        ),
    ]


if __name__ == "__main__":
    collect(Path(sys.argv[1]))
