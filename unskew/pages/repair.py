"""The page of a repair: what was kept, how groups and bias changed, and the samples with the highest and lowest scores."""

import shlex
from dataclasses import dataclass
from typing import Any

import torch

from unskew.core.files import plain
from unskew.data.dataset import DataSet
from unskew.pages.charts import INK, NOTHING, Drawing, draw
from unskew.pages.first import BAD, DOUBT, GOOD, INFO, First, Number, Side, Todo, change, in_two, sorted_changes, spread
from unskew.pages.html import page
from unskew.pages.samples import Sample, enlarged, path_of, sample
from unskew.records import Composition, Measured, Repaired
from unskew.repairs._contract import Outcome

PICTURES = 6  # of each class, at each end
CLASSES = 12
POINTS = 4000  # in the loss-entropy chart
TRUTH = {  # colours of rows in charts
    "aligned": "#62b2a5", "conflicting": "#4a6fa5", "neither": "#a9b1b8", "right label": "#62b2a5", "wrong label": "#de6e56",
    "clean": "#62b2a5", "noisy": "#de6e56",
}  # fmt: skip
SHORTCUT = 0.1  # a bias worth removing
LEAST_GAIN = 0.2  # share of that bias which a repair should remove
FEW_LEFT = 0.1  # share of the rows that effective ones are; below it, the price is high
LEAST_SHARE = 0.2  # part of a class's share of the rows that should stay


def gallery(data: DataSet, outcome: Outcome) -> dict[str, Any]:
    """The samples with the highest and the lowest score of each class."""
    if len(data.shape) != 3 or data.multi_label:
        return {"reason": "inputs are not images" if len(data.shape) != 3 else "rows have several labels", "samples": []}
    y, shown = data.y[outcome.index], list[tuple[int, str]]()
    for c in torch.unique(y).tolist()[:CLASSES]:
        places = (y == c).nonzero().flatten()
        order = places[outcome.score[places].argsort(descending=True, stable=True)].tolist()
        ends = {"lowest scores": order[-PICTURES:][::-1], "highest scores": order[:PICTURES]}
        shown += [(k, name) for name, end in ends.items() for k in end]
    rows = outcome.index[[k for k, _ in shown]].tolist()
    pictures = enlarged(data, rows)
    samples = [
        sample(
            i, data.classes[int(data.y[i])], pictures[i], path=path_of(data, i), score=float(outcome.score[k]), kind=kind,
            facts=[("weight", f"{float(outcome.weight[k]):.3g}")],
        )
        for (k, kind), i in zip(shown, rows, strict=True)
    ]  # fmt: skip
    return {"reason": "", "samples": samples}


@dataclass(frozen=True)
class RepairPage:
    """Everything that the page of a repair shows."""

    found: Repaired
    gallery: dict[str, Any]
    outcome: Outcome
    truth: list[str] | None = None  # of every row of the outcome, where it is known

    def render(self) -> str:
        repair, drawn = plain(self.found.json()), histogram(self.outcome.score, self.truth)
        return page(
            "repair.html", kind="repair", name=f"{repair['repair']} of {repair['data']['name']}", about=f"{repair['rows']} rows judged",
            first=first_of(repair, self.gallery["samples"], drawn), repair=repair, gallery=self.gallery, histogram=drawn,
            plane=plane(self.outcome, self.truth),
            footer=f"unskew {repair['unskew']} · every figure here is in the JSON beside this page, every sample's weight in the table",
        )  # fmt: skip


