"""Many cases in a row: hypothesis draws them from a seed, and each is judged."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

from tests.fuzz import templates
from tests.fuzz.harness import UNBUILT, Ended, run
from tests.fuzz.records import KINDS  # those of kinds.py and its own

Found = dict[str, list[tuple[dict[str, Any], Ended]]]
BATCH = 20  # cases drawn at a time
FAULTS = ("traceback", "status", "lines", "leftovers", "hang")


def campaign(
    cases: int, seed: int, *, seconds: float = 1e9, only: tuple[str, ...] = (), say: Callable[[str], None] = lambda text: None
) -> Found:
    """Run `cases` cases, taking the kinds in turn; faults are printed as they happen."""
    warm()
    found: Found = {name: [] for name in (only or KINDS)}
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="unskew-fuzz-made-") as home:
        made = templates.make(Path(home))

        def one(name: str, plan: dict[str, Any]) -> None:
            if sum(map(len, found.values())) >= cases or time.monotonic() - started > seconds:
                return
            ended = run(lambda root: KINDS[name][1](plan, root, made), made / "cache")
            assert ended.status != UNBUILT, f"the fuzzer cannot build {name}: {plan}"
            found[name].append((plan, ended))
            if ended.faults:
                say(
                    f"{name}: {', '.join(ended.faults)} (status {ended.status}, left {ended.left[:3]})\n  {plan}\n  {ended.said[-600:]}"
                )

        round_ = 0
        while sum(map(len, found.values())) < cases and time.monotonic() - started < seconds:
            for name in found:
                many = max(1, min(BATCH, -(-cases // len(found)) - BATCH * round_))

                @seeded(seed + 1000 * round_)
                @settings(
                    max_examples=many, phases=[Phase.generate], database=None, deadline=None, derandomize=False,
                    suppress_health_check=list(HealthCheck),
                )  # fmt: skip
                @given(plan=KINDS[name][0])
                def draw(name: str, plan: dict[str, Any]) -> None:
                    one(name, plan)

                draw(name)
                say(f"{sum(map(len, found.values()))} cases, {time.monotonic() - started:.0f} s, {name}")
            round_ += 1
    return found


def table(found: Found) -> str:
    """Kinds and counts as CSV."""
    lines = ["kind,what,cases,done,refused,out_of_memory,tracebacks,wrong_statuses,wrong_lines,leftovers,hangs"]
    for name, listed in found.items():
        ended = [e for _, e in listed]
        what = (KINDS[name][1].__doc__ or "").strip().splitlines()[0]
        counts = [sum(e.status == s for e in ended) for s in (0, 2, 1)]
        faults = [sum(fault in e.faults for e in ended) for fault in FAULTS]
        lines.append(",".join(map(str, [name, f'"{what}"', len(ended), *counts, *faults])))
    return "\n".join(lines) + "\n"


def warm() -> None:
    """Import what a command needs, once: the cases are forked from here. Nothing is computed, so no threads are running."""
    import datasets  # noqa: F401

    import unskew.cli
    import unskew.verbs.audit
    import unskew.verbs.auto
    import unskew.verbs.dependency
    import unskew.verbs.evaluate
    import unskew.verbs.export
    import unskew.verbs.repair
    import unskew.verbs.report
    import unskew.verbs.train  # noqa: F401
