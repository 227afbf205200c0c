"""Fifteen image corruptions at five severities, for batches in [0, 1]: the formulas of the question `corruptions`."""

import io
import math
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from unskew.core.errors import UserError, suggest

SIDE = 224  # image side that lengths below refer to
Corruption = Callable[[Tensor, int, torch.Generator], Tensor]


def corrupt(x: Tensor, kind: str, severity: int, generator: torch.Generator) -> Tensor:
    """Corrupted images (n, c, h, w) in [0, 1], from images in [0, 1]."""
    if kind not in CORRUPTIONS:
        raise UserError(f"no corruption {kind!r}{suggest(kind, CORRUPTIONS)}")
    if not 1 <= severity <= 5:
        raise UserError(f"severity {severity}: must be 1 to 5")
    return CORRUPTIONS[kind](x, severity - 1, generator).clamp(0, 1)


def _pixels(x: Tensor, length: float) -> float:
    return length * min(x.shape[-2:]) / SIDE


def _normal(x: Tensor, g: torch.Generator) -> Tensor:
    return torch.randn(x.shape, generator=g, dtype=x.dtype)


def gaussian_noise(x: Tensor, s: int, g: torch.Generator) -> Tensor:
    return x + (0.08, 0.12, 0.18, 0.26, 0.38)[s] * _normal(x, g)


def shot_noise(x: Tensor, s: int, g: torch.Generator) -> Tensor:
    photons = (60.0, 25.0, 12.0, 5.0, 3.0)[s]
    return torch.poisson(x.clamp(0, 1) * photons, generator=g) / photons


def impulse_noise(x: Tensor, s: int, g: torch.Generator) -> Tensor:
    share = (0.03, 0.06, 0.09, 0.17, 0.27)[s]
    u = torch.rand(x.shape, generator=g, dtype=x.dtype)
    return torch.where(u < share / 2, 0.0, torch.where(u < share, 1.0, x))


def defocus_blur(x: Tensor, s: int, g: torch.Generator) -> Tensor:
    radius, soft = ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5))[s]
    r = max(_pixels(x, radius), 0.75)  # a smaller disc would reach no neighbour
    reach = math.ceil(r + 1)
    side = torch.arange(-reach, reach + 1, dtype=x.dtype)
    disc = (r - (side[:, None].square() + side.square()).sqrt() + 0.5).clamp(0, 1)
    return _blurred(_filtered(x, disc), _pixels(x, soft))


def glass_blur(x: Tensor, s: int, g: torch.Generator) -> Tensor:
    """Pixels are shuffled locally, between two blurs."""
    sigma, reach, times = ((0.7, 1, 2), (0.9, 2, 1), (1.0, 2, 3), (1.1, 3, 2), (1.5, 4, 2))[s]
    n, _, h, w = x.shape
    x, far = _blurred(x, _pixels(x, sigma)), max(1, round(_pixels(x, reach)))
    for _ in range(times):
        down, across = torch.randint(-far, far + 1, (2, n, h, w), generator=g)
        rows = (torch.arange(h)[None, :, None] + down).clamp(0, h - 1)
        columns = (torch.arange(w)[None, None, :] + across).clamp(0, w - 1)
        place = (rows * w + columns).view(n, 1, -1).expand(-1, x.shape[1], -1)
        x = x.flatten(2).gather(2, place).view_as(x)
    return _blurred(x, _pixels(x, sigma))


def motion_blur(x: Tensor, s: int, g: torch.Generator) -> Tensor:
    radius, sigma = ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15))[s]
    angle = (torch.rand(len(x), generator=g, dtype=x.dtype) - 0.5) * math.pi / 2
    return _along(x, angle, _pixels(x, radius), _pixels(x, sigma))


def zoom_blur(x: Tensor, s: int, g: torch.Generator) -> Tensor:
    end, step = ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03))[s]
    zooms = torch.arange(1.0, end, step)
    total = x.clone()
    for zoom in zooms.tolist():
        shrink = torch.eye(2, 3, dtype=x.dtype) / zoom
        grid = F.affine_grid(shrink[None].expand(len(x), -1, -1), list(x.shape), align_corners=False)
        total += F.grid_sample(x, grid, padding_mode="border", align_corners=False)
    return total / (len(zooms) + 1)