def first_of(repair: dict[str, Any], samples: list[Sample], drawn: Drawing) -> First:
    """The first screen: what can still be read, what is left of the rows, and samples of both ends."""
    sentence, more = in_two(repair["verdict"])
    tone = {"removed": GOOD, "less": GOOD, "hardly less": DOUBT, "more": BAD, "reversed": BAD}.get(repair["change"], INFO)
    few = repair["effective"] is not None and repair["effective"] < FEW_LEFT * repair["rows"]
    tone = BAD if repair["harms"] else DOUBT if tone == GOOD and (more or few) else tone
    numbers = []
    for measured in repair["representations"][:1]:
        before, after = measured["before"]["bias"], measured["after"]["bias"]
        if before is not None and after is not None:
            shares = " → ".join(f"{100 * max(v, 0.0):.0f}" for v in (before, after)) + " %"
            numbers.append(
                Number(
                    value=shares,
                    label=f"of the label can be read from {measured.get('phrase') or measured['name']}",
                    note="before → after",
                )
            )
    numbers.append(Number(value=f"{repair['kept']}", label="rows kept", note=f"of {repair['rows']}"))
    if repair["effective"] is not None:
        numbers.append(
            Number(value=f"{repair['effective']:.0f}", label="effective rows", note="as many of equal weight tell as much")
        )
    ends = [[s for s in samples if s["kind"] == kind] for kind in ("lowest scores", "highest scores")]
    sides = [Side(title=end[0]["kind"].capitalize(), samples=spread(end)) for end in ends if end]
    gained, lost = _balance(repair)
    todo = _todo(repair)
    return First(
        tone=tone, sentence=sentence, more=more, numbers=numbers, sides=sides, chart=NOTHING if sides else drawn, todo=todo,
        gained=gained, lost=lost,
    )  # fmt: skip


def _todo(repair: dict[str, Any]) -> list[Todo]:
    """Train with the weights, unless they harm; if they change next to nothing, look for what they should change."""
    if repair["harms"]:
        return []
    if repair["change"] not in ("hardly less", "more"):
        said = [Todo(why=repair["advice"])] if repair.get("advice") else []
        return said + ([Todo(why="Train with these weights", command=repair["next"])] if repair["next"] else [])
    source = shlex.quote(repair["data"].get("source") or "SOURCE")
    return [
        Todo(why="Do not expect these weights to help: they leave what can be read as it was."),
        Todo(why="Find out what gives the label away, and repair that", command=f"unskew audit {source} --out audit"),
    ]


def _balance(repair: dict[str, Any]) -> tuple[list[str], list[str]]:
    """What a repair gains (less can be read) and what it costs (rows, and shares of classes)."""
    gained: list[str] = []
    lost: list[str] = []
    for measured in repair["representations"]:
        before, after = measured["before"]["bias"], measured["after"]["bias"]
        if before is not None and after is not None:
            # The other way round than an accuracy: what can be read should fall.
            grown, fallen = sorted_changes(
                {f"readable from {measured.get('phrase') or measured['name']}": (max(before, 0.0), max(after, 0.0))}
            )
            gained, lost = gained + fallen, lost + grown
    left, effective = repair["rows"] - repair["kept"], repair["effective"]
    lost += [f"{left} of {repair['rows']} rows get weight 0"] if left else []
    if effective is not None and effective < 0.99 * repair["kept"]:
        lost.append(f"the {repair['kept']} rows kept weigh as much as {effective:.0f} equal ones")
    shares = list(zip(repair["groups"]["classes"], repair["groups"]["before"], repair["groups"]["after"], strict=True))
    if shares:
        name, before, after = min(shares, key=lambda c: c[2] - c[1])
        lost += [change(f"share of {name}", before, after)[1]] if after < before - 0.005 else []
    return gained, lost


def truth(data: DataSet, outcome: Outcome) -> list[str] | None:
    """What is true of every row: aligned, conflicting, neither, or a wrong label; None where nothing of it is known.

    Repairs do not see this; their charts show by it whether they found the right rows.
    """
    index, pairs = outcome.index, data.alignment()
    known = torch.tensor(data.columns["clean_label"].to_list())[index] if "clean_label" in data.columns else None
    if pairs is None and known is None:
        return None
    words = [""] * len(index)
    y = data.y[index] if known is None else known
    if pairs is not None:
        aligned, conflicting = pairs.of_rows(y, data.bias[index])
        kinds = zip(aligned.tolist(), conflicting.tolist(), strict=True)
        words = ["aligned" if a else "conflicting" if c else "neither" for a, c in kinds]
    if known is not None:
        wrong = (known != data.y[index]).tolist()
        words = ["wrong label" if w else word or "right label" for w, word in zip(wrong, words, strict=True)]
    return words


