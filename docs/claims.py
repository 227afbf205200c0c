"""Ten headline claims of the five papers, judged by the committed results: the page "What reproduces, and what does not".

A claim is a list of gaps, each a difference that the paper says is positive, taken seed by seed. It is *reproduced* if every gap is at
least the published one minus its spread, *same direction* if the 95 % interval of every gap over seeds lies above zero, otherwise *not
reproduced*; *not run yet* without data. Why a claim fails is written by hand into docs/results/claims.toml and stands beside it.
"""

import itertools
import math
import statistics
import textwrap
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from scipy.stats import t as student

from unskew.pages.results import frame, read_lines
from unskew.suites.figures import is_number, shown
from unskew.suites.reader import read

WHY = Path(__file__).parent / "results" / "claims.toml"
WIDTH = 140  # of a line
BETTER_SCALES = ("paper", "small")  # of results of one suite, the first that is there
REPRODUCED, SAME, NOT, UNKNOWN = "reproduced", "same direction", "not reproduced", "not run yet"
Values = dict[int, float]  # by seed


@dataclass(frozen=True)
class Results:
    """The results of one suite at one scale."""

    suite: str
    values: dict[tuple[str, str, str, str], Values]  # by data, at, method and figure; shares in per cent
    published: dict[tuple[str, str, str, str], tuple[float, float]]  # mean and spread (0 if not printed)

    def of(self, data: str, at: str, method: str, figure: str) -> Values:
        return self.values.get((data, at, method, figure), {})


@dataclass(frozen=True)
class Gap:
    """A difference that should be positive: seed by seed, and as published (NaN if the paper prints no number)."""

    name: str
    ours: list[float]
    published: float = math.nan
    spread: float = 0.0
    number: bool = False  # not a share in per cent

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the mean over seeds, by Student's t; without end for a single seed."""
        mean = statistics.mean(self.ours)
        if len(self.ours) < 2:
            return -math.inf, math.inf
        half = float(student.ppf(0.975, len(self.ours) - 1)) * statistics.stdev(self.ours) / math.sqrt(len(self.ours))
        return mean - half, mean + half

    @property
    def verdict(self) -> str:
        if not self.ours:
            return UNKNOWN
        if not math.isnan(self.published) and statistics.mean(self.ours) >= self.published - self.spread and len(self.ours) > 1:
            return REPRODUCED
        return SAME if self.interval[0] > 0 else NOT

    def words(self) -> str:
        digits = 3 if self.number else 1
        if not self.ours:
            return f"{self.name}: –"
        low, high = self.interval
        span = f" [{low:+.{digits}f}, {high:+.{digits}f}]" if len(self.ours) > 1 else " (one seed)"
        return f"{self.name}: {statistics.mean(self.ours):+.{digits}f}{span}"

    def published_words(self) -> str:
        return "" if math.isnan(self.published) else f"{self.name}: {self.published:+.{3 if self.number else 1}f}"


def difference(found: Results | None, name: str, better: tuple[str, str, str, str], worse: tuple[str, str, str, str]) -> Gap:
    """The gap between two rows, on the seeds that both have."""
    if found is None:
        return Gap(name, [])
    one, other = found.of(*better), found.of(*worse)
    ours = [one[seed] - other[seed] for seed in sorted(one.keys() & other.keys())]
    there = [found.published.get(row, (math.nan, 0.0)) for row in (better, worse)]
    return Gap(name, ours, there[0][0] - there[1][0], math.hypot(there[0][1], there[1][1]), is_number(better[3]))


@dataclass(frozen=True)
class Claim:
    number: int
    paper: str
    words: str
    gaps: Callable[["Found"], list[Gap]]


