"""Layers: a reversed gradient, and convolutions that keep within their memory."""

import subprocess
import sys

import torch
from torch import nn

from unskew.nn import GradientReversal, guard_convolutions


def test_gradient_reversal():
    x = torch.tensor([1.5, -2.0], requires_grad=True)
    y = GradientReversal(0.25)(x)
    assert torch.equal(y, x)
    (y * torch.tensor([3.0, 4.0])).sum().backward()
    assert x.grad.tolist() == [-0.75, -1.0]


def test_strided_pointwise_convolutions_are_the_same_and_do_not_write_beyond_their_memory():
    plain = nn.Conv2d(4, 8, 1, 2)
    guarded = guard_convolutions(nn.Sequential(nn.Conv2d(4, 8, 1, 2)))
    guarded[0].load_state_dict(plain.state_dict())
    x = torch.rand(3, 4, 9, 7)
    torch.testing.assert_close(guarded(x), plain(x))
    other = guard_convolutions(nn.Sequential(nn.Conv2d(4, 8, 3, 2, 1), nn.Conv2d(4, 8, 1)))
    assert [type(c) for c in other] == [nn.Conv2d, nn.Conv2d]
    # In a process of its own: the plain one kills it.
    code = (
        "import torch; from unskew.models._contract import maker; torch.manual_seed(0); "
        "m = maker('resnet', {'width': 4}, (3, 32, 32), 8)(); x = torch.rand(64, 3, 32, 32).contiguous(memory_format=torch.channels_last);"
        "[m(x).square().mean().backward() for _ in range(6)]; print('whole')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "whole", done.stderr
