"""Does training wait for its images? 5,000 generated JPEGs of 224 pixels, streamed from disk through a narrow ResNet-18.

python -m benchmarks stream_images [--images 5000] [--width 16]

Prints the share of the time, after a warm-up, that the loop spent waiting for the loader (the aim is at most 10 %). Two decoding
workers.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from benchmarks._registry import Figure
from unskew.core.engine import keep_freed_memory
from unskew.data import load
from unskew.data.loader import stream_rows
from unskew.models._contract import maker

BATCH, WARM_UP = 64, 8


def figures(words):
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--images", type=int, default=5000)
    asked.add_argument("--width", type=int, default=16)
    given = asked.parse_args(words)
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as home:
        write(Path(home), given.images)
        data = load(home, mode="stream", workers=2)
        model = maker("resnet", {"width": given.width}, data.shape, len(data.classes))()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        order = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))
        waited = worked = 0.0
        clock = time.perf_counter()
        for step, (index, x, _) in enumerate(stream_rows(data.inputs, list(torch.split(order, BATCH)), 2)):
            got = time.perf_counter()
            ready = x.float().div_(255).contiguous(memory_format=torch.channels_last)
            torch.nn.functional.cross_entropy(model(ready), data.y[index]).backward()
            optimizer.step()
            optimizer.zero_grad()
            done = time.perf_counter()
            if step >= WARM_UP:
                waited, worked = waited + got - clock, worked + done - got
            clock = done
        share = waited / (waited + worked)
        what = f"share of the time that training waits for images streamed from disk, {len(data):,} JPEGs, ResNet-18 of width {given.width}"
        yield Figure("streaming", what, share, most=0.10, more={"seconds": waited + worked})


def write(home: Path, count: int) -> None:
    rng = np.random.default_rng(0)
    for k in range(count):
        folder = home / f"class {k % 4}"
        folder.mkdir(exist_ok=True)
        small = rng.integers(0, 256, (28, 28, 3), dtype=np.uint8)
        Image.fromarray(small).resize((224, 224), Image.Resampling.BILINEAR).save(folder / f"{k}.jpg", quality=90)