class Found:
    """Results by the name of their suite."""

    def __init__(self, files: Iterable[Path]) -> None:
        by_suite: dict[str, dict[str, Path]] = {}
        for path in files:
            first = read_lines(path)[0]
            by_suite.setdefault(first["suite"], {})[first["scale"]] = path
        self.paths = {
            suite: next(scales[s] for s in BETTER_SCALES if s in scales)
            for suite, scales in by_suite.items()
            if set(scales) & set(BETTER_SCALES)
        }

    def __call__(self, name: str) -> Results | None:
        if name not in self.paths:
            return None
        found, suite = read_lines(self.paths[name]), read(name)
        values: dict[tuple[str, str, str, str], Values] = {}
        for line in found:
            if line["value"]:
                key = (line["data"], line["at"], line["method"], line["figure"])
                values.setdefault(key, {})[int(line["seed"])] = shown(line["figure"], float(line["value"]))
        published = {
            (r["data"], r["at"], r["method"], r["figure"]): (r["published_mean"], r["published_spread"] or 0.0)
            for r in frame(suite, found)[0].to_dicts()
            if r["published_mean"] is not None
        }
        return Results(name, values, published)


def _repair_bias(found: Found) -> list[Gap]:
    of, data = found("repair-figure1"), "colored-mnist"
    bias, plain = "repair.bias_before", "plain"
    # Before any row is dropped, so every strategy gives the same; at .05 a threshold can leave a class without rows.
    falls = difference(of, "bias at sigma .05 over .2", (data, "0.05", "class_rank", bias), (data, "0.2", "class_rank", bias))
    driven = ("threshold", "rank", "class_rank", "sample")
    rise = [
        difference(of, f"grey accuracy, {m} over all rows, sigma .1", (data, "0.1", m, plain), (data, "0.1", "erm", plain))
        for m in driven
    ]
    return [falls, *rise]


def _static(found: Found) -> list[Gap]:
    row = ("moving-digits", "0.95")
    gap = difference(found("repair-table1"), "beta, 2-D over 3-D", (*row, "C2D", "beta"), (*row, "I3D", "beta"))
    return [Gap(gap.name, gap.ours, 0.198 - 0.116, 0.0, True)]  # the paper's average over its three sets


def _temporal(found: Found) -> list[Gap]:
    of, score = found("repair-table3"), "temporal.value"
    published = {"0.5": (1.92 - 1.79 + 2.25 - 2.07 + 3.68 - 3.56) / 3, "0.25": (1.96 - 1.78 + 2.31 - 2.08 + 3.83 - 3.59) / 3}
    gaps = []
    for at, theirs in published.items():
        row = ("moving-digits", at)
        gap = difference(of, f"score over random rows, keeping {at}", (*row, "repair", score), (*row, "random", score))
        gaps.append(Gap(gap.name, gap.ours, theirs, 0.0, True))
    return gaps


def _toy(found: Found) -> list[Gap]:
    return [difference(found("rebias-toy"), "rebias over erm", ("toy", "", "rebias", "plain"), ("toy", "", "erm", "plain"))]


def _biased_mnist(found: Found) -> list[Gap]:
    of, figure = found("rebias-table1"), "group_mean"

    def gap(at: str) -> Gap:
        row = ("biased-mnist", at)
        methods = [m for m in ("rebias", "rebias-10", "rebias-50") if of is not None and of.of(*row, m, figure)] or ["rebias"]
        every = [difference(of, f"{m} over erm at {at}", (*row, m, figure), (*row, "erm", figure)) for m in methods]
        return max(every, key=lambda g: statistics.mean(g.ours) if g.ours else -math.inf)

    level = gap("0.99")
    # Level: at most 2 points lost, so the loss is measured from there.
    kept = Gap(f"{level.name}, from 2 points below", [v + 2 for v in level.ours], level.published + 2, level.spread)
    return [gap("0.999"), gap("0.997"), gap("0.995"), kept]


