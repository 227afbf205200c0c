"""Weights from a file, opened without running any code in it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from unskew.core.errors import UserError
from unskew.core.interrupts import interrupted_later

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, as torchvision's weights expect
_wanted = True


class ImageNetScale(nn.Module):
    """Inputs (..., 3, height, width) scaled by ImageNet's mean and standard deviation; adds nothing to the state dict."""

    mean: Tensor
    deviation: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(MEAN).view(3, 1, 1), persistent=False)
        self.register_buffer("deviation", torch.tensor(DEVIATION).view(3, 1, 1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.deviation


def input_scale(normalise: str, weights: str, channels: int) -> nn.Module:
    """The scaling that `model.normalise` asks for; auto scales if there are weights."""
    if weights and channels != 3:
        raise UserError(f"model.weights needs inputs of three channels, got {channels}")
    wanted = normalise == "imagenet" or (normalise == "auto" and bool(weights))
    if wanted and channels != 3:
        raise UserError(f"model.normalise=imagenet needs inputs of three channels, got {channels}")
    return ImageNetScale() if wanted else nn.Identity()


@contextmanager
def without_first_weights() -> Iterator[None]:
    """Inside, networks are built without their initial weights: a finished run's weights follow, and the file may be gone."""
    global _wanted
    before, _wanted = _wanted, False
    try:
        yield
    finally:
        _wanted = before


def load_weights(network: nn.Module, find: Callable[[], Path], head: str, rename: tuple[str, str] = ("", "")) -> None:
    """Load a state dict strictly. A head for another number of classes keeps its initial values.

    `rename` maps a prefix of the file's names to a prefix of the network's.
    """
    if not _wanted:
        return
    path = find()
    theirs, ours = rename
    state = {ours + n.removeprefix(theirs) if n.startswith(theirs) else n: t for n, t in read_state(path).items()}
    own = network.state_dict()
    for name in [n for n in state if n.startswith(f"{head}.")]:
        if name in own and own[name].shape != state[name].shape:
            state[name] = own[name]
    missing, surplus = sorted(set(own) - set(state)), sorted(set(state) - set(own))
    # Files saved before torch counted batches lack this; nothing depends on it.
    missing = [n for n in missing if not n.endswith("num_batches_tracked")]
    if missing or surplus:
        raise UserError(
            f"{path}: weights of another network: missing {_some(missing)}; unknown {_some(surplus)}; "
            "the keys must be torchvision's"
        )
    state = {n: inflated(t, own[n]) if n in own else t for n, t in state.items()}
    wrong = [n for n in state if own[n].shape != state[n].shape]
    if wrong:
        n = wrong[0]
        raise UserError(
            f"{path}: {n} has shape {tuple(state[n].shape)}, but the network needs {tuple(own[n].shape)}; "
            "check model.depth and model.width"
        )
    network.load_state_dict(state, strict=False)


def inflated(kernel: Tensor, like: Tensor) -> Tensor:
    """The kernel of an image as one of clips: repeated over the frames, divided by their number; anything else as it is.

    >>> inflated(torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 2, 2, 2)).sum().item()
    4.0
    """
    if kernel.ndim != 4 or like.ndim != 5:
        return kernel
    frames = like.shape[2]
    return kernel[:, :, None].expand(-1, -1, frames, -1, -1) / frames


def read_state(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise UserError(f"no weights at {path}; name a .pth or .safetensors state-dict file")
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            with interrupted_later():
                return dict(load_file(path))
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # each reader raises its own errors for a file of another format
        raise UserError(f"{path} is not a state dict that can be opened safely ({_reason(error)})") from None
    state = state.get("state_dict", state) if isinstance(state, dict) else state
    if not isinstance(state, dict) or not all(isinstance(k, str) and isinstance(v, torch.Tensor) for k, v in state.items()):
        raise UserError(f"{path} does not hold a state dict")
    return state


def _reason(error: Exception) -> str:
    first = (str(error).splitlines() or [""])[0][:120]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def _some(names: list[str]) -> str:
    return "none" if not names else ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
