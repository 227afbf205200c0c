"""What an audit calls what it measured: three kinds that are never mixed, in an order that puts the clearest first.

readable   the class can be read from it, above chance; it may show the class by right (the centre of the picture, or what the user
           expects)
question   readable, and nobody but the user can say whether it is a shortcut or part of what the class is
shortcut   readable, and it cannot be part of what the pictures show (how a file was made, a column of the table); or a simple model
           follows it: where it points to another class, that model is right less often than by chance; or it explains, within a
           class, which rows a simple model gets wrong, and a model that was balanced against it gains more there than it loses; or
           there is hardly anything else to learn: a pretrained network sees next to nothing of the class, and surely less than this
           tells
trace      readable, but hardly: less than 2 % of the label, or not surely more where it cannot be content and so cannot be asked about
clean      not told from chance
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core.matrix import Rows
from unskew.core.rng import stream
from unskew.features import Spec
from unskew.measure.overlap import left_over, overlap
from unskew.measure.representation_bias import BiasEstimate
from unskew.parts.answers import label
from unskew.parts.nuisance import simplest
from unskew.parts.trial import LIKELY, Trial
from unskew.records import Finding, hardly_followed
from unskew.stats.intervals import Z95, wilson
from unskew.stats.readers import class_balanced, held_out_logits, with_constant

TRACE = 0.02  # share of the label below which something is not worth a question
ORDER = ("shortcut", "question", "readable", "trace", "clean")
LEAST_MISLED = 20  # rows where a representation points to another class, below which nothing is said of them
NOTHING_MORE = 0.1  # of what a representation tells: below this share beyond another, the two are the same thing
ROWS = 2000  # enough to tell whether two representations are the same thing
WIDEST = 300  # numbers of a representation, above which its reader is fitted on as many principal axes
DECAYS = (1e-1, 1e-2)
MOST_QUESTIONS = 2
ANYTHING = "local"  # reads anything and so names nothing: it leads only if nothing else reads half as much
NUMBER = "number:"  # a part of the input itself
BLIND = 0.05  # of the label: a pretrained network that reads no more than this sees next to nothing of the class
FEW = 10  # rows without the shortcut, below which weighting cannot help


def kind_of(e: BiasEstimate, one: Spec, expected: bool, trial: Trial | None, lives_on_it: bool = False) -> str:
    """One of ORDER; `lives_on_it` says that a simple model follows this, or has nothing else to learn."""
    if not e.above_chance:
        return "clean"
    if e.bias < TRACE:
        return "trace"
    if one.content or expected:
        return "readable"
    if one.foreign:
        return "shortcut" if e.low >= TRACE else "trace"
    if one.kind.asked:
        return "question"
    if lives_on_it:
        return "shortcut"
    if trial is None or one.name not in trial.named:
        return "question"
    return "shortcut" if trial.helps(LIKELY) else "question"


def followed(e: BiasEstimate, index: Tensor, trial: Trial | None, classes: int) -> tuple[float | None, float | None, bool]:
    """The simple model's accuracy on rows where the reader points away from the class, its accuracy on the others, and whether the
    first is surely below chance.

    A model that reads the content is right about most of these rows. One that lives on this representation is wrong about them,
    more often than if it guessed.
    """
    if trial is None or trial.judged is None:
        return None, None, False
    ids, right = trial.judged
    misled = e.gain[torch.searchsorted(index, ids)] < 0  # both sorted; the trial's rows are among the audited ones
    there, others = right[misled], right[~misled]
    if min(len(there), len(others)) < LEAST_MISLED:
        return None, None, False
    surely = wilson(int(there.sum()), len(there))[1] < 1 / classes
    return float(there.double().mean()), float(others.double().mean()), surely


def nothing_else(e: BiasEstimate, index: Tensor, trial: Trial | None, name: str) -> float | None:
    """The share of the label that a pretrained network sees, if that is next to nothing and surely less than the reader tells; else None.

    The two are compared row by row. A probe that reads anything may read what the pictures show, so it is not asked.
    """
    if trial is None or trial.judged is None or trial.seen is None or name.startswith(ANYTHING):
        return None
    gain = e.gain[torch.searchsorted(index, trial.judged[0])]
    known = gain != 0  # of the others nothing is known: the probe kept them for itself
    if int(known.sum()) < 2:
        return None
    seen, more = float(trial.seen[known].mean()) / e.entropy, (gain - trial.seen)[known]
    surely = float(more.mean()) > Z95 * float(more.std()) / math.sqrt(len(more))
    return seen if seen < BLIND and surely else None


def describe(
    one: Spec,
    e: BiasEstimate,
    classes: Sequence[str],
    expected: Sequence[str] = (),
    trial: Trial | None = None,
    index: Tensor | None = None,
) -> Finding:
    """The finding for one representation, in numbers and in a sentence; `index` has the sample ids of the estimate's rows."""
    misled, elsewhere, follows = followed(e, index, trial, len(classes)) if index is not None else (None, None, False)
    seen = nothing_else(e, index, trial, one.name) if index is not None else None
    read = f"{100 * max(e.bias, 0):.0f} % of the label can be read from {one.phrase} alone"
    chance = "" if math.isnan(e.chance) else f"chance level {100 * max(e.chance, 0):.0f} %, "
    explains = {name: value for name, _, value in trial.nuisances} if trial else {}
    return Finding(
        name=one.name,
        label=label(one),
        phrase=one.phrase,
        bias=e.bias,
        low=e.low,
        high=e.high,
        chance=e.chance,
        chance_high=e.chance_high,
        verdict=kind_of(e, one, one.name in expected, trial, follows or seen is not None),
        content=one.content,
        foreign=one.foreign,
        sentence=f"{read}; {chance}95 % interval {100 * e.low:.0f} to {100 * e.high:.0f}.",
        per_class=dict(zip(classes, [*e.per_class, *[math.nan] * len(classes)], strict=False)),
        features=e.width,
        solved=float((e.gain > 0).sum()) / max(1, e.n),
        risk=e.risk,
        entropy=e.entropy,
        n=e.n,
        note=e.note,
        explains=explains.get(one.name),
        followed=misled,
        elsewhere=elsewhere,
        seen=seen,
    )


