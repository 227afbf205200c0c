"""A trained network for use without unskew: it takes inputs in [0, 1], a batch at a time, and returns logits."""

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from unskew.core.errors import UserError
from unskew.core.files import replacing
from unskew.methods._contract import Method

CLOSE = 1e-3  # the largest difference between logits, against the largest logit, that rounding may make


class Portable(nn.Module):
    """What a method predicts, as one function of its inputs."""

    def __init__(self, method: Method) -> None:
        super().__init__()
        self.method = method.requires_grad_(False)
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        return self.method.predict(x)


def example(shape: tuple[int, ...], rows: int, dtype: torch.dtype) -> Tensor:
    """Inputs that are neither constant nor all alike."""
    return torch.rand(rows, *shape, dtype=dtype, generator=torch.Generator().manual_seed(rows))


def write_torchscript(model: Portable, shape: tuple[int, ...], path: Path) -> str:
    """The traced network; torch alone can run it."""
    dtype = next(model.parameters()).dtype
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # branches on shapes, which do not change; the result is compared below
        traced = torch.jit.freeze(torch.jit.trace(model, example(shape, 2, dtype), check_trace=False))  # type: ignore[no-untyped-call]
    with replacing(path) as part:
        traced.save(str(part))
        opened = torch.jit.load(str(part))  # type: ignore[no-untyped-call]
        _compare(lambda x: opened(x), model, shape, dtype)
    return ""


def write_onnx(model: Portable, shape: tuple[int, ...], path: Path) -> str:
    """The network as one ONNX file with a free number of rows."""
    try:
        import onnx  # noqa: F401 - torch's exporter needs both
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise UserError(f"--as onnx needs the package {error.name}: pip install 'unskew[onnx]'") from None
    dtype = next(model.parameters()).dtype
    with replacing(path) as part:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                model, (example(shape, 2, dtype),), str(part), input_names=["input"], output_names=["logits"], dynamo=True,
                dynamic_shapes=({0: torch.export.Dim("rows")},), external_data=False, verbose=False,
            )  # fmt: skip
        try:
            import onnxruntime
        except ImportError:
            return "not compared with the run: onnxruntime is not installed"
        session = onnxruntime.InferenceSession(str(part), providers=["CPUExecutionProvider"])
        _compare(lambda x: torch.from_numpy(session.run(None, {"input": x.numpy()})[0]), model, shape, dtype)
    return ""


def write_safetensors(model: Portable, shape: tuple[int, ...], path: Path) -> str:
    """The weights of the network that predicts, without those that only training needed."""
    from safetensors.torch import save_file

    with replacing(path) as part:
        save_file({name: tensor.contiguous() for name, tensor in model.method.model.state_dict().items()}, str(part))
    return ""


def _compare(run: Callable[[Tensor], Tensor], model: Portable, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """Raise unless what was written predicts as the run does, also for other numbers of rows."""
    with torch.no_grad():
        for rows in (1, 3):
            x = example(shape, rows, dtype)
            ours, theirs = model(x), run(x)
            worst = float((ours - theirs).abs().max() / ours.abs().max().clamp(min=1e-6))
            if ours.shape != theirs.shape or not worst <= CLOSE:
                raise UserError(
                    f"the exported network does not predict as the run does: logits differ by {worst:.2g} of the largest"
                )


WRITERS: Mapping[str, tuple[str, Callable[[Portable, tuple[int, ...], Path], str]]] = {
    "torchscript": ("model.pt", write_torchscript),
    "onnx": ("model.onnx", write_onnx),
    "safetensors": ("model.safetensors", write_safetensors),
}


def description(record: Mapping[str, Any]) -> dict[str, Any]:
    """How to feed the network, and how to read its logits."""
    data, cfg = record["data"], record["config"]
    return {
        "input": {"shape": ["rows", *data["shape"]], "range": [0, 1], "layout": "rows, channels, height, width"},
        "output": {"logits": data["classes"], "read_by": "sigmoid of each" if data["multi_label"] else "softmax over all"},
        "network": {"name": cfg["model_name"], "settings": cfg["model"]},
    }
