"""The weights of a finished run, and whether those of two are the same to the bit."""

from pathlib import Path

import torch

from unskew.core import checkpoint


def weights(run):
    return checkpoint.read(Path(run) / "model.safetensors")[0]


def same(a, b):
    one, two = weights(a), weights(b)
    assert one.keys() == two.keys()
    for k in one:
        torch.testing.assert_close(one[k], two[k], msg=k, rtol=0, atol=0)