def verdict(kept: int, rows: int, first: Measured, groups: Composition) -> str:
    """The repair in one sentence."""
    before, after = first.before.bias, first.after.bias
    sentence = f"{kept} of {rows} rows kept"
    if before is None or after is None:
        return (
            f"{sentence}; what can be read from {first.words} could not be measured: {first.before.reason or first.after.reason}."
        )
    shares = [f"{100 * max(value, 0):.0f} %" for value in (before, after)]
    sentence += f"; {shares[0]} of the label could be read from {first.words} before, {shares[1]} after."
    if before >= SHORTCUT and after > (1 - LEAST_GAIN) * before:
        sentence += " That is hardly less: this repair does not remove the shortcut."
    return sentence + "".join(f" {warning}" for warning in _lost(groups))


def _lost(groups: Composition) -> list[str]:
    """Classes that the repair all but removes."""
    shares = zip(groups.classes, groups.before, groups.after, strict=True)
    lost = [name for name, before, after in shares if before > 0 and after < LEAST_SHARE * before]
    if not lost:
        return []
    names = ", ".join(lost[:5]) + (" and others" if len(lost) > 5 else "")
    return [f"Little is left of {'class' if len(lost) == 1 else 'classes'} {names}: under a fifth of the former share."]


def histogram(score: torch.Tensor, truth: list[str] | None = None) -> Drawing:
    """Rows by score; where the truth is known, one set of bars for each kind of row."""
    import altair as alt

    fine = torch.isfinite(score)
    values = score[fine].double()
    low, high = float(values.min()), float(values.max())
    if high <= low:
        return NOTHING
    bins = 40
    width = (high - low) / bins
    of_row = ["all"] * len(score) if truth is None else truth
    told = [word for word, there in zip(of_row, fine.tolist(), strict=True) if there]
    rows = []
    for kind in dict.fromkeys(told):
        some = values[torch.tensor([word == kind for word in told])]
        counts = torch.histc(some.float(), bins, low, high).tolist()
        rows += [
            {"from": low + k * width, "to": low + (k + 1) * width, "rows": int(n), "truth": kind} for k, n in enumerate(counts)
        ]
    bars = alt.Chart(alt.Data(values=rows), width=420, height=180)
    place = {
        "x": alt.X("from:Q", title="score", bin="binned"), "x2": "to:Q",
        "y": alt.Y("rows:Q", scale=alt.Scale(type="symlog"), stack=None),
    }  # fmt: skip
    if truth is None:
        return draw(bars.mark_bar(color=TRUTH["aligned"]).encode(**place), rows, "scores", "rows by score")
    return draw(bars.mark_bar(opacity=0.55).encode(**place, color=_by_truth(told)), rows, "scores", "rows by score")


def _by_truth(told: list[str]) -> Any:
    import altair as alt

    kinds = [kind for kind in TRUTH if kind in set(told)]
    return alt.Color("truth:N", title=None, scale=alt.Scale(domain=kinds, range=[TRUTH[kind] for kind in kinds]))


def plane(outcome: Outcome, truth: list[str] | None = None) -> Drawing:
    """Loss against entropy with the line that divides them, for a repair that has both; coloured by the truth where it is known."""
    if "entropy" not in outcome.figures or outcome.noisy is None:
        return NOTHING
    import altair as alt

    entropy, loss = outcome.figures["entropy"], outcome.figures["loss"]
    pick = torch.randperm(len(loss), generator=torch.Generator().manual_seed(0))[:POINTS]
    said = ["noisy" if noisy else "clean" for noisy in outcome.noisy.tolist()]
    told = said if truth is None else truth
    rows = [{"entropy": float(entropy[i]), "loss": float(loss[i]), "truth": told[i]} for i in pick.tolist()]
    top = float(entropy.max())
    line = [{"entropy": 0.0, "loss": 0.0}, {"entropy": top, "loss": outcome.figures["delta"] * top}]
    points = (
        alt.Chart(alt.Data(values=rows), width=420, height=240)
        .mark_circle(size=14, opacity=0.5)
        .encode(
            x=alt.X("entropy:Q", title="entropy of the prediction"),
            y=alt.Y("loss:Q", title="cross-entropy"),
            color=_by_truth(told),
        )
    )
    divide = alt.Chart(alt.Data(values=line)).mark_line(color=INK).encode(x="entropy:Q", y="loss:Q")
    return draw(points + divide, rows, "loss-and-entropy", "loss against entropy")
