"""python -m tests.fuzz.kills --kills 100 [--seed 0] [--minutes 20] [--csv FILE]: kill every verb at random moments, run it again, compare.

Each command is first run without interruption. Then it is started again and again in another folder and stopped by SIGKILL, SIGTERM or
SIGINT after a random part of the time it takes, until it gets through; its result must equal the uninterrupted one to the
bit. A kill counts if it ended the process before its work was done.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.fuzz import templates
from tests.fuzz.campaign import warm
from tests.fuzz.disks import DEPENDENCY, _suite
from tests.fuzz.harness import _child
from tests.support.planted import planted_vectors

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
TOY = ("train", "toy:rows=300", "--model", "mlp", "train.batch=32", "train.steps=200", "train.checkpoint=5 steps", "--out", "out")
DIGITS = "colored-mnist:base=digits,ratio=0.9"
SMALL = ("--model", "mlp", "train.steps=60", "train.checkpoint=5 steps")
METHODS = ("erm", "gce", "lff", "rubi", "learned_mixin", "group_dro", "lnl", "grl", "jtt", "pgd", "reweight", "last_layer")
COMMANDS: dict[str, tuple[str, ...]] = {
    "audit": (*templates.AUDIT, "--out", "out"),
    "repair repair": (
        "repair",
        "planted:rows=600,bias=0.5",
        "--with",
        "repair",
        "phi=input",
        "epochs=200",
        "--force",
        "--out",
        "w.parquet",
    ),
    "repair aflite": ("repair", DIGITS, "--with", "aflite", "phi=color:kind=mean", "models=8", "--force", "--out", "w.parquet"),
    "repair gradients": ("repair", DIGITS, "--with", "gradients", *SMALL, "--force", "--out", "w.parquet"),
    "repair denoise": ("repair", DIGITS, "--with", "denoise", *SMALL, "--force", "--out", "w.parquet"),
    "repair inverse_frequency": ("repair", DIGITS, "--with", "inverse_frequency", "--as", "folder", "--force", "--out", "kept"),
    "repair independence": ("repair", DIGITS, "--with", "independence", "steps=10", "folds=2", "--force", "--out", "w.parquet"),
    "repair balance": ("repair", DIGITS, "--with", "balance", "--as", "csv", "--force", "--out", "w.csv"),
    **{f"train {name}": (*TOY, "--method", name) for name in METHODS},
    "dependency": (*DEPENDENCY, "--out", "out"),
    "auto": ("auto", "rows.npz", "train.steps=20", "--budget", "10min", "--workers", "1", "--out", "out"),
    "export": ("export", "run", "--as", "safetensors", "--out", "net"),
    "bench": ("bench", "toy.toml", "--only", "erm", "--seeds", "1", "--workers", "1", "--out", "out"),
}
UNEQUAL = {
    "seconds",
    "training",
    "resumed",
    "versions",
    "commit",
    "commits",
    "machine",
    "command",
    "run",
    "commands",
    "cost",
    "notes",
}  # of a result's JSON


def start(words: tuple[str, ...], home: Path, cache: Path) -> int:
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _child(lambda root: list(words), home, cache)
    return child


def finished(child: int, limit: float) -> int | None:
    """The exit status; None if it still runs after `limit` seconds."""
    end = time.monotonic() + limit
    while True:
        done, code = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(code)
        if time.monotonic() > end:
            return None
        time.sleep(0.002)


def result(home: Path) -> dict[str, str]:
    """What a command made: digests of weights, tables and the figures of JSON; times, and pages that show them, are left out."""
    made = {}
    for path in sorted((home / "work").rglob("*")):
        name = str(path.relative_to(home / "work"))
        if not path.is_file() or "tensorboard" in name or name.endswith((".html", ".log", ".jsonl", ".tex")) or "tasks/" in name:
            continue
        if path.suffix == ".json":
            text = path.read_text().replace(str(home), "HOME")  # the two folders differ in their place only
            raw = json.dumps(_lasting(json.loads(text)), sort_keys=True).encode()
        elif path.suffix == ".parquet":
            raw = _table(path)
        else:
            raw = path.read_bytes()
        made[name] = hashlib.sha256(raw).hexdigest()
    return made


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _lasting(v) for k, v in value.items() if k not in UNEQUAL}
    return [_lasting(v) for v in value] if isinstance(value, list) else value


def _table(path: Path) -> bytes:
    import pyarrow.parquet

    return repr([c.to_pylist() for c in pyarrow.parquet.read_table(path).columns]).encode()


def one(name: str, kills: int, chance: random.Random, made: Path, deadline: float) -> dict[str, Any]:
    """Run a command without interruption, then interrupted up to `kills` times, and compare."""
    words, cache = COMMANDS[name], made / "cache"
    with (
        tempfile.TemporaryDirectory(prefix="unskew-kill-") as straight,
        tempfile.TemporaryDirectory(prefix="unskew-kill-") as killed,
    ):
        for home in (straight, killed):
            (Path(home) / "work").mkdir()
            _suite(Path(home) / "work")
            if name == "auto":
                planted_vectors(Path(home) / "work" / "rows.npz")
            if name == "export":
                shutil.copytree(made / "run", Path(home) / "work" / "run")
        started = time.monotonic()
        status = finished(start(words, Path(straight), cache), 600)
        takes = time.monotonic() - started
        assert status == 0, f"{name}: {status} {(Path(straight) / 'stderr').read_text()[-500:]}"
        landed = dict.fromkeys((s.name for s in SIGNALS), 0)
        wrong: list[str] = []
        for _ in range(3 * kills):
            if sum(landed.values()) >= kills or time.monotonic() > deadline:
                break
            child, how = start(words, Path(killed), cache), chance.choice(SIGNALS)
            status = finished(child, chance.uniform(0.02, 0.9) * takes)
            if status is None:
                os.kill(child, how)
                status = finished(child, 60)
                if status == -how or (how == signal.SIGINT and status == 130):
                    landed[how.name] += 1
                elif status != 0:
                    wrong.append(f"{how.name} gave status {status}")
            elif status != 0:
                wrong.append(f"status {status}: {(Path(killed) / 'stderr').read_text()[-200:]}")
        status = finished(start(words, Path(killed), cache), 600)
        a, b = result(Path(straight)), result(Path(killed))
        different = sorted(k for k in {*a, *b} if a.get(k) != b.get(k))
        left = [p.name for p in (Path(killed) / "work").rglob(".*") if p.suffix in (".part", ".lock", ".state")]
        equal = status == 0 and not different and not left
        return {
            "command": name,
            "seconds": takes,
            **landed,
            "equal": equal,
            "files": len(a),
            "different": [*wrong, *different, *left],
        }


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--kills", type=int, default=100)
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--minutes", type=float, default=1e9)
    words.add_argument("--only", default="")
    words.add_argument("--csv", type=Path, default=None)
    given = words.parse_args()
    warm()
    names = [n for n in COMMANDS if not given.only or any(n.startswith(w) for w in given.only.split(","))]
    chance, deadline = random.Random(given.seed), time.monotonic() + 60 * given.minutes
    lines = ["command,seconds,SIGKILL,SIGTERM,SIGINT,equal_to_the_bit,files_compared"]
    total, fine = 0, True
    with tempfile.TemporaryDirectory(prefix="unskew-kill-made-") as home:
        made = templates.make(Path(home), sets=False)
        for name in names:
            if time.monotonic() > deadline:
                print(f"no time for {name}")
                continue
            try:
                found = one(name, -(-given.kills // len(names)), chance, made, deadline)
            except AssertionError as error:
                print(error, flush=True)
                fine = False
                continue
            total += sum(found[s.name] for s in SIGNALS)
            fine &= found["equal"]
            counts = ",".join(str(found[s.name]) for s in SIGNALS)
            lines.append(f"{name},{found['seconds']:.1f},{counts},{found['equal']},{found['files']}")
            print(lines[-1], found["different"] or "", flush=True)
    print(f"{total} kills landed; every result equal to the bit: {fine}")
    if given.csv is not None:
        given.csv.write_text("\n".join(lines) + "\n")
    sys.exit(not fine)


if __name__ == "__main__":
    main()
