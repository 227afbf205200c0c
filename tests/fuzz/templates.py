"""What the fuzzer damages, made once: a run, one that was interrupted, an audit, a repair, an `auto`, saved Hugging Face data sets."""

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path

SHORT = ("--model", "mlp", "train.batch=16")
STATE = (
    "train",
    "toy:rows=60",
    *SHORT,
    "train.steps=6",
    "train.checkpoint=2 steps",
    "select.rule=val-accuracy",
    "select.every=1 steps",
)
AUDIT = ("audit", "planted:rows=60,bias=0.5", "--representation", "input", "--no-trial")
REPAIR = ("repair", "planted:rows=60,bias=0.5", "--with", "repair", "phi=input", "epochs=2", "--force")
TRAIN = ("train", "toy:rows=60", *SHORT, "train.steps=2")
AUTO = ("auto", "planted:rows=60,bias=0.5", "train.steps=2", "--workers", "1")


def make(home: Path, sets: bool = True) -> Path:
    """The templates below `home`, each in a forked process: this one must stay without threads."""
    home.mkdir(parents=True, exist_ok=True)
    forked(home, lambda: unskew(*TRAIN, "--out", "run"))
    forked(home, lambda: unskew("evaluate", "run"))
    forked(home, lambda: interrupted(*STATE, "--out", "state"), expect=130)
    forked(home, lambda: unskew(*AUDIT, "--out", "audit"))
    forked(home, lambda: unskew(*REPAIR, "--out", "w.parquet"))
    forked(home, lambda: unskew(*AUTO, "--budget", "60s", "--out", "auto"))
    if sets:
        forked(home, save_sets)
    return home


def forked(home: Path, work: Callable[[], None], expect: int = 0) -> None:
    """Do some work in a child, in the folder `home`; its exit status must be `expect`."""
    child = os.fork()
    if child == 0:
        status = 99
        try:
            os.chdir(home)
            os.environ["UNSKEW_DATA"] = str(home / "cache")
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            work()
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == expect


def unskew(*words: str) -> None:
    from unskew.cli import main

    sys.argv = ["unskew", *words]
    main()


def interrupted(*words: str) -> None:
    """A training that is interrupted when its last step is done: its state stays."""
    from unskew.training import state

    def stop(self: object) -> None:
        raise KeyboardInterrupt

    state.State.finish = stop
    unskew(*words)


def save_sets() -> None:
    """A Hugging Face data set of pictures in three splits, and one of vectors."""
    import datasets
    import numpy as np
    from PIL import Image

    def picture(k: int) -> dict[str, object]:
        out = io.BytesIO()
        Image.fromarray(np.random.default_rng(k).integers(0, 255, (8, 8, 3), dtype=np.uint8)).save(out, "PNG")
        return {"bytes": out.getvalue(), "path": None}

    datasets.disable_progress_bars()
    names = datasets.ClassLabel(names=["a", "b"])
    features = datasets.Features({"image": datasets.Image(), "label": names, "site": datasets.Value("string")})
    rows = {"image": [picture(k) for k in range(24)], "label": [k % 2 for k in range(24)], "site": ["x", "y", "z"] * 8}
    whole = datasets.Dataset.from_dict(rows, features=features)
    parts = {"train": whole, "validation": whole.select(range(8)), "test": whole.select(range(8, 16))}
    datasets.DatasetDict(parts).save_to_disk("pictures")
    vectors = {"x": np.random.default_rng(0).random((30, 3)).tolist(), "label": ["a", "b"] * 15}
    datasets.Dataset.from_dict(vectors).save_to_disk("vectors")
