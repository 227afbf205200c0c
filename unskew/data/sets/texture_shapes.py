r"""texture-shapes: silhouettes filled with a texture that gives the class away. A generated stand-in for 9-class ImageNet.

.. math::
    x_i = \text{ground}_i + \mathbb{1}\big[s_{y_i}(R_i (p - c_i) / a_i) > 0\big]\, \big(t_{b_i}(p) - \text{ground}_i\big), \qquad
    P(b_i = y_i) = \text{ratio}

The class y is the silhouette s: circle, square, triangle, star, cross, ring, crescent or bar, at a random place c, of random size
a and rotation R (up to 30 degrees). The bias b, column `texture`, fills it: stripes in four directions, checks, dots, fine or
coarse grain, of random colours, period and phase. A few pixels show a texture, only many a silhouette: a network with a small
receptive field sees the bias but not the class. Conflicting textures are uniform over the other seven. 80 % of the rows train, 10
% validate, equally biased; in the last 10 %, the test split, texture and class are independent, and the rows are the same for all
ratios.

Source: the setting of Bahng et al., "Learning de-biased representations with biased representations", ICML 2020, section 4.3
(texture bias of ImageNet, seen by BagNet); Geirhos et al., "ImageNet-trained CNNs are biased towards texture", ICLR 2019.
Differs: generated, so that class and bias are known, and independent in the test; results do not compare with theirs.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.data.colour import biased_rows
from unskew.data.dataset import DataSet, Memory

SHAPES = ("circle", "square", "triangle", "star", "cross", "ring", "crescent", "bar")
TEXTURES = ("across", "down", "rising", "falling", "checks", "dots", "fine", "coarse")
CHUNK = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    ratio: float = 0.95  # share of aligned training rows
    rows: int = 10_000  # images to make
    size: int = 64  # side of the image in pixels
    noise_std: float = 0.03  # standard deviation of the pixel noise
    seed: int = 0  # random seed

    def __post_init__(self) -> None:
        if not 0 <= self.ratio <= 1:
            raise UserError(f"ratio={self.ratio}: the share of aligned rows must lie in [0, 1]")
        if self.size < 24 or self.rows < 100 or self.noise_std < 0:
            raise UserError("texture-shapes: size must be at least 24, rows at least 100, and noise_std not negative")


def make(cfg: Config) -> DataSet:
    n, kinds = cfg.rows, len(SHAPES)
    y, bias, split = biased_rows("texture-shapes", n, kinds, cfg.ratio, cfg.seed)
    x = torch.empty(n, 3, cfg.size, cfg.size, dtype=torch.uint8)
    for start in range(0, n, CHUNK):
        part = slice(start, start + CHUNK)
        x[part] = draw(y[part], bias[part], cfg.size, cfg.noise_std, stream(cfg.seed, "texture-shapes", "draw", start))
    return DataSet(
        name="texture-shapes",
        inputs=Memory(x),
        y=y,
        classes=SHAPES,
        split=split,
        bias=bias[:, None],
        bias_names=("texture",),
        bias_values=(TEXTURES,),
        aligned_by_design=(torch.eye(kinds, dtype=torch.bool),),
    )


def draw(shape: Tensor, texture: Tensor, size: int, noise_std: float, g: torch.Generator) -> Tensor:
    """Pictures (n, 3, size, size) in bytes."""
    n = len(shape)

    def uniform(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(n, 1, 1, generator=g)

    side = (torch.arange(size) + 0.5) / size * 2 - 1
    down, across = side[None, :, None], side[None, None, :]
    scale, turn = uniform(0.55, 0.8), uniform(-math.pi / 6, math.pi / 6)
    room = 0.95 - scale
    cx, cy = room * uniform(-1, 1), room * uniform(-1, 1)
    u, v = (across - cx) / scale, (down - cy) / scale
    u, v = u * turn.cos() + v * turn.sin(), v * turn.cos() - u * turn.sin()
    inside = silhouettes(u, v).gather(0, shape[None, :, None, None].expand(1, n, size, size))[0]
    alpha = (inside * scale * size / 2 + 0.5).clamp(0, 1)[:, None]
    pattern = textures(n, size, g).gather(0, texture[None, :, None, None].expand(1, n, size, size))[0][:, None]
    # Two colours, at least a fifth of the range apart in every channel; the ground is plain and in between.
    dark, bright = 0.4 * torch.rand(n, 3, 1, 1, generator=g), 0.6 + 0.4 * torch.rand(n, 3, 1, 1, generator=g)
    ground = 0.35 + 0.3 * torch.rand(n, 3, 1, 1, generator=g)
    picture = ground + alpha * (dark + pattern * (bright - dark) - ground)
    picture = picture + noise_std * torch.randn(picture.shape, generator=g)
    return (255 * picture).round().clamp(0, 255).to(torch.uint8)


def silhouettes(u: Tensor, v: Tensor) -> Tensor:
    """Positive inside each of the eight shapes, of radius about 1."""
    r, angle = (u.square() + v.square()).sqrt(), torch.atan2(u, -v)
    third = angle.remainder(2 * math.pi / 3) - math.pi / 3
    fifth = (angle.remainder(2 * math.pi / 5) - math.pi / 5).abs() / (math.pi / 5)  # 1 at a tip of the star, 0 between two
    return torch.stack(
        [
            0.85 - r,
            0.75 - torch.maximum(u.abs(), v.abs()),
            0.55 - r * third.cos(),
            (0.4 + 0.6 * fifth) - r,
            torch.maximum(torch.minimum(0.3 - u.abs(), 0.95 - v.abs()), torch.minimum(0.3 - v.abs(), 0.95 - u.abs())),
            0.22 - (r - 0.72).abs(),
            torch.minimum(0.9 - r, ((u - 0.45).square() + v.square()).sqrt() - 0.75),
            torch.minimum(0.32 - v.abs(), 1.0 - u.abs()),
        ]
    )


def textures(n: int, size: int, g: torch.Generator) -> Tensor:
    """All eight textures (8, n, size, size) in [0, 1]; a period has 4 to 6 pixels."""
    side = torch.arange(size, dtype=torch.float32)
    down, across = side[None, :, None], side[None, None, :]
    rate = 2 * math.pi / (4 + 2 * torch.rand(n, 1, 1, generator=g))
    a, b = (2 * math.pi * torch.rand(n, 1, 1, generator=g) for _ in range(2))
    wave_x, wave_y = ((rate * way + phase).sin().expand(n, size, size) for way, phase in ((across, a), (down, b)))
    grain = torch.rand(n, size, size, generator=g)
    blurred = F.avg_pool2d(torch.rand(n, 1, size + 2, size + 2, generator=g), 3, 1)[:, 0]
    return torch.stack(
        [
            0.5 + 0.5 * wave_y,
            0.5 + 0.5 * wave_x,
            0.5 + 0.5 * (rate * (across + down) / math.sqrt(2) + a).sin(),
            0.5 + 0.5 * (rate * (across - down) / math.sqrt(2) + a).sin(),
            (wave_x * wave_y > 0).float(),
            (wave_x + wave_y > 0.7).float(),
            grain,
            (0.5 + 2.2 * (blurred - 0.5)).clamp(0, 1),
        ]
    )