def snow(x: Tensor, s: int, g: torch.Generator) -> Tensor:
    mean, deviation, zoom, threshold, radius, sigma, keep = (
        (0.1, 0.3, 3.0, 0.5, 10, 4, 0.8), (0.2, 0.3, 2.0, 0.5, 12, 4, 0.7), (0.55, 0.3, 4.0, 0.9, 12, 8, 0.7),
        (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65), (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
    )[s]  # fmt: skip
    n, _, h, w = x.shape
    small = [max(2, math.ceil(d / zoom)) for d in (h, w)]
    flakes = mean + deviation * torch.randn(n, 1, *small, generator=g, dtype=x.dtype)
    flakes = F.interpolate(flakes, size=(h, w), mode="bilinear", align_corners=False)
    flakes = torch.where(flakes < threshold, 0.0, flakes).clamp(0, 1)
    angle = -math.pi * (0.75 - 0.5 * torch.rand(n, generator=g, dtype=x.dtype))
    flakes = _along(flakes, angle, _pixels(x, radius), _pixels(x, sigma))
    pale = torch.maximum(x, x.mean(1, keepdim=True) * 1.5 + 0.5)
    return keep * x + (1 - keep) * pale + flakes + flakes.flip(2, 3)


def frost(x: Tensor, s: int, g: torch.Generator) -> Tensor:
    keep, ice = ((1.0, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75))[s]
    ridges = 1 - (2 * _fractal(x, 1.3, g) - 1).abs()  # sharp where the fractal crosses its middle: crystals
    return keep * x + ice * ridges.square() * torch.tensor([0.85, 0.95, 1.0], dtype=x.dtype)[: x.shape[1], None, None]


def fog(x: Tensor, s: int, g: torch.Generator) -> Tensor:
    strength, decay = ((1.5, 2.0), (2.0, 2.0), (2.5, 1.7), (2.5, 1.5), (3.0, 1.4))[s]
    brightest = x.flatten(1).amax(1)[:, None, None, None]
    return (x + strength * _fractal(x, decay, g)) * brightest / (brightest + strength)


def brightness(x: Tensor, s: int, g: torch.Generator) -> Tensor:
    """Raise the value of HSV: all channels by the factor that raises the largest."""
    top = x.amax(1, keepdim=True)
    raised = (top + (0.1, 0.2, 0.3, 0.4, 0.5)[s]).clamp(max=1)
    return torch.where(top > 0, x * raised / top.clamp(min=1e-6), raised)


def contrast(x: Tensor, s: int, g: torch.Generator) -> Tensor:
    mean = x.mean((2, 3), keepdim=True)
    return (x - mean) * (0.4, 0.3, 0.2, 0.1, 0.05)[s] + mean


def elastic_transform(x: Tensor, s: int, g: torch.Generator) -> Tensor:
    """A smooth random shift of every pixel, on top of a random affine change."""
    scale, smooth, affine = (
        (488, 170.8, 24.4), (488, 19.52, 48.8), (12.2, 2.44, 4.88), (17.08, 2.44, 4.88), (29.28, 2.44, 4.88),
    )[s]  # fmt: skip
    n, _, h, w = x.shape
    shift = 2 * torch.rand(n, 2, h, w, generator=g, dtype=x.dtype) - 1
    shift = _blurred(shift, min(_pixels(x, smooth), min(h, w) / 4)) * _pixels(x, scale)
    corner = (2 * torch.rand(n, 2, 3, generator=g, dtype=x.dtype) - 1) * affine / SIDE
    grid = F.affine_grid(torch.eye(2, 3, dtype=x.dtype) + corner, list(x.shape), align_corners=False)
    grid = grid + 2 * torch.stack([shift[:, 0] / w, shift[:, 1] / h], 3)
    return F.grid_sample(x, grid, padding_mode="reflection", align_corners=False)


def pixelate(x: Tensor, s: int, g: torch.Generator) -> Tensor:
    h, w = x.shape[2:]
    share = (0.6, 0.5, 0.4, 0.3, 0.25)[s]
    small = F.interpolate(x, size=(max(1, int(h * share)), max(1, int(w * share))), mode="area")
    return F.interpolate(small, size=(h, w), mode="nearest")


def jpeg_compression(x: Tensor, s: int, g: torch.Generator) -> Tensor:
    quality = (25, 18, 15, 10, 7)[s]
    pixels = (255 * x.clamp(0, 1)).round().to(torch.uint8)
    return torch.stack([_through_jpeg(p, quality) for p in pixels]).to(x.dtype) / 255


def _through_jpeg(pixels: Tensor, quality: int) -> Tensor:
    """Bytes (C, H, W) written as a JPEG file in memory and read back."""
    array = pixels.permute(1, 2, 0).numpy()
    written = io.BytesIO()
    Image.fromarray(array if array.shape[2] == 3 else array[:, :, 0]).save(written, "JPEG", quality=quality)
    read = torch.from_numpy(np.array(Image.open(written)))
    return read.permute(2, 0, 1) if read.ndim == 3 else read[None].expand(pixels.shape)


def _filtered(x: Tensor, kernel: Tensor) -> Tensor:
    """Every channel convolved with one kernel, normalised to sum to one."""
    c, (kh, kw) = x.shape[1], kernel.shape
    padded = F.pad(x, (kw // 2, kw // 2, kh // 2, kh // 2), mode="replicate")
    return F.conv2d(padded, (kernel / kernel.sum()).expand(c, 1, kh, kw), groups=c)


def _blurred(x: Tensor, sigma: float) -> Tensor:
    """Gaussian blur, one direction after the other."""
    if sigma <= 0:
        return x
    reach = max(1, math.ceil(3 * sigma))
    side = torch.arange(-reach, reach + 1, dtype=x.dtype)
    line = torch.exp(-side.square() / (2 * sigma**2))
    return _filtered(_filtered(x, line[None, :]), line[:, None])


def _along(x: Tensor, angle: Tensor, radius: float, sigma: float) -> Tensor:
    """Motion along a line at each image's own angle, fading like half a Gaussian."""
    h, w = x.shape[2:]
    total, sum_of_weights = torch.zeros_like(x), 0.0
    for k in range(math.ceil(2 * radius) + 1):
        weight = math.exp(-(k**2) / (2 * max(sigma, 1e-3) ** 2))
        move = torch.zeros(len(x), 2, 3, dtype=x.dtype)
        move[:, 0, 0] = move[:, 1, 1] = 1
        move[:, 0, 2], move[:, 1, 2] = 2 * k * angle.cos() / w, 2 * k * angle.sin() / h
        grid = F.affine_grid(move, list(x.shape), align_corners=False)
        total += weight * F.grid_sample(x, grid, padding_mode="border", align_corners=False)
        sum_of_weights += weight
    return total / sum_of_weights


def _fractal(x: Tensor, decay: float, g: torch.Generator) -> Tensor:
    """Clouds (n, 1, h, w) from 0 to 1: octaves of smoothed noise, each `decay` times weaker than the one before."""
    n, _, h, w = x.shape
    total, cells, weight = torch.zeros(n, 1, h, w, dtype=x.dtype), 2, 1.0
    while cells <= max(h, w):
        noise = torch.rand(n, 1, min(cells, h), min(cells, w), generator=g, dtype=x.dtype)
        total += weight * F.interpolate(noise, size=(h, w), mode="bilinear", align_corners=False)
        cells, weight = 2 * cells, weight / decay
    low, high = (total.flatten(1).aminmax(dim=1)[k][:, None, None, None] for k in (0, 1))
    return (total - low) / (high - low).clamp(min=1e-6)


CORRUPTIONS: dict[str, Corruption] = {
    f.__name__: f
    for f in (
        gaussian_noise, shot_noise, impulse_noise, defocus_blur, glass_blur, motion_blur, zoom_blur, snow, frost, fog,
        brightness, contrast, elastic_transform, pixelate, jpeg_compression,
    )
}  # fmt: skip
