"""The page of an audit."""

from typing import Any

from unskew.core.version import VERSION
from unskew.data.dataset import DataSet
from unskew.pages import charts
from unskew.pages.first import BAD, DOUBT, GOOD, INFO, First, Number, Side, Todo, in_two, sorted_changes, spread
from unskew.pages.html import page
from unskew.pages.samples import Sample, enlarged, gallery_samples, shown_rows, slice_samples
from unskew.pages.verdict import percent
from unskew.parts.trial import TAKEN_OUT
from unskew.records import Audit, hardly_followed

MOST_CLASSES = 40  # columns of the heat map
TONES = {"shortcut": BAD, "question": DOUBT}
TRIED = {
    "independent": "where the suspected shortcut tells nothing",
    "conflicting": "rows that seem to lack it",
    "class_balanced": "the rows as they are, mean over classes",
}


def render_audit(audit: Audit, data: DataSet | None = None) -> str:
    """The page of an audit; with its data, pictures are large."""
    content = audit.json()
    found, about = content["representations"], content["data"]
    pictures = enlarged(data, shown_rows(content))
    samples = gallery_samples(content["gallery"], pictures)
    drawn = charts.ranking([r for r in found if r["verdict"] != "clean"] or found[:6])
    kinds = "labels" if about["multi_label"] else "classes"
    return page(
        "audit.html", kind="audit", name=about["name"], about=f"{audit.rows} rows · {len(about['classes'])} {kinds}",
        first=first_of(content, samples, drawn), audit=content, samples=samples, chart=drawn, top=found[:12],
        classes=list(found[0]["per_class"])[:MOST_CLASSES] if found else [],
        remedy=_remedy(content["trial"] or {}),
        duplicates=audit.duplicates.sentence if audit.duplicates else "", **slice_samples(content["slices"], pictures),
        footer=f"unskew {VERSION} · every figure here is in audit.json, every sample's score in scores.parquet",
    )  # fmt: skip


def first_of(audit: dict[str, Any], samples: list[Sample], drawn: charts.Drawing) -> First:
    """The first screen: the leading finding, how many rows lack it, what a trial gained, and samples with and without it."""
    sentence, more = in_two(audit["verdict"])
    top = audit["representations"][0] if audit["representations"] else None
    told = top is not None and top["verdict"] in TONES
    sides = []
    if samples:
        halves = [[s for s in samples if s["kind"] == kind] for kind in ("aligned", "conflicting")]
        titles = ["Where it points to the class", "Where it misleads" if told else "Where it does not"]
        read = f"read from {audit['gallery']['phrase'] or audit['gallery']['name']}"
        sides = [Side(title=title, samples=spread(half), note=read) for title, half in zip(titles, halves, strict=True) if half]
    trial = audit["trial"]
    pairs = {words: (trial[key]["before"], trial[key]["after"]) for key, words in TRIED.items()} if trial else {}
    gained, lost = sorted_changes(pairs)
    tone = _tone(audit)
    more += [f"But {line}" for line in _other_doubts(audit)[: 1 if told else 2]]
    return First(
        tone=tone, sentence=sentence, more=more, numbers=_numbers(audit), sides=sides,
        chart=charts.NOTHING if sides else drawn, todo=_todo(audit, tone == GOOD), gained=gained, lost=lost,
    )  # fmt: skip


def _tone(audit: dict[str, Any]) -> str:
    found = audit["representations"]
    if _calm(found):
        return DOUBT if _other_doubts(audit) else INFO
    if found and found[0]["verdict"] in TONES:
        return TONES[found[0]["verdict"]]
    return DOUBT if _other_doubts(audit) else GOOD if found else INFO


def _calm(found: list[dict[str, Any]]) -> bool:
    """Whether there are only questions that can wait: those that cannot come first."""
    if not found or found[0]["verdict"] != "question":
        return False
    return hardly_followed(found[0].get("followed"), found[0].get("elsewhere"))


def _other_doubts(audit: dict[str, Any]) -> list[str]:
    """What speaks against the data besides the probes: bias columns that the labels give away, and leaks between splits."""
    leaks = [(c["name"], c["leakage"]) for c in audit["columns"] if "leakage" in c]
    doubts = [
        f"the labels give {name} away: guessed right in {percent(leak['dataset'])}, by chance in {percent(leak['chance'])}."
        for name, leak in leaks
        if leak["low"] > leak["chance"]
    ]
    return doubts + [k["sentence"][:1].lower() + k["sentence"][1:] for k in (audit["leaks"] or {}).get("findings", [])]


def _numbers(audit: dict[str, Any]) -> list[Number]:
    numbers = []
    found, trial = audit["representations"], audit["trial"]
    if found:
        top = found[0]
        note = f"95 % interval {percent(top['low'])} to {percent(top['high'])}"
        numbers.append(
            Number(value=percent(top["bias"]), label=f"of the label can be read from {top['phrase'] or top['name']}", note=note)
        )
        if top.get("contradicting") is not None:
            numbers.append(Number(value=f"{top['contradicting']}", label="rows contradict it", note=f"of {top['n']}"))
    for column in audit["columns"]:
        if "leakage" in column:
            leak = column["leakage"]
            note = f"95 % interval {percent(leak['low'])} to {percent(leak['high'])}, chance {percent(leak['chance'])}"
            numbers.append(
                Number(value=percent(leak["dataset"]), label=f"of {column['name']} guessed from the labels", note=note)
            )
    tried = [trial["independent"][when] for when in ("before", "after")] if trial else []
    if tried and all(share is not None and share == share for share in tried):
        value = " → ".join(f"{100 * share:.0f}" for share in tried)
        label = "right without the shortcut's help, in a trial"
        lost = " → ".join(f"{100 * trial['class_balanced'][when]:.0f}" for when in ("before", "after"))
        note = f"plain training → {_remedy(trial)}" if trial["supports"] else f"not advised: {lost} % on the rows as they are"
        numbers.append(Number(value=f"{value} %", label=label, note=note))
    told = sum(f["verdict"] in TONES for f in found)
    if found:
        numbers.append(Number(value=f"{told} of {len(found)}", label="probes tell the class and perhaps should not"))
    return numbers[:3]


def _remedy(trial: dict[str, Any]) -> str:
    """What was done to the rows of a trial, in a word or two."""
    removed = trial.get("removed")  # older audits have none
    return f"without {TAKEN_OUT[removed]}" if removed in TAKEN_OUT else "balanced against it"


def _todo(audit: dict[str, Any], good: bool) -> list[Todo]:
    steps = [Todo(why=f"{step['why'][:1].upper()}{step['why'][1:]}", command=step["command"]) for step in audit["next"]]
    answer = Todo(why="Answer whether it should tell the class: see “Shortcut or signal?” below.")
    if audit["questions"]:
        steps.insert(0 if audit["representations"][0]["verdict"] == "question" else len(steps), answer)
    elif good and steps:
        steps.insert(0, Todo(why="Nothing has to be repaired."))
    return steps
