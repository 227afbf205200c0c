r"""overlay: a mark that is the same in many pictures, at the same place near an edge: a logo, a stamp, a ruler, a frame, a watermark.

.. math::  r = \mathrm{clip}\Big(\frac{x - \bar x}{\sigma}\Big), \qquad C_b = \frac1n \sum_i r_{ib} r_{ib}^\top, \qquad
           C_b w = \lambda\, \bar C_{-b}\, w, \quad w^\top \bar C_{-b}\, w = 1, \qquad \phi_{ib} = (w \cdot r_{ib},\ |w \cdot r_{ib}|)

r are the pixels of a block of 8 x 8 less the mean of their neighbours, in local standard deviations. What pictures show has the same
statistics in every block, so the largest lambda is near 1; a mark makes one block unlike the others (C-bar, the mean of the others at
the same corner). Blocks near the edge are kept where lambda exceeds three times what a sample of n rows gives by chance. Nothing is kept
where the subject itself may look like a mark: if some blocks in the middle of the pictures are unlike the others too (subjects that are
aligned), if most blocks are (a camera that never moves), or if the edges are much quieter than the middle (a plain ground that the
subject reaches into).
No label is used. Corners are looked at as they are, and reduced to a short side of 96 to 191 pixels.

Source: made here; the largest generalised eigenvalue is Fisher's, and chance is Marchenko and Pastur's edge, 1967.
Differs: nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unskew.data.dataset import DataSet
from unskew.data.native import Floats, Picture
from unskew.representations._contract import pictures_only

PIXELS, CONTENT, FOREIGN, CACHED, PROBE = True, False, True, False, True
VARIANTS: tuple[dict[str, str], ...] = ({},)
BLOCK = 8
SIDE = 48  # pixels of a corner
LIMIT = 3.0  # of a residual, in local standard deviations
STEPS = 40  # of a residual that is kept as a byte, for each standard deviation
REDUCED = 96  # pixels of the short side, at least, after reduction
PLACES = 8  # blocks that are kept
SAMPLE = 2000  # rows from which marks are estimated
LEAST_ROWS = 60
ABOVE_CHANCE = 3.0
ABOVE_MIDDLE = 2.5  # times the lambda that is usual in the middle of the pictures
ALIGNED = (
    2.2  # times chance, or what is usual in the middle: a lambda there above it shows aligned subjects; photographs reach 1.8
)
QUIET = 0.4  # of the energy in the middle: with a tenth of the blocks near the edge below it, the ground is plain
RIDGE = 0.05  # of the mean variance: keeps flat blocks from counting
FARTHEST = 6.0  # of a score; pictures without the mark have a standard deviation of 1

_GREY = np.array([0.299, 0.587, 0.114], dtype=np.float32)
_NEAR = np.minimum.outer(np.arange(SIDE // BLOCK), np.arange(SIDE // BLOCK)) < 2  # blocks within 16 pixels of an edge
CORNER = int(_NEAR.sum())  # blocks of a corner
MIDDLE = 16  # blocks of the middle, 4 x 4
BLOCKS = 4 * CORNER + MIDDLE  # of one scale
CORNERS = 4 * (SIDE + 2) ** 2  # pixels of the corners, with two more along each side for the neighbours
INNER = 4 * BLOCK + 2  # pixels of a side of the middle, with neighbours
TOGETHER = 8  # pictures whose residuals are computed at once


@dataclass(frozen=True)
class Config:
    """No settings."""


def phrase(cfg: Config) -> str:
    return "a shared mark at the edge"


def applies(data: DataSet, cfg: Config) -> str:
    return pictures_only(data, 2 * BLOCK * 4)


def look(picture: Picture, cfg: Config) -> NDArray[np.int8]:
    blocks: NDArray[np.int8] = finish(note(picture, cfg)[None], cfg)[0]
    return blocks


def note(picture: Picture, cfg: Config) -> Floats:
    """Brightness of the parts that are looked at, of both scales; of a small picture there is no second one."""
    side = min(picture.pixels.shape[:2])
    shown = picture.grey if picture.window is picture.pixels else picture.pixels  # of a large one only parts are needed
    first, by = _parts(shown, 1), side // REDUCED
    return np.stack([first, _parts(shown, by) if by > 1 else np.zeros_like(first)])


def finish(noted: Floats, cfg: Config) -> NDArray[np.int8]:
    """(B, 2 * BLOCKS * 64) residuals of the blocks at the four corners and in the middle, in steps of 1/40. Several pictures at
    once: for one, calls take longer than the sums in them; for all of a batch, the sums no longer fit the processor's cache."""
    return np.concatenate([_seen(some.reshape(-1, some.shape[2])).reshape(len(some), -1) for some in _few(noted)])


