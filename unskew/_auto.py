"""The public function `auto`, on its own so that no file grows long."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pathlib import Path

    from unskew.records import Auto


def auto(
    source: Any,
    *,
    bias: Sequence[str] = (),
    out: "str | Path" = "auto",
    budget: str = "30min",
    rule: Literal["val-pseudo-groups", "val-worst-slice", "val-worst-group"] = "val-pseudo-groups",
    expect: Sequence[str] = (),
    model: str = "",
    executor: Literal["local", "ray"] = "local",
    address: str = "",
    workers: int = 0,
    seed: int = 0,
    device: str = "auto",
    settings: Mapping[str, Any] | None = None,
    command: str = "",
) -> "Auto":
    """Audit, try what may help within a budget, choose without bias labels, and recommend it only if it proves better than erm.

    Called again with the same arguments it resumes where it stopped, or is read from `out`; a larger budget goes on.

    Args:
        source: anything that `load` takes.
        bias: bias columns; only used to say what missing labels cost, unless the rule asks for them.
        out: folder for audit, candidates, models, auto.html and auto.json.
        budget: time to spend, such as "90s", "30min" or "2h". What it leaves out is on the page.
        rule: what candidates are ranked by, on training rows held out: the worst group over class x a biased model's opinion, the worst
            slice of rows that look alike, or the worst (class, bias) group.
        expect: representations that show the class by right, such as `["texture"]`; remembered for this data.
        model: see `unskew list models`; chosen by the inputs if not given.
        executor: local, or ray.
        address: of a Ray cluster; one is started here if not given.
        workers: trainings side by side; as many as there are cores if not given.
        seed: of every random stream.
        device: auto, cpu, cuda, cuda:0 or mps.
        settings: of reading and training, for every candidate, such as `{"train.steps": 500, "data.size": 64}`.
        command: what the page shows as the command that made it.

    Returns:
        What was tried, with cost and reason, and the recommended model: `run` is its folder.

    Example:
        found = unskew.auto("photos/", out="auto", budget="30min")
        print(found.verdict, unskew.evaluate(found.run).verdict.sentence)
    """
    from unskew.verbs.auto import auto as verb

    return verb(
        source, bias=bias, out=out, budget=budget, rule=rule, expect=expect, model=model, executor=executor, address=address,
        workers=workers, seed=seed, device=device, settings=settings, command=command,
    )  # fmt: skip