def _capacity(found: Found) -> list[Gap]:
    texture, static = ("texture-shapes", "0.95"), ("moving-digits", "0.95")
    one = difference(found("rebias-table2"), "against BagNet", (*texture, "rebias", "plain"), (*texture, "erm", "plain"))
    two = difference(found("rebias-table3"), "against 2-D", (*static, "rebias", "plain"), (*static, "erm", "plain"))
    return [Gap(one.name, one.ours, 90.5 - 88.8, 1.8), Gap(two.name, two.ours, 22.4 - 18.9, 1.4)]


def _pgd_first(found: Found) -> list[Gap]:
    of, others = found("pgd-table1"), ("erm", "learned_mixin", "rubi", "rebias", "lff", "repair", "aflite")
    gaps = []
    for data in ("colored-mnist", "watermarked-mnist", "cartoon"):
        row = (data, "0.99")
        means = {m: statistics.mean(v.values()) for m in others if of is not None and (v := of.of(*row, m, "conflicting"))}
        next_best = max(means, key=lambda m: means[m], default="lff")
        name = f"{data} 99 %, pgd over {next_best}"
        gaps.append(difference(of, name, (*row, "pgd", "conflicting"), (*row, next_best, "conflicting")))
    return gaps


def _denoised(found: Found) -> list[Gap]:
    of, row = found("pgd-table2"), ("colored-mnist", "0.1")
    halves = [
        difference(of, figure, (*row, "denoise-pgd", figure), (*row, "pgd", figure)) for figure in ("aligned", "conflicting")
    ]
    ours = [(a + b) / 2 for a, b in zip(halves[0].ours, halves[1].ours, strict=True)]
    name = "(aligned + conflicting) / 2, a tenth of the labels wrong, pgd after de-noising over pgd"
    return [Gap(name, ours, (halves[0].published + halves[1].published) / 2, math.hypot(halves[0].spread, halves[1].spread) / 2)]


def _leakage(found: Found) -> list[Gap]:
    of = found("leakage-table4") or found("tiles")

    def zero(name: str, method: str) -> Gap:
        values = {} if of is None else of.of("tiles", "", method, "leakage.amplification")
        theirs = math.nan if of is None else of.published.get(("tiles", "", method, "leakage.amplification"), (math.nan, 0))[0]
        return Gap(name, [values[s] for s in sorted(values)], theirs)

    def less(name: str, method: str) -> Gap:
        rows = ("tiles", "", "erm", "leakage.model"), ("tiles", "", method, "leakage.model")
        return difference(of, name, *rows)

    noise = Gap("noise over the last layer's critic, leakage at equal F1", [] if of is None else _at_equal_f1(of))
    return [
        zero("amplification", "erm"), zero("amplification of the balanced set", "alpha1"),
        less("leakage, erm over last", "last"), noise, less("leakage, erm over the image mask", "image"),
    ]  # fmt: skip


def _at_equal_f1(found: Results) -> list[float]:
    """By seed: what plain training with noise leaks at the F1 of `last`, on the line between two strengths, less what last leaks."""
    names = ["erm", *sorted({m for _, _, m, _ in found.values if m.startswith("noise-")}, key=lambda m: float(m[6:]))]
    gaps = []
    for seed, f1 in found.of("tiles", "", "last", "f1_macro").items():
        curve = [
            (found.of("tiles", "", m, "f1_macro")[seed], found.of("tiles", "", m, "leakage.model")[seed])
            for m in names
            if seed in found.of("tiles", "", m, "f1_macro") and seed in found.of("tiles", "", m, "leakage.model")
        ]
        for (high, leaks_more), (low, leaks_less) in itertools.pairwise(curve):
            if low <= f1 <= high and high > low:
                at = leaks_less + (leaks_more - leaks_less) * (f1 - low) / (high - low)
                gaps.append(at - found.of("tiles", "", "last", "leakage.model")[seed])
                break
    return gaps


