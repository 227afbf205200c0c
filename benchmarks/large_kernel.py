"""Large kernels in the frequency domain against torch's own convolutions: rebias-conv, and single layers.

python -m benchmarks large_kernel [--batch 256] [--rounds 3] [--grid]

Forward and backward of the whole kernel-7 network at 28x28, one thread, in alternating rounds; then the error of one layer against
double precision. --grid measures many sizes of one layer and whether the rule that chooses between the two is right.
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks._registry import Figure, in_turn, median, ratio
from unskew.core.engine import keep_freed_memory
from unskew.models import rebias_conv
from unskew.models._contract import maker
from unskew.nn import large_kernel
from unskew.nn.large_kernel import convolve, from_rows_last, pays, to_rows_last

GRID = [
    (28, 7, 16, 64), (28, 7, 8, 64), (28, 7, 32, 8), (14, 7, 32, 64), (8, 7, 32, 64), (28, 5, 32, 64), (28, 5, 16, 64), (14, 5, 16, 64),
    (56, 7, 16, 16), (96, 7, 16, 8), (28, 9, 16, 64), (28, 7, 3, 64), (28, 5, 4, 64), (8, 5, 8, 64),
]  # fmt: skip


def figures(words):
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--batch", type=int, default=256)
    asked.add_argument("--rounds", type=int, default=3)
    asked.add_argument("--grid", action="store_true")
    given = asked.parse_args(words)
    torch.set_num_threads(1)
    keep_freed_memory()
    model = maker("rebias-conv", {}, (3, 28, 28), 10)()
    x, y = torch.rand(given.batch, 3, 28, 28), torch.randint(0, 10, (given.batch,))

    def step(frequencies):
        rebias_conv.pays = lambda *_: frequencies
        large_kernel.AHEAD_ALONE = float("inf")
        model.zero_grad()
        F.cross_entropy(model(x), y).backward()

    was = rebias_conv.pays, large_kernel.AHEAD_ALONE
    times = in_turn({"torch": lambda: step(False), "ours": lambda: step(True)}, given.rounds)
    rebias_conv.pays, large_kernel.AHEAD_ALONE = was
    more = {name: median(t) for name, t in times.items()} | {"batch": given.batch}
    what = "rebias-conv, kernel 7, 28x28, forward and backward: torch's own convolutions over ours"
    yield Figure("large kernels", what, ratio(times["torch"], times["ours"]), least=3.0, more=more)
    ours, theirs = errors(convolution_of(ours_of)), errors(convolution_of(torchs_of))
    what = "one layer, 64 to 128 channels: error against double precision, ours over torch's, the worst of output and gradients"
    yield Figure("large kernels: rounding", what, max(a / b for a, b in zip(ours, theirs, strict=True)), most=1.0,
                 more={"ours": ours, "torch": theirs})  # fmt: skip
    if given.grid:
        yield grid()


def ours_of(x, w):
    return from_rows_last(convolve(to_rows_last(x), w))


def torchs_of(x, w):
    return F.conv2d(x, w, padding=w.shape[-1] // 2)


def convolution_of(f):
    def run(x, w, slope):
        x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
        y = f(x, w)
        return y.detach(), *torch.autograd.grad(y, (x, w), slope)

    return run


def errors(run):
    g = torch.Generator().manual_seed(0)
    given = [torch.randn(shape, generator=g) for shape in ((32, 64, 28, 28), (128, 64, 7, 7), (32, 128, 28, 28))]
    exact = convolution_of(torchs_of)(*[t.double() for t in given])
    return [float((a.double() - b).norm() / b.norm()) for a, b in zip(run(*given), exact, strict=True)]


def grid():
    """How many sizes are decided wrongly, and what the worst mistake costs."""
    cases, worst = {}, 1.0
    for n, k, channels, batch in GRID:
        conv = nn.Conv2d(channels, max(channels, 8), k, padding=k // 2)
        x = torch.randn(batch, channels, n, n, requires_grad=True)
        slope = torch.randn(batch, conv.out_channels, n, n)
        last, back = to_rows_last(x.detach()).requires_grad_(), to_rows_last(slope)
        forms = {
            "torch": lambda conv=conv, x=x, slope=slope: conv(x).backward(slope),
            "ours": lambda conv=conv, x=last, slope=back: convolve(x, conv.weight, conv.bias).backward(slope),
        }
        times = in_turn(forms, 3)
        faster, chosen = ratio(times["torch"], times["ours"]), pays(x, [conv])
        cases[f"{n}x{n} kernel {k}, {channels} channels, batch {batch}"] = [round(faster, 2), chosen]
        worst = max(worst, 1 / faster if chosen else faster)
    what = "single layers of 14 sizes: the most that the rule which chooses between the two loses"
    return Figure("large kernels: choice", what, worst, most=2.0, more=cases)