def ordered(findings: Sequence[Finding]) -> list[Finding]:
    """By kind, questions that cannot wait before the others, and then from the most readable on. The first is the most readable if it can
    never be part of the subject, and else the simplest of those that read nearly as much."""
    found: list[Finding] = []
    for kind in ORDER:
        of_kind = sorted((f for f in findings if f.verdict == kind), key=lambda f: -f.bias)
        if kind != "question":
            found += _simplest_first(of_kind) if kind == "shortcut" else of_kind
            continue
        for urgent in (True, False):
            found += _simplest_first([f for f in of_kind if pressing(f) == urgent])
    return found


def _simplest_first(mine: list[Finding]) -> list[Finding]:
    named = [f for f in mine if not f.name.startswith(ANYTHING)]
    if not named or named[0].bias < mine[0].bias / 2:
        return mine
    # What can never be part of the subject names what was found better than a simpler thing that it changes too.
    first = named[0] if named[0].foreign else simplest([(f.bias, f.features, f) for f in named])
    return [first, *(f for f in mine if f is not first)]


def grouped(findings: Sequence[Finding], features: Mapping[str, Rows], y: Tensor, classes: int, seed: int) -> list[Finding]:
    """The findings with `same_as`, `adds`, `left` and `contradicting` filled in for shortcuts and questions; y (n,) has one class."""
    some = torch.randperm(len(y), generator=stream(seed, "overlap"))[:ROWS]
    target = y[some]
    logits: dict[str, Tensor] = {}
    leaders: list[Finding] = []
    found = []
    for one in findings:
        if one.verdict not in ("shortcut", "question"):
            found.append(one)
            continue
        z = logits[one.name] = _read(features[one.name][some], target, classes, seed)
        told = z.abs().sum(1) > 0
        away = round(len(y) * float((z.argmax(1) != target)[told].double().mean()))
        filled = dataclasses.replace(one, contradicting=away)
        for leader in leaders:
            adds = overlap(z, logits[leader.name], target, seed=seed)
            left = left_over(z, logits[leader.name], target, seed=seed)
            if adds < NOTHING_MORE * max(one.bias, 0.05):
                filled = dataclasses.replace(filled, same_as=leader.name, adds=adds, left=left)
                break
        else:
            leaders.append(filled)
        found.append(filled)
    return found


def _read(features: Tensor, y: Tensor, classes: int, seed: int) -> Tensor:
    """Held-out logits of a linear reader; 0 for rows that a probe kept for itself, marked by NaN."""
    judged = ~features.isnan().any(1)
    if not bool(judged.all()):
        full = torch.zeros(len(y), classes)
        full[judged] = _read(features[judged], y[judged], classes, seed)
        return full
    x = with_constant(features)
    if x.shape[1] > WIDEST:
        u, s, _ = torch.linalg.svd(x[:, 1:], full_matrices=False)
        x = torch.cat([x[:, :1], (u * s)[:, :WIDEST]], 1)
    logits = held_out_logits(x, y, classes, DECAYS, weight=class_balanced(y), seed=seed)
    return logits[int(torch.stack([F.cross_entropy(z, y) for z in logits]).argmin())]


def leading(findings: Sequence[Finding]) -> list[Finding]:
    """Shortcuts and questions that are not another one in different clothes."""
    return [f for f in findings if f.verdict in ("shortcut", "question") and not f.same_as]