def _few(noted: Floats) -> Iterator[Floats]:
    return (noted[k : k + TOGETHER] for k in range(0, len(noted), TOGETHER))


def seen(pixels: NDArray[np.uint8] | Floats, by: int) -> NDArray[np.int8]:
    """The residuals of one picture at one scale."""
    blocks: NDArray[np.int8] = _seen(_parts(pixels, by)[None])[0]
    return blocks


def _parts(pixels: NDArray[np.uint8] | Floats, by: int) -> Floats:
    """What `_seen` needs of one scale: the corners, each turned so that its outermost pixel comes first, the middle, and three
    lengths: how far a corner reaches before the middle of a small picture, height and width of the middle.

    `pixels` is (H, W, 3), or the brightness (H, W).
    """
    high, wide = pixels.shape[:2]
    reach = min(SIDE, min(high, wide) // by // 2 // BLOCK * BLOCK)
    across = (reach + 2) * by
    turned = (pixels, pixels[:, ::-1], pixels[::-1], pixels[::-1, ::-1])
    outer: NDArray[Any] = np.stack([one[:across, :across] for one in turned])
    corners = _grey(outer, by)
    top, left = ((length - INNER * by) // 2 for length in (high, wide))
    middle = _grey(pixels[None, max(0, top) :, max(0, left) :][:, : INNER * by, : INNER * by], by)[0]
    parts: Floats = np.zeros(CORNERS + INNER * INNER + 3, dtype=np.float32)
    parts[:CORNERS].reshape(4, SIDE + 2, SIDE + 2)[:, : corners.shape[1], : corners.shape[2]] = corners
    parts[CORNERS:-3].reshape(INNER, INNER)[: middle.shape[0], : middle.shape[1]] = middle
    parts[-3:] = reach, *middle.shape
    return parts


def _seen(parts: Floats) -> NDArray[np.int8]:
    """(n, BLOCKS * 64) of the parts of several pictures or scales; blocks beyond the middle of a picture are 0."""
    corners = _steps(_residual(parts[:, :CORNERS].reshape(-1, SIDE + 2, SIDE + 2))[:, :SIDE, :SIDE])
    middle = _steps(_residual(parts[:, CORNERS:-3].reshape(-1, INNER, INNER))[:, 1:-1, 1:-1])
    reach, high, wide = parts[:, -3:].astype(int).T
    for k in (reach < SIDE).nonzero()[0]:
        corners[4 * k : 4 * k + 4, reach[k] :] = corners[4 * k : 4 * k + 4, :, reach[k] :] = 0
    for k in (np.minimum(high, wide) < INNER).nonzero()[0]:  # so small that the middle is all of it: it ends earlier
        whole = parts[k, CORNERS:-3].reshape(1, INNER, INNER)[:, : high[k], : wide[k]]
        middle[k] = 0
        if whole.size:
            part = _steps(_residual(whole)[0, 1 : INNER - 1, 1 : INNER - 1])
            middle[k, : part.shape[0], : part.shape[1]] = part
    near = _blocks(corners)[:, _NEAR.ravel()].reshape(len(parts), -1)
    return np.concatenate([near, _blocks(middle).reshape(len(parts), -1)], 1)


def _grey(pixels: NDArray[np.uint8] | Floats, by: int) -> Floats:
    """(n, h, w) brightness of parts (n, H, W, 3) or (n, H, W), reduced by a whole number."""
    grey: Floats = pixels if pixels.ndim == 3 else pixels.astype(np.float32) @ _GREY  # type: ignore[assignment]
    if by == 1:
        return grey
    rows, columns = grey.shape[1] // by, grey.shape[2] // by
    cut = grey[:, : rows * by, : columns * by]
    reduced: Floats = cut[:, ::by, ::by].copy()
    for down in range(by):
        for across in range(by):
            if down or across:
                reduced += cut[:, down::by, across::by]
    reduced *= np.float32(1 / (by * by))
    return reduced


def _residual(grey: Floats) -> Floats:
    """What the eight neighbours do not explain, in local standard deviations."""
    rest = grey - _around(grey)
    spread = _around(rest * rest)
    np.sqrt(spread, out=spread)
    spread += 1
    rest /= spread
    return np.clip(rest, -LIMIT, LIMIT, out=rest)


def _around(grey: Floats) -> Floats:
    """Mean of 3 x 3 pixels of several pictures (n, H, W); the outermost are repeated."""
    lines = np.empty(grey.shape, dtype=np.float32)
    np.add(grey[:, 1:-1], grey[:, :-2], out=lines[:, 1:-1])
    lines[:, 1:-1] += grey[:, 2:]
    lines[:, 0] = grey[:, 0] + grey[:, 1] + grey[:, 0]
    lines[:, -1] = grey[:, -1] + grey[:, -2] + grey[:, -1]
    mean = np.empty_like(lines)
    # As if the lines were one: four times as fast as line by line. Where one ends and the next begins is put right afterwards.
    flat, sums = lines.ravel(), mean.ravel()
    np.add(flat[1:-1], flat[:-2], out=sums[1:-1])
    sums[1:-1] += flat[2:]
    mean[..., 0] = lines[..., 0] + lines[..., 1] + lines[..., 0]
    mean[..., -1] = lines[..., -1] + lines[..., -2] + lines[..., -1]
    mean *= np.float32(1 / 9)
    return mean


def _steps(rest: Floats) -> NDArray[np.int8]:
    steps: NDArray[np.int8] = np.rint(rest * np.float32(STEPS)).astype(np.int8)
    return steps


def _blocks(squares: NDArray[np.int8]) -> NDArray[np.int8]:
    """(n, blocks, 64) of squares (n, side, side)."""
    number, side, _ = squares.shape
    count = side // BLOCK
    return squares.reshape(number, count, BLOCK, count, BLOCK).swapaxes(2, 3).reshape(number, count * count, BLOCK * BLOCK)


Mark = tuple[float, int, Tensor, int]  # lambda, block, w and scale


def learn(block: Tensor, y: Tensor, cfg: Config) -> list[Mark]:
    """The marks that most of these rows share, the plainest first."""
    if len(block) < LEAST_ROWS:
        return []
    some = torch.linspace(0, len(block) - 1, min(SAMPLE, len(block))).long()
    rest = block[some].reshape(len(some), -1, BLOCKS, BLOCK * BLOCK)
    found = [(*one, scale) for scale in range(rest.shape[1]) for one in unlike(rest[:, scale].float() / STEPS)]
    return sorted(found, key=lambda one: -one[0])[:PLACES]


def score(learnt: list[Mark], block: Tensor, place: Tensor, cfg: Config) -> Tensor:
    """(n, 16) score of every row for the blocks that hold a mark, signed and not; 0 where there are fewer."""
    rest = block.reshape(len(block), -1, BLOCKS, BLOCK * BLOCK)
    scores = torch.zeros(len(rest), PLACES)
    for k, (_, at, w, scale) in enumerate(learnt):
        scores[:, k] = (rest[:, scale, at].float() / STEPS @ w).clamp(-FARTHEST, FARTHEST)
    return torch.cat([scores, scores.abs()], 1)


def unlike(rest: Tensor) -> list[tuple[float, int, Tensor]]:
    """(lambda, block, w) of the blocks near the edge of one scale (n, blocks, 64) that hold a mark."""
    chance = (1 + (rest.shape[2] / len(rest)) ** 0.5) ** 2
    second = torch.einsum("nbd,nbe->bde", rest, rest) / len(rest)
    energy = second.diagonal(dim1=1, dim2=2).sum(1)
    edge, inside = energy[: 4 * CORNER], energy[4 * CORNER :]
    found: list[tuple[float, int, Tensor]] = []
    if not bool((edge > 0).any()) or edge[edge > 0].quantile(0.1) < QUIET * inside.median():
        return found
    for corner in range(4):
        found += _leading(second[corner * CORNER : (corner + 1) * CORNER], corner * CORNER)
    middle = sorted(one for one, _, _ in _leading(second[4 * CORNER :], 0))
    usual = middle[len(middle) // 2] if middle else 1.0
    lowest = middle[len(middle) // 4] if middle else 1.0  # above chance where noise, say, differs from picture to picture
    if middle and middle[-1] > ALIGNED * max(chance, lowest):
        return []
    kept = [one for one in found if one[0] > max(ABOVE_CHANCE * chance, ABOVE_MIDDLE * usual)]
    return kept if 2 * len(kept) < len(found) else []


def _leading(second: Tensor, first: int) -> list[tuple[float, int, Tensor]]:
    """(lambda, first + block, w) of every block that is not empty, against the mean of the others."""
    there = (second.diagonal(dim1=1, dim2=2).sum(1) > 0).nonzero().flatten()
    if len(there) < 3:
        return []
    mine = second[there].double()
    base = (mine.sum(0) - mine) / (len(mine) - 1)
    level = base.diagonal(dim1=1, dim2=2).mean(1)
    base = base + RIDGE * level[:, None, None] * torch.eye(base.shape[1], dtype=base.dtype)
    lower = torch.linalg.cholesky(base)
    half = torch.linalg.solve_triangular(lower, mine, upper=False)
    whitened = torch.linalg.solve_triangular(lower, half.mT, upper=False)
    values, vectors = torch.linalg.eigh((whitened + whitened.mT) / 2)
    w = torch.linalg.solve_triangular(lower.mT, vectors[:, :, -1:], upper=True)[:, :, 0].float()
    return [(float(values[k, -1]), first + int(there[k]), w[k]) for k in range(len(there))]
