r"""Near-duplicate pictures: equal up to compression, size and a little brightness.

A perceptual hash finds candidates, a distance of small colour pictures decides:

.. math::  h = \big[\,c_{uv} > \operatorname{median}(c)\,\big]_{u,v<8}, \quad c = D g D^\top, \qquad
           d^2(a, b) = \operatorname{mean}\big((\hat a - \hat b)^2\big) = 2\,(1 - r_{ab})

=========  ============  ===========================================================================================
g          grey          the picture in grey, 32 x 32
D          _DCT          the first eight rows of the discrete cosine transform
h          code          64 bits; candidates differ in at most RADIUS of them
\hat a     small         the picture in colour, 16 x 16, minus its mean, over its standard deviation
r          -             correlation of the two small pictures
=========  ============  ===========================================================================================

Two pictures are near-duplicates if d^2 is a small share of what it is between rows drawn at random, in grey and in colour: where all
pictures are taken of the same scene, being alike takes more. A picture without structure is like no other, as its hash is noise.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.core.rng import numpy_stream

GREY, SMALL = 32, 16  # sides of the picture that is hashed, and of the one that is compared
RADIUS = 6  # bits by which the hashes of candidates may differ
GREY_SHARE, COLOUR_SHARE = 0.0075, 0.02  # of the usual distance between two rows, up to which they are alike
FLAT = 3.0  # standard deviation, out of 255, below which a picture has no structure
SHIFT, GAIN = 40.0, 1.5  # most by which the brightness (out of 255) and the contrast (as a ratio) of twins differ
MOST_PAIRS = (
    20_000_000  # candidates; a set with more has so many pictures alike that only neighbours in the order of hashes are compared
)
_BLOCK = 65_536  # pairs compared at a time
_NEIGHBOURS = 8

Codes = NDArray[np.uint64]
Ids = NDArray[np.int64]
Pictures = NDArray[np.float32]


def _dct() -> Pictures:
    u, x = np.arange(8)[:, None], np.arange(GREY)[None]
    return np.asarray(np.cos(np.pi * u * (2 * x + 1) / (2 * GREY)), dtype=np.float32)


_DCT = _dct()


@dataclass(frozen=True)
class Looks:
    """What is kept of every picture."""

    code: Codes  # (N,)
    small: NDArray[np.uint8]  # (N, 3 * SMALL * SMALL)
    usable: NDArray[np.bool_]  # (N,) could be read, and has structure


def looks(pictures: NDArray[np.uint8], readable: NDArray[np.bool_]) -> Looks:
    """Pictures (N, 3, 32, 32) as hashes and smaller pictures."""
    n = len(pictures)
    grey = pictures.astype(np.float32).mean(1)
    small = pictures.reshape(n, 3, SMALL, 2, SMALL, 2).mean((3, 5), dtype=np.float32)
    usable = readable & (small.reshape(n, -1).std(1) >= FLAT)
    return Looks(perceptual_hash(grey), np.rint(small).astype(np.uint8).reshape(n, -1), usable)


def joined(parts: list[Looks]) -> Looks:
    """The rows of several, in order."""
    return Looks(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("code", "small", "usable")))


def perceptual_hash(grey: Pictures) -> Codes:
    """64 bits for each grey picture (N, 32, 32): which of the lowest frequencies lie above their median.

    >>> ramp = np.arange(32.0, dtype=np.float32)[None, None].repeat(32, 1)
    >>> bool((perceptual_hash(ramp) == perceptual_hash(0.5 * ramp + 100)).all())  # brightness and contrast do not count
    True
    """
    waves = (_DCT @ grey @ _DCT.T).reshape(len(grey), 64)
    waves = np.round(waves, 2)  # frequencies that a picture lacks are 0, not rounding errors of either sign
    bits = waves > np.median(waves[:, 1:], axis=1, keepdims=True)
    bits[:, 0] = False  # the mean: brightness
    return np.packbits(bits, axis=1).view(np.uint64).ravel()


def bits_apart(a: Codes, b: Codes) -> NDArray[np.int64]:
    """The number of bits in which codes differ.

    >>> bits_apart(np.array([0, 7], dtype=np.uint64), np.array([2**63, 7], dtype=np.uint64)).tolist()
    [1, 0]
    """
    return np.asarray(_SET_BITS[(a ^ b)[:, None].view(np.uint16)].sum(1))


_SET_BITS = np.array([k.bit_count() for k in range(1 << 16)], dtype=np.int64)


def candidates(code: Codes, radius: int = RADIUS) -> Iterator[tuple[Ids, Ids]]:
    """Blocks of pairs i < j whose codes differ in at most `radius` < 8 bits.

    Of four pieces of 16 bits, at least one differs in no more than one bit, so rows are looked up by piece, with one bit turned or
    none, instead of compared with all others.
    """
    pieces = np.ascontiguousarray(code)[:, None].view(np.uint16)
    turns = np.array([0, *(1 << k for k in range(16))], dtype=np.uint16)
    orders = pieces.argsort(0, kind="stable")
    spans, pairs = [], 0
    for k in range(4):
        order = orders[:, k]
        keys = pieces[order, k]
        for turn in turns:
            first, last = (np.searchsorted(keys, pieces[:, k] ^ turn, side) for side in ("left", "right"))
            pairs += int((last - first).sum())
            spans.append((order, first, last))
        if pairs > MOST_PAIRS:
            yield from _neighbours(code)
            return
    for order, first, last in spans:
        for i, j in _expanded(order, first, last):
            near = (i < j) & (bits_apart(code[i], code[j]) <= radius)
            if near.any():
                yield i[near], j[near]


def _expanded(order: Ids, first: Ids, last: Ids) -> Iterator[tuple[Ids, Ids]]:
    """Every row i with each of order[first[i]:last[i]], in blocks of bounded size."""
    ends = (last - first).cumsum()
    start = 0
    while start < len(first):
        done = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + 16 * _BLOCK, "right")))
        sizes = (last - first)[start:stop]
        i = np.repeat(np.arange(start, stop), sizes)
        offset = np.arange(len(i)) - np.repeat(sizes.cumsum() - sizes, sizes)
        yield i, order[np.repeat(first[start:stop], sizes) + offset]
        start = stop


def _neighbours(code: Codes) -> Iterator[tuple[Ids, Ids]]:
    """Rows next to each other when sorted by their code, from each of its four pieces on."""
    for k in range(4):
        turned = (code << np.uint64(16 * k)) | (code >> np.uint64((64 - 16 * k) % 64)) if k else code
        order = turned.argsort(kind="stable")
        for gap in range(1, _NEIGHBOURS + 1):
            i, j = np.minimum(order[:-gap], order[gap:]), np.maximum(order[:-gap], order[gap:])
            near = bits_apart(code[i], code[j]) <= RADIUS
            yield i[near], j[near]


def squared_distance(a: Pictures, b: Pictures) -> Pictures:
    """d^2 of pairs of pictures (P, D), whatever their brightness and contrast.

    >>> up = np.arange(5, dtype=np.float32)[None]
    >>> squared_distance(up, 2 * up + 3).round(6).tolist(), squared_distance(up, -up).round(6).tolist()  # r = 1, r = -1
    ([0.0], [4.0])
    """
    a, b = a - a.mean(1, keepdims=True), b - b.mean(1, keepdims=True)
    size = np.sqrt((a * a).sum(1) * (b * b).sum(1))
    return np.asarray(2 - 2 * (a * b).sum(1) / np.maximum(size, 1e-6))


def distances(small: NDArray[np.uint8], i: Ids, j: Ids, of_grey: float = 1.0, of_colour: float = 1.0) -> Pictures:
    """The larger of the distances in grey and in colour, each over its unit; infinite where brightness or contrast differ too much."""
    out = np.empty(len(i), dtype=np.float32)
    for start in range(0, len(i), _BLOCK // 4):
        part = slice(start, start + _BLOCK // 4)
        a, b = small[i[part]].astype(np.float32), small[j[part]].astype(np.float32)
        grey = squared_distance(*(x.reshape(len(x), 3, -1).mean(1) for x in (a, b)))
        std_a, std_b = a.std(1), b.std(1)
        ratio = np.maximum(std_a, std_b) / np.maximum(np.minimum(std_a, std_b), 1e-6)
        other = (np.abs(a.mean(1) - b.mean(1)) > SHIFT) | (ratio > GAIN)
        out[part] = np.where(other, np.inf, np.maximum(grey / of_grey, squared_distance(a, b) / of_colour))
    return out


def usual_distances(small: NDArray[np.uint8]) -> tuple[float, float]:
    """d^2 in grey and in colour between rows drawn at random: their upper quartiles, each between 0.1 and 2 (unrelated pictures).

    Both are needed: digits in ten colours are far apart in colour, and yet two sevens in the same colour are two sevens.
    """
    n, rng = len(small), numpy_stream(0, "alike")
    i = rng.integers(0, n, 2000)
    j = (i + rng.integers(1, n, 2000)) % n
    a, b = small[i].astype(np.float32), small[j].astype(np.float32)
    grey = squared_distance(*(x.reshape(len(x), 3, -1).mean(1) for x in (a, b)))
    upper = (float(np.quantile(d, 0.75).clip(0.1, 2.0)) for d in (grey, squared_distance(a, b)))
    return next(upper), next(upper)


def near_duplicates(seen: Looks) -> Ids:
    """(N,) for every row the first row of its set of near-duplicates; -1 for a row that has none.

    A set of more than ten rows and a twentieth of all is a kind of picture, not a picture repeated: there only what is ten, then a
    hundred times as near counts, and if that is not enough, none of it.
    """
    n = len(seen.code)
    alone = np.full(n, -1, dtype=np.int64)
    rows = seen.usable.nonzero()[0]
    if len(rows) < 2:
        return alone
    code, small = seen.code[rows], seen.small[rows]
    usual = usual_distances(small)
    units = GREY_SHARE * usual[0], COLOUR_SHARE * usual[1]
    edges: list[tuple[Ids, Ids, Pictures]] = []
    for i, j in candidates(code):
        apart = distances(small, i, j, *units)
        near = apart <= 1
        edges.append((i[near], j[near], apart[near]))
    if not edges:
        return alone
    i, j, apart = (np.concatenate([edge[k] for edge in edges]) for k in range(3))
    most = max(10, n // 20)
    for strictness in (1.0, 0.1, 0.01, -1.0):
        member = _components(len(rows), i, j)
        size = np.bincount(member)
        too_many = size[member[i]] > most
        if not too_many.any():
            break
        keep = ~too_many | (apart <= strictness)
        i, j, apart = i[keep], j[keep], apart[keep]
    member = _components(len(rows), i, j)
    first = np.full(int(member.max()) + 1, n, dtype=np.int64)
    np.minimum.at(first, member, rows)
    alone[rows] = np.where(np.bincount(member)[member] > 1, first[member], -1)
    return alone


def _components(n: int, i: Ids, j: Ids) -> Any:
    from scipy.sparse import coo_array  # here: importing it takes as long as a small audit
    from scipy.sparse.csgraph import connected_components

    return connected_components(coo_array((np.ones(len(i), dtype=np.int8), (i, j)), shape=(n, n)), directed=False)[1]
