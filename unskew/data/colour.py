"""Colouring of grey digits: the papers' palettes, and coloured digits or coloured backgrounds."""

import torch
from torch import Tensor

from unskew.core.rng import stream

# LNL's mean colours, also PGD's (its 2023 generator); digits 1 and 3 are confirmed by LNL's text.
LNL = (
    (220, 20, 60), (0, 128, 128), (253, 233, 16), (0, 149, 182), (237, 145, 33),
    (145, 30, 188), (70, 240, 240), (250, 197, 187), (210, 245, 60), (128, 0, 0),
)  # fmt: skip
LNL_NAMES = ("crimson", "teal", "yellow", "blue", "orange", "purple", "cyan", "pink", "lime", "maroon")

LFF = (
    (0.9837, 0.3125, 0.1686), (0.9905, 0.9156, 0.3515), (0.6730, 0.4611, 0.5798), (0.7833, 0.8316, 0.6013),
    (0.0880, 0.7780, 0.9818), (0.3214, 0.9611, 0.4464), (0.0246, 0.2357, 0.7587), (0.5552, 0.1016, 0.7618),
    (0.2077, 0.3929, 0.0187), (0.8337, 0.2024, 0.2669),
)  # fmt: skip
LFF_NAMES = ("vermilion", "lemon", "mauve", "sage", "sky", "green", "navy", "violet", "olive", "rose")

# ReBias. The 225 of digits 3 and 4 is what the released code has, not a typo here.
REBIAS = (
    (255, 0, 0), (0, 255, 0), (0, 0, 255), (225, 225, 0), (225, 0, 225),
    (0, 255, 255), (255, 128, 0), (255, 0, 128), (128, 0, 255), (128, 128, 128),
)  # fmt: skip
REBIAS_NAMES = ("red", "green", "blue", "yellow", "magenta", "cyan", "orange", "rose", "violet", "grey")

# Tints of whole photographs: factors of red, green and blue.
TINTS = ((1.0, 0.75, 0.5), (0.55, 0.75, 1.0), (0.65, 1.0, 0.6), (0.9, 0.6, 1.0), (1.0, 1.0, 0.5))
TINT_NAMES = ("warm", "cool", "green", "violet", "yellow")

_CHUNK = 512  # rows coloured at a time: their float copy stays in the cache, which is three times faster than one pass


def colour_digits(grey: Tensor, colour: Tensor) -> Tensor:
    """Digits (N, H, W) uint8 times one colour per image (N, 3) in [0, 1]: (N, 3, H, W) uint8, black background."""
    out = torch.empty(len(grey), 3, *grey.shape[1:], dtype=torch.uint8)
    for start in range(0, len(grey), _CHUNK):
        part = slice(start, start + _CHUNK)
        tinted = grey[part].float()[:, None] * colour[part].float()[:, :, None, None]
        out[part] = tinted.round_()
    return out


def colour_backgrounds(grey: Tensor, colour: Tensor) -> Tensor:
    """White, binarised digits on a background of one colour (N, 3) uint8 per image: (N, 3, H, W) uint8."""
    out = torch.empty(len(grey), 3, *grey.shape[1:], dtype=torch.uint8)
    white = torch.tensor(255, dtype=torch.uint8)
    for start in range(0, len(grey), _CHUNK):
        part = slice(start, start + _CHUNK)
        out[part] = torch.where((grey[part] != 0)[:, None], white, colour[part][:, :, None, None])
    return out


def tinted(x: Tensor, kind: Tensor) -> Tensor:
    """Photographs (N, 3, H, W) uint8 times the factors of their tint (N,), rounded.

    >>> tinted(torch.full((1, 3, 1, 1), 100, dtype=torch.uint8), torch.tensor([1])).flatten().tolist()
    [55, 75, 100]
    """
    factors = torch.tensor(TINTS)
    out = torch.empty_like(x)
    for start in range(0, len(x), _CHUNK):
        part = slice(start, start + _CHUNK)
        out[part] = (x[part].float() * factors[kind[part]][:, :, None, None]).round_()
    return out


def even_shares(y: Tensor, ratio: float, generator: torch.Generator, kinds: int) -> Tensor:
    """Exact counts: round(n * ratio) random rows of a class get its own value; the rest is dealt out evenly to the others.

    >>> even_shares(torch.tensor([0, 0, 0, 0, 1, 1, 1, 1]), 0.75, torch.Generator(), 2).view(2, 4).sum(1).tolist()
    [1, 3]
    """
    value = torch.empty_like(y)
    for c in range(kinds):
        rows = (y == c).nonzero().flatten()
        rows = rows[torch.randperm(len(rows), generator=generator)]
        own = round(len(rows) * ratio)
        value[rows[:own]] = c
        # Which of the others gets one row more is random, or the first would be favoured in every class.
        others = (c + 1 + torch.randperm(kinds - 1, generator=generator)) % kinds
        value[rows[own:]] = others[torch.arange(len(rows) - own) % (kinds - 1)]
    return value


def bernoulli_colours(y: Tensor, ratio: float, generator: torch.Generator, num_colours: int = 10) -> Tensor:
    """The colour of the class with probability `ratio`, else one of the others, all equally likely."""
    other = (y + torch.randint(1, num_colours, y.shape, generator=generator)) % num_colours
    return torch.where(torch.rand(len(y), generator=generator) < ratio, y, other)


def milestone_colours(y: Tensor, ratio: float, num_colours: int = 10) -> Tensor:
    """Exact counts in row order within a class: colours 0 to 9 in turn, the class's own for a share `ratio` of the rows."""
    colour = torch.empty_like(y)
    for c in range(num_colours):
        rows = (y == c).nonzero().flatten()
        share = torch.full((num_colours,), (1 - ratio) / (num_colours - 1), dtype=torch.float64)
        share[c] = ratio
        place = (torch.arange(len(rows), dtype=torch.float64) + 0.5) / max(len(rows), 1)
        colour[rows] = torch.searchsorted(share.cumsum(0), place).clamp(max=num_colours - 1)
    return colour


def chunked_colours(y: Tensor, ratio: float, generator: torch.Generator, num_colours: int = 10) -> Tensor:
    """Exact counts: int(n * ratio) random rows of a class get its colour; the rest is cut into chunks of
    ceil(rest / 9), one for each of the other colours in random order."""
    colour = torch.empty_like(y)
    for c in range(num_colours):
        rows = (y == c).nonzero().flatten()
        rows = rows[torch.randperm(len(rows), generator=generator)]
        own = int(len(rows) * ratio)
        colour[rows[:own]] = c
        rest = rows[own:]
        others = torch.tensor([k for k in range(num_colours) if k != c])
        others = others[torch.randperm(len(others), generator=generator)]
        size = max(1, -(-len(rest) // len(others)))
        colour[rest] = others[torch.arange(len(rest)) // size]
    return colour


def biased_rows(name: str, rows: int, kinds: int, ratio: float, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Class, bias value and split of a generated set: 80 % train and 10 % val, aligned with probability `ratio`; in the last
    10 %, the test split, class and bias are independent, and the same for all ratios."""
    num_train = rows * 9 // 10
    split = torch.full((rows,), 2)
    split[:num_train], split[rows * 8 // 10 : num_train] = 0, 1
    y = torch.randint(0, kinds, (rows,), generator=stream(seed, name, "class"))
    trained = bernoulli_colours(y[:num_train], ratio, stream(seed, name, "train", ratio), kinds)
    tested = bernoulli_colours(y[num_train:], 1 / kinds, stream(seed, name, "test"), kinds)
    return y, torch.cat([trained, tested]), split