def pressing(f: Finding) -> bool:
    """Whether a question cannot wait: nothing was tried, or a simple model is wrong more often where this misleads."""
    return not hardly_followed(f.followed, f.elsewhere)


def verdict(findings: Sequence[Finding], rows: int) -> str:
    """The audit in a sentence or two: the first row of its table."""
    lead = leading(findings)
    measured = len(findings)
    if not lead:
        nothing = "The only probe found no" if measured == 1 else f"None of the {measured} probes found a"
        return f"{nothing} shortcut in {rows} rows; another kind may still be there."
    top, others = lead[0], lead[1:]
    read = f"{100 * top.bias:.0f} % of the label can be read from that alone"
    if top.verdict == "shortcut":
        why = ""
        if top.followed is not None and top.followed < 0.5:
            why = f", and a simple model follows it: right in {100 * top.followed:.0f} % of the rows where it points to another class"
        elif top.seen is not None:
            why = f"; a pretrained network reads hardly anything else from these pictures ({100 * max(0.0, top.seen):.0f} %)"
        elif top.explains:
            why = f", and it explains which rows a simple model gets wrong ({top.explains:.2f})"
        text = f"Shortcut: the class shows in {_phrase(top)}: {read}{why}."
    elif any(map(pressing, lead)):
        text = f"Shortcut or signal? The class shows in {_phrase(top)}: {read}. Only you can say whether it should."
    else:
        text = (
            f"None of the {measured} probes found a shortcut that a simple model goes by in {rows} rows. The class shows most in "
            f"{_phrase(top)}: {read}, but such a model is right in {100 * (top.followed or 0):.0f} % of the rows where it points to "
            f"another class, {100 * (top.elsewhere or 0):.0f} % elsewhere."
        )
    if top.contradicting is not None and top.contradicting < FEW:
        text += f" {_too_few(top)}"
    asked = [f for f in others if f.verdict == "question"]
    urgent = sum(pressing(f) for f in asked)
    counts = [("more shortcut", len(others) - len(asked)), ("more question", urgent)]
    more = [f"{n} {words}{'s' if n > 1 else ''}" for words, n in counts if n]
    if more:
        text += f" {' and '.join(more).capitalize()} below."
    if calm := len(asked) - urgent:
        thing, them = ("thing tells", "it") if calm == 1 else ("things tell", "them")
        text += f" {calm} more {thing} something of the class, but a simple model hardly goes by {them}."
    return text


def _too_few(f: Finding) -> str:
    rows = "No row lacks" if not f.contradicting else f"Only {f.contradicting} of {f.n} rows lack"
    return (
        f"{rows} it, so no weighting of the rows can help: collect rows in which it points to another class, or train with it "
        "neutralised."
    )


def questions(findings: Sequence[Finding]) -> list[str]:
    """What only the user can answer, each with the option that answers it; the most pressing ones in full, at least one."""
    open_ = sorted((f for f in leading(findings) if f.verdict == "question"), key=lambda f: not pressing(f))
    full = min(MOST_QUESTIONS, max(1, sum(map(pressing, open_))))
    asked = [
        f"Is {_phrase(f)} part of what makes the class? {f.sentence} If so, say --expect {_word(f)}; the answer is remembered.{_if_not(f)}"
        for f in open_[:full]
    ]
    rest = open_[full:]
    if not rest:
        return asked
    many = f"{_phrase(rest[0])} is" if len(rest) == 1 else f"{len(rest)} more are"
    return [*asked[:-1], f"{asked[-1]} In the table, {many} asked about in the same way, by the small name there."]


def _if_not(f: Finding) -> str:
    """What to do against a single number, which no trial tries; a trial on pictures says what helps there."""
    if not f.name.startswith(NUMBER):
        return ""
    return f" If not, unskew repair SOURCE --with repair phi={f.name} makes weights that balance it."


def _phrase(f: Finding) -> str:
    return f.phrase or f"the {f.label or f.name}"


def _word(f: Finding) -> str:
    return f.name if " " not in f.name and "," not in f.name else f"'{f.name}'"


def overlaps(findings: Sequence[Finding]) -> str:
    """Which findings are the same thing, in words; empty if there is at most one."""
    lead = leading(findings)
    if not lead:
        return ""
    count = f"{len(lead)} separate thing{'s' if len(lead) > 1 else ''} can be read"
    told = []
    for f in lead:
        same = [g.label or g.name for g in findings if g.same_as == f.name]
        if same:
            verb = "tells" if len(same) == 1 else "tell"
            told.append(f"{_listed(same)} {verb} nothing that {_phrase(f)} does not")
    return f"{count}: {'; '.join(told)}." if told else f"{count}." if len(lead) > 1 else ""


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
