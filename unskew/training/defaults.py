"""What to train with when the user names no network: chosen to fit the data, printed, and on the page.

Every choice can be overridden by its setting. Networks of the papers, with the plain defaults of the settings reference, are used
when they are named: by --model, by a recipe or by a suite.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from unskew.core import progress
from unskew.core.errors import UserError
from unskew.core.fetch import cache, fetch
from unskew.data.dataset import DataSet
from unskew.methods._contract import Method
from unskew.models import _contract as models
from unskew.models.efficientnet_lite0 import WEIGHTS

PHOTOGRAPH = 60  # pixels: images of this side and more get a pretrained network
BACKBONE = "efficientnet-lite0"
EPOCHS, LEAST, MOST = 12, 600, 20_000  # passes over the rows, and the number of steps that they may come to
LINEAR = {"optim.name": "sgd", "optim.lr": 0.003, "optim.weight_decay": 0.3, "optim.schedule": "cosine"}
NETWORK = {
    "optim.name": "adamw", "optim.lr": 0.005, "optim.weight_decay": 0.05, "optim.schedule": "cosine",
    "optim.warmup": "20 steps", "train.batch": 64,
}  # fmt: skip
TUNED = {**NETWORK, "optim.lr": 0.0003, "train.batch": 32, "data.augment": "light"}


@dataclass(frozen=True)
class Choice:
    """A network, the settings that go with it, and the reason in words."""

    model: str
    settings: Mapping[str, Any] = field(default_factory=dict)  # as a user would write them
    why: str = ""


def choose(data: DataSet, method: type[Method], cfg: Any, tune: str, batch: int, weighted: bool) -> Choice:
    """The network and settings for this data set and method; `batch` is the user's, or 0."""
    shape = data.shape
    if method.solved:
        return _solved(data)
    if len(shape) == 1:
        chosen = Choice("mlp", {**NETWORK, "model.hidden": "100,100"}, f"vectors of {shape[0]} numbers")
    elif len(shape) == 4:
        chosen = Choice(
            "resnet", {**NETWORK, "model.kind": "3d", "model.width": 8, "train.batch": 32}, f"clips of {shape[0]} frames"
        )
    elif len(shape) != 3:
        raise UserError(f"no default model for inputs of shape {shape}; name one with --model")
    elif tune != "all" and method.reads_inputs(cfg):
        chosen = Choice("small-resnet", {**NETWORK, "data.augment": "light"}, "the method works on the images themselves")
    elif min(shape[1:]) < PHOTOGRAPH or shape[0] not in (1, 3):
        chosen = Choice("small-resnet", {**NETWORK, "data.augment": "light"}, f"images of {shape[2]}x{shape[1]} pixels")
    else:
        chosen = _photographs(data, tune)
    rule = _selection(data, method, cfg, weighted)
    steps = budget(len(data.rows("train")), batch or int(chosen.settings.get("train.batch", 256)))
    return Choice(chosen.model, {**chosen.settings, **rule, "train.steps": steps}, chosen.why)


def _solved(data: DataSet) -> Choice:
    """For a method that solves for the last layer: pretrained features at any size, or the vectors themselves."""
    if len(data.shape) == 1:
        return Choice("linear", {"select.rule": "last"}, f"vectors of {data.shape[0]} numbers")
    missing = _missing_weights()
    if missing:
        raise UserError(
            f"the method needs a pretrained network, which cannot be had: {missing}; name weights with model.net.weights=FILE"
        )
    return Choice("frozen", {"select.rule": "last"}, f"inputs of shape {data.shape}; only the last layer is fitted")


def _photographs(data: DataSet, tune: str) -> Choice:
    what = f"images of {data.shape[2]}x{data.shape[1]} pixels"
    missing = _missing_weights()
    if missing:
        progress.say(f"the pretrained network cannot be had, so a small one is trained from scratch: {missing}")
        return Choice(
            "small-resnet", {**NETWORK, "data.augment": "light", "model.width": 32}, f"{what}, without pretrained weights"
        )
    if tune == "all":
        return Choice(BACKBONE, TUNED, f"{what}; train.tune=all fine-tunes the whole network")
    return Choice("frozen", LINEAR, f"{what}; only the last layer learns (train.tune=all fine-tunes the whole network)")


def _missing_weights() -> str:
    try:
        fetch(BACKBONE, (WEIGHTS,))
    except UserError as error:
        return str(error)
    return ""


def weights_at_hand() -> bool:
    """Whether the pretrained network can be used without a download."""
    return (cache() / BACKBONE / WEIGHTS.name).is_file()


def budget(rows: int, batch: int) -> int:
    """Steps of a training: EPOCHS passes over the rows, within LEAST and MOST.

    >>> budget(600, 64), budget(60_000, 64)
    (600, 11256)
    """
    return int(min(MOST, max(LEAST, EPOCHS * math.ceil(rows / batch))))


def _selection(data: DataSet, method: type[Method], cfg: Any, weighted: bool) -> dict[str, Any]:
    """Validation rows are as biased as the training rows: they select the weights of plain training, not of a method against it."""
    if not data.has("val") or weighted or method.__module__.rpartition(".")[2] != "erm":
        return {"select.rule": "last"}
    return {"select.rule": "val-accuracy", "select.patience": 5, "select.every": "10%"}


def check_tune(tune: str, model: str) -> None:
    if tune == "head" and model and "pretrained" not in {f.name for f in fields(models.load(model).config)}:
        raise UserError(f"train.tune=head needs a pretrained network; {model} starts from random weights")