def _unlearn(found: Found) -> list[Gap]:
    of, data = found("lnl-figure4"), "colored-mnist"
    tried = [m for m in ("lnl", "lnl-mu-1") if of is not None and of.of(data, "0.02", m, "plain")] or ["lnl"]

    def mean(method: str) -> float:
        return statistics.mean(of.of(data, "0.02", method, "plain").values()) if of is not None and tried != ["lnl"] else 0.0

    best = max(tried, key=mean)
    ats = ("0.02", "0.03", "0.04", "0.05")
    over = [difference(of, f"{best} over erm at {at}", (data, at, best, "plain"), (data, at, "erm", "plain")) for at in ats]
    first, last = over[0], over[-1]
    more = Gap(
        "gain at .02 over gain at .05",
        [a - b for a, b in zip(first.ours, last.ours, strict=False)],
        first.published - last.published,
    )
    grey = difference(of, "from 5 points below grey at .02", (data, "0.02", best, "plain"), (data, "0.02", "gray", "plain"))
    return [*over, more, Gap(grey.name, [v + 5 for v in grey.ours], grey.published + 5)]


CLAIMS = (
    Claim(1, "REPAIR", "Colour bias falls with sigma, and grey accuracy rises after weight-driven resampling", _repair_bias),
    Claim(2, "REPAIR", "2-D networks depend on static content more than 3-D ones", _static),
    Claim(3, "REPAIR", "The temporal structure score rises with REPAIR", _temporal),
    Claim(4, "ReBias", "On the toy, ReBias takes unbiased accuracy from 55 to 89 %", _toy),
    Claim(5, "ReBias", "rebias is above erm on Biased MNIST at .999, .997 and .995, and level at .99", _biased_mnist),
    Claim(6, "ReBias", "rebias is above erm against BagNet and against 2-D networks", _capacity),
    Claim(7, "PGD", "pgd is first on conflicting rows on all three sets", _pgd_first),
    Claim(8, "PGD", "De-noising restores what label noise took", _denoised),
    Claim(9, "Leakage", "Models amplify, balancing does not end it, a critic at the last layer or a mask at the image does", _leakage),
    Claim(10, "LNL", "lnl is above the baseline at every variance, more so as it falls, and near grey", _unlearn),
)  # fmt: skip


def verdict(gaps: list[Gap]) -> str:
    """The weakest verdict of the gaps; not run yet if one has no data."""
    order = (UNKNOWN, NOT, SAME, REPRODUCED)
    return min((gap.verdict for gap in gaps), key=order.index)


def page(files: Iterable[Path]) -> str:
    found = Found(files)
    why = tomllib.loads(WHY.read_text(encoding="utf-8")) if WHY.is_file() else {}
    judged = [(claim, claim.gaps(found)) for claim in CLAIMS]
    good = sum(verdict(gaps) in (REPRODUCED, SAME) for _, gaps in judged)
    lines = [
        "# What reproduces, and what does not",
        "",
        "Written by `make results` from the results files in this folder. Every claim is a list of gaps that the paper says are positive,",
        "taken seed by seed; points of accuracy or leakage, or the score itself, with the 95 % interval over seeds.",
        "",
        "- *reproduced*: every gap is at least the published one, less its published spread.",
        "- *same direction*: the interval of every gap lies above zero.",
        "- *not reproduced*: neither. *not run yet*: a gap has no results.",
        "",
        f"{good} of {len(CLAIMS)} are reproduced or in the same direction.",
        "",
    ]
    for claim, gaps in judged:
        lines += [f"## {claim.number}. {claim.words} ({claim.paper}): {verdict(gaps)}", ""]
        theirs = [words for gap in gaps if (words := gap.published_words())]
        lines += [*_folded("Published", theirs or ["no numbers are printed"]), *_folded("Ours", [gap.words() for gap in gaps])]
        because = f"- Why: {why[str(claim.number)]['why']}" if str(claim.number) in why else ""
        lines += textwrap.wrap(because, WIDTH, subsequent_indent="  ")
        lines.append("")
    return "\n".join(lines)


def _folded(title: str, parts: list[str]) -> list[str]:
    return [f"- {title}:", *(f"  - {part}" for part in parts)]
