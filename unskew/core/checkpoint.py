"""The state of a run as one safetensors file: never unpickled, never half-written.

It holds weights, buffers (including a method's per-sample state) and optimiser moments; a JSON header holds the step and the
rest. Random streams, schedule and sampler position are functions of (seed, step), so they are not stored. A checksum tells a file
that was damaged since, which would otherwise be weights like any others.
"""

import json
import math
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn
from torch.optim import Optimizer

from unskew.core.errors import UserError
from unskew.core.files import replacing
from unskew.core.interrupts import interrupted_later

CHECKSUM = "crc32"  # among the facts of a file


def save(path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    ready = {k: t.detach().cpu().contiguous().clone() for k, t in tensors.items()}
    about = json.dumps({**facts, CHECKSUM: _checksum(ready, facts)})  # in one entry: the order of several is left to chance
    with interrupted_later():
        raw = to_bytes(ready, metadata={"unskew": about})
    with replacing(path) as part:
        part.write_bytes(raw)  # a full disk then raises an ordinary OSError


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        with interrupted_later(), safe_open(path, framework="pt") as opened:
            facts = json.loads((opened.metadata() or {}).get("unskew", "{}"))
            tensors = {k: opened.get_tensor(k) for k in opened.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is not a usable weights file: {error}") from None
    if not isinstance(facts, dict):
        raise UserError(f"{path} is not a usable weights file: its facts are {type(facts).__name__}, not a table")
    written = facts.pop(CHECKSUM, None)
    if written is not None and written != _checksum(tensors, facts):  # files of others have none
        raise UserError(
            f"{path} is not a usable weights file: it was damaged after it was written; remove it and run the command again"
        )
    return tensors, facts


def _checksum(tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> str:
    """Of the facts and of every number, whatever the order of the tensors."""
    value = zlib.crc32(json.dumps(facts).encode())
    for name in sorted(tensors):
        raw = tensors[name].contiguous().reshape(-1).view(torch.uint8).numpy()
        value = zlib.crc32(raw.tobytes(), zlib.crc32(name.encode(), value))
    return f"{value:08x}"


def pack(method: nn.Module, optimizers: dict[str, Optimizer]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Everything a later process needs to resume, as tensors and plain facts."""
    tensors = {f"method.{k}": t for k, t in method.state_dict().items()}
    groups: dict[str, Any] = {}
    for name, optimizer in optimizers.items():
        state = optimizer.state_dict()
        groups[name] = {"param_groups": state["param_groups"], "plain": {}}
        for p, entries in state["state"].items():
            for key, value in entries.items():
                if isinstance(value, Tensor):
                    tensors[f"optim.{name}.{p}.{key}"] = value
                else:
                    groups[name]["plain"][f"{p}.{key}"] = value
    return tensors, {"optimizers": groups}


def unpack(tensors: dict[str, Tensor], facts: dict[str, Any], method: nn.Module, optimizers: dict[str, Optimizer]) -> None:
    method.load_state_dict({k.removeprefix("method."): t for k, t in tensors.items() if k.startswith("method.")})
    for name, optimizer in optimizers.items():
        saved = facts["optimizers"][name]
        state: dict[int, dict[str, Any]] = {}
        prefix = f"optim.{name}."
        for key, tensor in tensors.items():
            if key.startswith(prefix):
                p, _, entry = key.removeprefix(prefix).partition(".")
                state.setdefault(int(p), {})[entry] = tensor
        for key, value in saved["plain"].items():
            p, _, entry = key.partition(".")
            state.setdefault(int(p), {})[entry] = value
        groups = _groups(optimizer, name, saved["param_groups"])
        _check_moments(optimizer, name, state)
        optimizer.load_state_dict({"state": state, "param_groups": groups})


def _groups(optimizer: Optimizer, name: str, saved: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The optimiser's own groups with the saved learning rates; raises if a setting differs. Versions of torch name them differently."""
    own: list[dict[str, Any]] = optimizer.state_dict()["param_groups"]
    plain = [{k: list(v) if isinstance(v, tuple) else v for k, v in group.items()} for group in own]
    same = len(saved) == len(own) and all(
        b[k] == a[k] for a, b in zip(plain, saved, strict=True) for k in a if k in b and k != "lr"
    )
    rates = [group.get("lr", mine["lr"]) for group, mine in zip(saved, own, strict=False)]
    if not same or not all(isinstance(lr, float | int) and math.isfinite(lr) for lr in rates):
        raise UserError(f"its optimiser {name!r} has other settings than this training")
    return [{**group, "lr": lr} for group, lr in zip(own, rates, strict=True)]


def _check_moments(optimizer: Optimizer, name: str, state: dict[int, dict[str, Any]]) -> None:
    """Raise unless the saved moments fit the parameters."""
    shapes = [p.shape for group in optimizer.param_groups for p in group["params"]]
    known = set(state) <= set(range(len(shapes))) and len({tuple(sorted(one)) for one in state.values()}) <= 1
    tensors = [(p, t) for p, one in state.items() for t in one.values() if isinstance(t, Tensor)]
    if not known or not all(t.ndim == 0 or t.shape == shapes[p] for p, t in tensors):
        raise UserError(f"the moments of its optimiser {name!r} do not fit the network")


def load_weights(path: Path, module: nn.Module) -> None:
    """Load the weights of a file into a module that must match them exactly."""
    tensors, _ = read(path)
    own = module.state_dict()
    wrong = [k for k in own if k not in tensors or tensors[k].shape != own[k].shape]
    extra = [k for k in tensors if k not in own]
    if wrong or extra:
        raise UserError(
            f"{path} holds the weights of another architecture: {(wrong or extra)[0]!r} "
            f"{'is missing or has another shape' if wrong else 'is not in this model'}"
        )
    module.load_state_dict(tensors)
