"""Cards in Markdown: of a model that leaves the project, and of data that was audited."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from unskew.pages.verdict import percent

_MOST_GROUPS = 40  # lines of a table


def model_card(
    record: Mapping[str, Any], outcome: Mapping[str, Any], judged: Mapping[str, Any], file: str, parameters: int
) -> str:
    """The card of an exported run: what it is, how to feed it, how good it is in each group, what it must not be used for."""
    data, cfg = record["data"], record["config"]
    trained = ", ".join(["class labels", *(name for name in record["labels"]["training"] if name != "y")])
    parts = [
        f"# {_text(cfg['method_name'])} on {_text(data['name'])}",
        judged["verdict"]["sentence"],
        "## What it is",
        _list(
            f"File: {file}; how to feed it and read it is in network.json",
            f"Network: {_text(cfg['model_name'])}, {parameters:,} parameters",
            f"Trained by {_text(cfg['method_name'])} for {outcome['steps']} steps, seed {cfg['seed']}",
            f"Trained on {_text(data['source'] or data['name'])}: "
            + ", ".join(f"{count} rows of {_text(split)}" for split, count in data["rows"].items()),
            f"Labels it was trained with: {_text(trained)}; weights chosen by {_text(outcome['selection']['rule'])}",
            *([f"Made by: `{_text(record['command'])}`"] if record["command"] else []),
        ),
        "## How to use it",
        f"Inputs of shape {tuple(data['shape'])}, numbers from 0 to 1; logits of {len(data['classes'])} classes: "
        + ", ".join(map(_text, data["classes"][:_MOST_GROUPS]))
        + ".",
        f"## How good it is ({_text(judged['split'])} split of {_text(judged['on'])})",
        _averages(judged),
        _groups(judged["groups"]),
        "## Limits",
        _list(*_limits(judged)),
    ]
    leakage = judged.get("leakage")
    if isinstance(leakage, Mapping) and "model" in leakage:
        parts[-2:-2] = [
            "## Leakage",
            f"The bias can be guessed from its predictions in {percent(leakage['model'])} of the cases.",
        ]
    return "\n\n".join(part for part in parts if part) + "\n"


def data_card(audit: Mapping[str, Any]) -> str:
    """The card of audited data: what can be read from what, and what is asked."""
    data = audit["data"]
    told = [f for f in audit["representations"] if f["verdict"] not in ("clean", "trace")]
    silent = [f.get("label") or f["name"] for f in audit["representations"] if f["verdict"] in ("clean", "trace")]
    table = _table(
        ("found", "kind", "share of the label that can be read", "95 % interval"),
        [
            (f.get("label") or f["name"], f["verdict"], percent(f["bias"]), f"{percent(f['low'])} to {percent(f['high'])}")
            for f in told
        ],
    )
    parts = [
        f"# {_text(data['name'])}",
        audit["verdict"],
        _list(
            f"{audit['rows']} rows of {len(data['classes'])} classes: " + ", ".join(map(_text, data["classes"][:_MOST_GROUPS])),
            "Splits: " + ", ".join(f"{_text(split)} {count}" for split, count in data["rows"].items()),
            *([f"Made by: `{_text(audit['command'])}`"] if audit["command"] else []),
        ),
        "## Measured biases",
        table if told else "None of the probes found one.",
        f"Looked for and not found: {', '.join(map(_text, silent))}." if silent else "",
        "## Open questions" if audit.get("questions") else "",
        _list(*map(_text, audit.get("questions", []))),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def how_to_open(form: str) -> str:
    """How another tool shows rows.parquet."""
    lines = {
        "spotlight": (
            "from renumics import spotlight",
            'spotlight.show("rows.parquet", dtype={"path": spotlight.Image})',
        ),
        "fiftyone": (
            "import fiftyone",
            "import polars",
            'rows = polars.read_parquet("rows.parquet").to_dicts()',
            'data = fiftyone.Dataset("audit")',
            "data.add_samples([",
            '    fiftyone.Sample(r["path"], ground_truth=fiftyone.Classification(label=r["label"]), tags=[r["split"]], index=r["index"])',
            "    for r in rows",
            "])",
            "fiftyone.launch_app(data)",
        ),
        "croissant": (
            "import mlcroissant",
            'rows = mlcroissant.Dataset("croissant.json").records("rows")',
        ),
    }[form]
    return "\n## Opening it\n\n```python\n" + "\n".join(lines) + "\n```\n"


def _averages(judged: Mapping[str, Any]) -> str:
    names = ("plain", "class_balanced", "worst_group", "aligned", "conflicting")
    rows = [
        (
            name.replace("_", " "),
            percent(judged[name]),
            " to ".join(percent(end) for end in judged["intervals"][name]),
            judged["rows"][name],
        )
        for name in names
        if name not in judged["undefined"]
    ]
    return _table(("average", "accuracy", "95 % interval", "rows"), rows)


def _groups(groups: Sequence[Mapping[str, Any]]) -> str:
    """The groups, the worst first; small ones are marked."""
    ordered = sorted((g for g in groups if g["n"]), key=lambda g: g["accuracy"])
    rows = [
        (
            g["y"], _joined(g["bias"]), g["n"], percent(g["accuracy"]), f"{percent(g['low'])} to {percent(g['high'])}",
            "few rows" if g["small"] else "",
        )
        for g in ordered[:_MOST_GROUPS]
    ]  # fmt: skip
    more = f"\n\n{len(ordered) - _MOST_GROUPS} better groups are not shown." if len(ordered) > _MOST_GROUPS else ""
    return _table(("class", "bias", "rows", "accuracy", "95 % interval", ""), rows) + more


def _limits(judged: Mapping[str, Any]) -> Iterable[str]:
    yield "It was judged on rows like those it was trained on; on data from elsewhere nothing is known until it is judged there."
    if judged["bias_columns"]:
        yield f"Groups are those of {_text(', '.join(judged['bias_columns']))}; shortcuts of another kind were not looked at here."
    else:
        yield "No bias column was given, so accuracy by group is not known: a shortcut in the data would not show in these figures."
    yield "Do not use it for decisions about people, or where an error does harm, without a judgement on rows of that use."


def _joined(bias: Any) -> str:
    return "" if bias is None else bias if isinstance(bias, str) else ", ".join(bias)


def _list(*items: str) -> str:
    return "\n".join(f"- {item}" for item in items)


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(_text(cell) for cell in row) + " |" for row in rows)])


def _text(value: Any) -> str:
    """A value that cannot break out of its line, its cell or into HTML.

    >>> _text("a|b <i>")
    'a\\\\|b &lt;i>'
    """
    return " ".join(str(value).split()).replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
