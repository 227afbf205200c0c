r"""layer: the output of any layer of any network: of a finished run, or of a network with initial weights, random or from a file.

.. math::  \phi = \mathrm{mean}_{hw}\, h_l(x), \qquad \text{or, with } \texttt{gram}: \quad
           \phi = \frac{1}{CHW} h_l(x)\, h_l(x)^\top

`layer:model=resnet,net.depth=50,net.weights=resnet50.pth,frames=true` is REPAIR's representation for the static bias of clips;
`layer:model=vgg16,net.weights=vgg16.pth,at=relu1_2,gram=true` is ReBias's texture.

Source: Bahng et al., ICML 2020 (Gram matrices of an early layer as texture); Li and Vasconcelos, CVPR 2019 (network features as
phi).
Differs: nothing.
"""

import functools
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from unskew.core import checkpoint, engine, registry
from unskew.core.errors import UserError
from unskew.core.rng import seed_of
from unskew.data.dataset import DataSet
from unskew.data.loader import normalise
from unskew.models._contract import Model, maker
from unskew.models._contract import load as network_named
from unskew.nn.weights import without_first_weights
from unskew.records import Run

PIXELS, CONTENT = True, True
VARIANTS: tuple[dict[str, str], ...] = ()  # only on request: the user chooses the network


@dataclass(frozen=True)
class Config:
    run: str = ""  # folder of a finished run
    model: str = ""  # or a network by name, with initial weights: random, or the ones it comes with (efficientnet-lite0)
    pretrained: bool = True  # false: random weights even if it comes with some
    net: dict[str, Any] = field(default_factory=dict)  # settings of that network: net.depth=50, net.weights=FILE
    frames: bool = False  # clips: an image network on every frame, averaged over time
    at: str = ""  # layer; empty: the last
    gram: bool = False  # use the Gram matrix of the layer
    seed: int = 0  # of random weights

    def __post_init__(self) -> None:
        if bool(self.run) == bool(self.model):
            raise UserError("representation layer: set either run=FOLDER or model=NAME")
        if self.run and self.net:
            raise UserError("representation layer: net.* are settings of model=NAME and cannot be combined with run")

    def __hash__(self) -> int:
        return hash(repr(self))


def phrase(cfg: Config) -> str:
    return f"layer {cfg.at or 'last'} of {cfg.run or cfg.model}" + (" (Gram matrix)" if cfg.gram else "")


def applies(data: DataSet, cfg: Config) -> str:
    return f"inputs of shape {data.shape} are not clips" if cfg.frames and len(data.shape) != 4 else ""


def state(cfg: Config) -> str:
    """What the cache depends on besides the settings: the weights."""
    path = Path(cfg.run) / "model.safetensors" if cfg.run else Path(cfg.net.get("weights", ""))
    return f"{path.stat().st_mtime_ns}-{path.stat().st_size}" if path.is_file() else ""


@functools.lru_cache(maxsize=4)
def network(cfg: Config, weights: str, shape: tuple[int, ...], outputs: int) -> Any:
    """The network with its weights; `weights` identifies the state of the file."""
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
    record = Run(path).whole
    if tuple(record["data"]["shape"]) != shape:
        raise UserError(f"{cfg.run!r} was trained on inputs of shape {tuple(record['data']['shape'])}, but these have {shape}")
    settings = record["config"]
    with without_first_weights(), registry.named_by(path / "config.json"):
        model = maker(settings["model_name"], settings["model"], shape, len(record["data"]["classes"]))()
    tensors, _ = checkpoint.read(path / "model.safetensors")
    model.load_state_dict({k.removeprefix("model."): t.float() for k, t in tensors.items() if k.startswith("model.")})
    return model.eval()


def features(data: DataSet, index: Tensor, x: Tensor, cfg: Config) -> Tensor:
    engine.keep_freed_memory()  # feature maps are large, and the next batch needs as much
    model = network(cfg, state(cfg), data.shape[1:] if cfg.frames else data.shape, len(data.classes))
    assert isinstance(model, Model)
    x = normalise(x, data)
    if cfg.frames:
        return _read(model, x.flatten(0, 1), cfg).view(*x.shape[:2], -1).mean(1)
    return _read(model, x, cfg)


def _read(model: Model, x: Tensor, cfg: Config) -> Tensor:
    h = model.features(x, cfg.at)
    if h.ndim <= 2 and cfg.gram:
        raise UserError(
            f"gram=true needs a layer that is a map, but {cfg.at or model.layers[-1]} is not; try at={model.layers[0]}"
        )
    if h.ndim <= 2:
        return h.flatten(1)
    if not cfg.gram:
        return h.flatten(2).mean(2)
    flat = h.flatten(2)
    gram = flat @ flat.transpose(1, 2) / (flat.shape[1] * flat.shape[2])
    rows, columns = torch.triu_indices(gram.shape[1], gram.shape[1])
    return gram[:, rows, columns]
