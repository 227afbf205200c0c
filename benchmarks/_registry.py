"""What a benchmark of speed is: a file with `figures(words)`, which yields figures, each a ratio within one run.

`python -m benchmarks NAME` prints one JSON line per figure, with machine and commit; `--record` also keeps it in
docs/results/speed.jsonl, from which `python -m docs.speed` (and `make docs`) writes docs/results/speed.md. A file with `main()`
instead (calibration, tables) is run as it is.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RECORD = ROOT / "docs" / "results" / "speed.jsonl"


@dataclass(frozen=True)
class Figure:
    name: str  # of the line on the page
    what: str  # one sentence
    ratio: float | None  # the figure; None where `value` is not a ratio
    least: float | None = None  # what it must reach
    most: float | None = None  # what it must not exceed
    value: float | None = None  # seconds, or another number with a bound, if there is no ratio
    unit: str = ""
    more: dict[str, Any] = field(default_factory=dict)  # the numbers behind it

    @property
    def holds(self) -> bool | None:
        """Whether it is within its bounds; None without any."""
        number = self.value if self.ratio is None else self.ratio
        if number is None or (self.least is None and self.most is None):
            return None
        return (self.least is None or number >= self.least) and (self.most is None or number <= self.most)

    def json(self) -> dict[str, Any]:
        kept = {
            "what": self.what,
            "ratio": self.ratio,
            "value": self.value,
            "unit": self.unit,
            "least": self.least,
            "most": self.most,
        }
        return {
            "name": self.name,
            **{k: v for k, v in kept.items() if v not in (None, "")},
            "holds": self.holds,
            "more": self.more,
        }


def processor() -> str:
    """The name of the processor, as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def about() -> dict[str, Any]:
    """Machine and commit, which every line carries."""
    import torch

    asked = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=7", "--exclude=*"]
    commit = subprocess.run(asked, capture_output=True, text=True).stdout.strip()
    return {
        "machine": f"{processor()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "commit": commit,
    }


def in_turn(forms: dict[str, Callable[[], object]], rounds: int = 5) -> dict[str, list[float]]:
    """Processor seconds of each form, in alternating rounds after one that does not count."""
    times: dict[str, list[float]] = {name: [] for name in forms}
    for turn in range(rounds + 1):
        for name, run in forms.items():
            started = time.process_time()
            run()
            if turn:
                times[name].append(time.process_time() - started)
    return times


def ratio(above: list[float], below: list[float]) -> float:
    """The median of the rounds' ratios."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def median(values: list[float]) -> float:
    return round(statistics.median(values), 5)


@contextmanager
def package_at(commit: str) -> Iterator[Path]:
    """A folder with the package as it was at a commit, to be put on the path of another process."""
    import tempfile

    with tempfile.TemporaryDirectory() as home:
        packed = subprocess.run(["git", "-C", str(ROOT), "archive", commit, "unskew"], capture_output=True, check=True).stdout
        subprocess.run(["tar", "-x", "-C", home], input=packed, check=True)
        yield Path(home)


def elsewhere(code: str, path: Path) -> Any:
    """What a piece of Python prints as JSON in a process of its own, with the package from `path`."""
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(path)}, cwd=path, capture_output=True, text=True, check=True
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def record(lines: list[dict[str, Any]]) -> None:
    """Keep the newest line of each name."""
    known = {}
    if RECORD.exists():
        known = {line["name"]: line for line in map(json.loads, RECORD.read_text(encoding="utf-8").splitlines())}
    known |= {line["name"]: line for line in lines}
    RECORD.write_text("".join(json.dumps(known[name]) + "\n" for name in sorted(known)), encoding="utf-8")
