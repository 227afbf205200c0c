r"""layer: the output of any layer of any network: of a finished run, or of a network with its first weights, random or from a file.

.. math::  \phi = \mathrm{mean}_{hw}\, h_l(x), \qquad \text{or, with } \texttt{gram}: \quad
           \phi = \frac{1}{CHW} h_l(x)\, h_l(x)^\top

`layer:model=resnet,net.depth=50,net.weights=resnet50.pth,frames=true` is what REPAIR reads static bias of clips from;
`layer:model=vgg16,net.weights=vgg16.pth,at=relu1_2,gram=true` is ReBias's texture.

Source: Bahng et al., ICML 2020 (Gram matrices of a low layer as texture); Li and Vasconcelos, CVPR 2019 (network features as phi).
Differs: nothing.
"""

import functools
import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from unskew.core import checkpoint, engine
from unskew.core.errors import UserError
from unskew.core.rng import seed_of
from unskew.data.dataset import DataSet
from unskew.data.loader import normalise
from unskew.models._contract import Model, maker
from unskew.models._contract import load as network_named
from unskew.nn.weights import without_first_weights

PIXELS, CONTENT = True, True
VARIANTS: tuple[dict[str, str], ...] = ()  # only when asked for: which network is the user's choice


@dataclass(frozen=True)
class Config:
    run: str = ""  # folder of a finished run
    model: str = ""  # or a network by name, with its first weights: random, or those it comes with (efficientnet-lite0)
    pretrained: bool = True  # false: at random all the same
    net: dict[str, Any] = field(default_factory=dict)  # settings of that network: net.depth=50, net.weights=FILE
    frames: bool = False  # clips: an image network on every frame, averaged over time
    at: str = ""  # layer; the last by default
    gram: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if bool(self.run) == bool(self.model):
            raise UserError("representation layer: give run=FOLDER or model=NAME, one of them")
        if self.run and self.net:
            raise UserError("representation layer: net.* are settings of model=NAME; a run has its own")

    def __hash__(self) -> int:
        return hash(repr(self))


def phrase(cfg: Config) -> str:
    return f"layer {cfg.at or 'last'} of {cfg.run or cfg.model}" + (" (Gram matrix)" if cfg.gram else "")


def applies(data: DataSet, cfg: Config) -> str:
    return f"inputs of shape {data.shape} are not clips" if cfg.frames and len(data.shape) != 4 else ""


def state(cfg: Config) -> str:
    """What the cache depends on beside the settings: the weights themselves."""
    path = Path(cfg.run) / "model.safetensors" if cfg.run else Path(cfg.net.get("weights", ""))
    return f"{path.stat().st_mtime_ns}-{path.stat().st_size}" if path.is_file() else ""


@functools.lru_cache(maxsize=4)
def network(cfg: Config, weights: str, shape: tuple[int, ...], outputs: int) -> Any:
    """The network with its weights; `weights` tells one state of a run from another."""
    if cfg.model:
        given = dict(cfg.net)
        if not cfg.pretrained:
            given.pop("weights", None)
            if "pretrained" in {f.name for f in fields(network_named(cfg.model).config)}:
                given["pretrained"] = False
        make = maker(cfg.model, given, shape, outputs)
        with torch.random.fork_rng():
            torch.manual_seed(seed_of(cfg.seed, "layer"))
            return make().eval()
    path = Path(cfg.run)
    if not (path / "done.json").is_file():
        raise UserError(f"{cfg.run!r} is not a finished run")
    record = json.loads((path / "config.json").read_text(encoding="utf-8"))
    if tuple(record["data"]["shape"]) != shape:
        raise UserError(f"{cfg.run!r} was trained on inputs of shape {tuple(record['data']['shape'])}, these have {shape}")
    settings = record["config"]
    with without_first_weights():
        made = maker(settings["model_name"], settings["model"], shape, len(record["data"]["classes"]))()
    tensors, _ = checkpoint.read(path / "model.safetensors")
    made.load_state_dict({k.removeprefix("model."): t.float() for k, t in tensors.items() if k.startswith("model.")})
    return made.eval()


def features(data: DataSet, index: Tensor, x: Tensor, cfg: Config) -> Tensor:
    engine.keep_freed_memory()  # a network's maps are large, and the next batch needs the same
    made = network(cfg, state(cfg), data.shape[1:] if cfg.frames else data.shape, len(data.classes))
    assert isinstance(made, Model)
    x = normalise(x, data)
    if cfg.frames:
        return _read(made, x.flatten(0, 1), cfg).view(*x.shape[:2], -1).mean(1)
    return _read(made, x, cfg)


def _read(made: Model, x: Tensor, cfg: Config) -> Tensor:
    h = made.features(x, cfg.at)
    if h.ndim <= 2 and cfg.gram:
        raise UserError(
            f"layer {cfg.at or made.layers[-1]} has no places for a Gram matrix; name a map with at=, such as {made.layers[0]}"
        )
    if h.ndim <= 2:
        return h.flatten(1)
    if not cfg.gram:
        return h.flatten(2).mean(2)
    flat = h.flatten(2)
    gram = flat @ flat.transpose(1, 2) / (flat.shape[1] * flat.shape[2])
    rows, columns = torch.triu_indices(gram.shape[1], gram.shape[1])
    return gram[:, rows, columns]
