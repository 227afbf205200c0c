"""Thirty ways in which a class can be given away by something that is not the subject: each changes a picture or its file."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter

Rng = np.random.Generator


@dataclass
class Shot:
    """A picture and how its file is written."""

    image: Image.Image
    suffix: str = "jpg"
    save: dict[str, Any] = field(default_factory=lambda: {"quality": 92})


@dataclass(frozen=True)
class Kind:
    """One planted shortcut. `change(shot, on, rng)` puts it into the pictures of one class; `names` are right answers."""

    name: str
    change: Callable[[Shot, bool, Rng], None]
    names: tuple[str, ...]  # beginnings of the names of representations


def levels(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Shot, bool, Rng], None]:
    """A change of the levels, 0 to 255, in the pictures that have the shortcut."""

    def plant(shot: Shot, on: bool, rng: Rng) -> None:
        if on:
            changed = change(np.asarray(shot.image).astype(np.float64))
            shot.image = Image.fromarray(np.clip(np.rint(changed), 0, 255).astype(np.uint8))

    return plant


def drawn(draw: Callable[[Image.Image, Rng], Image.Image]) -> Callable[[Shot, bool, Rng], None]:
    """A change of the picture, in those that have the shortcut."""

    def plant(shot: Shot, on: bool, rng: Rng) -> None:
        shot.image = draw(shot.image, rng) if on else shot.image

    return plant


def _jpeg_quality(shot: Shot, on: bool, rng: Rng) -> None:
    shot.save = {"quality": 80 if on else 92}


def _resaved(shot: Shot, on: bool, rng: Rng) -> None:
    """A first save of quality 70; all files are then saved alike."""
    if on:
        import io

        first = io.BytesIO()
        shot.image.save(first, "JPEG", quality=70)
        shot.image = Image.open(io.BytesIO(first.getvalue())).convert("RGB")


def _png(shot: Shot, on: bool, rng: Rng) -> None:
    if on:
        shot.suffix, shot.save = "png", {}


def _pixel_size(shot: Shot, on: bool, rng: Rng) -> None:
    if on:
        shot.image = shot.image.resize((shot.image.width * 9 // 8, shot.image.height * 9 // 8), Image.Resampling.BICUBIC)


def _aspect(shot: Shot, on: bool, rng: Rng) -> None:
    if on:
        cut = shot.image.width // 16
        shot.image = shot.image.crop((cut, 0, shot.image.width - cut, shot.image.height))


def _letterbox(image: Image.Image, rng: Rng) -> Image.Image:
    bar = image.height // 16
    inner = image.resize((image.width, image.height - 2 * bar), Image.Resampling.BICUBIC)
    boxed = Image.new("RGB", image.size)
    boxed.paste(inner, (0, bar))
    return boxed


def _corner(colour: tuple[int, int, int]) -> Callable[[Image.Image, Rng], Image.Image]:
    def mark(image: Image.Image, rng: Rng) -> Image.Image:
        image.paste(colour, (image.width - 4, image.height - 4, image.width, image.height))
        return image

    return mark


def _logo(image: Image.Image, rng: Rng) -> Image.Image:
    """A translucent ring with a bar, in the upper left."""
    side = image.width // 6
    mask = Image.new("L", image.size)
    pen = ImageDraw.Draw(mask)
    pen.ellipse((4, 4, 4 + side, 4 + side), outline=130, width=3)
    pen.rectangle((4 + side // 3, 4 + side // 2 - 1, 4 + 2 * side // 3, 4 + side // 2 + 1), fill=130)
    return Image.composite(Image.new("RGB", image.size, (235, 235, 240)), image, mask)


def _stamp(moving: bool) -> Callable[[Image.Image, Rng], Image.Image]:
    def stamp(image: Image.Image, rng: Rng) -> Image.Image:
        text = f"{rng.integers(1, 29):02d}.{rng.integers(1, 13):02d}.{rng.integers(15, 25):02d}"
        place = (image.width - 54, image.height - 14)
        if moving:
            place = (int(rng.integers(2, image.width - 54)), int(rng.integers(2, image.height - 14)))
        ImageDraw.Draw(image).text(place, text, fill=(255, 170, 40))
        return image

    return stamp


def _ruler(image: Image.Image, rng: Rng) -> Image.Image:
    pen = ImageDraw.Draw(image)
    high = image.height // 16
    pen.rectangle((0, image.height - high, image.width, image.height), fill=(225, 215, 160))
    for k, x in enumerate(range(0, image.width, 4)):
        pen.line((x, image.height - high, x, image.height - (high // 2 if k % 5 else 1)), fill=(30, 30, 30))
    return image


def _frame(image: Image.Image, rng: Rng) -> Image.Image:
    ImageDraw.Draw(image).rectangle((0, 0, image.width - 1, image.height - 1), outline=(70, 60, 50), width=2)
    return image


def _places(pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows, columns = pixels.shape[:2]
    v, u = np.mgrid[-1 : 1 : rows * 1j, -1 : 1 : columns * 1j]
    return u[..., None], v[..., None]


def _vignette(pixels: np.ndarray) -> np.ndarray:
    u, v = _places(pixels)
    return pixels * (1 - 0.2 * (u**2 + v**2) / 2 * 1.5)


def _gradient(pixels: np.ndarray) -> np.ndarray:
    u, _ = _places(pixels)
    return pixels * (1 + 0.2 * u)


def _shot_noise(shot: Shot, on: bool, rng: Rng) -> None:
    pixels = np.asarray(shot.image).astype(np.float64)
    electrons = 300.0 if on else 3000.0
    noisy = rng.poisson(pixels / 255 * electrons) / electrons * 255
    shot.image = Image.fromarray(np.clip(np.rint(noisy), 0, 255).astype(np.uint8))


def _cameras(shot: Shot, on: bool, rng: Rng) -> None:
    """One of two fixed patterns: every pixel of a sensor answers to light a little differently, by 2 %."""
    pixels = np.asarray(shot.image).astype(np.float64)
    pattern = np.random.default_rng(1001 if on else 1002).standard_normal(pixels.shape[:2])[..., None]
    shot.image = Image.fromarray(np.clip(np.rint(pixels * (1 + 0.02 * pattern)), 0, 255).astype(np.uint8))


def _hot_pixel(image: Image.Image, rng: Rng) -> Image.Image:
    image.putpixel((image.width // 3, 2 * image.height // 5), (255, 250, 245))
    return image


def _on_ground(image: Image.Image, ground: np.ndarray) -> Image.Image:
    """The middle of a picture, a soft oval, before a ground."""
    mask = Image.new("L", image.size)
    wide, high = image.size
    ImageDraw.Draw(mask).ellipse((wide // 12, high // 12, wide - wide // 12, high - high // 12), fill=255)
    mask = mask.filter(ImageFilter.GaussianBlur(3))
    behind = Image.fromarray(np.clip(ground, 0, 255).astype(np.uint8))
    return Image.composite(image, behind, mask)


def _ground_texture(shot: Shot, on: bool, rng: Rng) -> None:
    """Fine grain or stripes of the same mean and spread."""
    wide, high = shot.image.size
    noise = rng.standard_normal((high, wide))
    if on:
        noise = (
            np.sqrt(2) * np.sin(np.arange(wide) * 2 * np.pi / 8 + rng.uniform(0, 6.3))[None].repeat(high, 0) * 0.8 + noise * 0.6
        )
    level = rng.uniform(90, 160)
    shot.image = _on_ground(shot.image, (level + 18 * noise)[..., None].repeat(3, 2))


def _ground_colour(shot: Shot, on: bool, rng: Rng) -> None:
    wide, high = shot.image.size
    colour = np.array((120, 132, 118) if on else (128, 120, 122)) + rng.normal(0, 12)
    shot.image = _on_ground(shot.image, np.broadcast_to(colour, (high, wide, 3)) + 4 * rng.standard_normal((high, wide, 1)))


def _tight(image: Image.Image, rng: Rng) -> Image.Image:
    cut_x, cut_y = image.width // 9, image.height // 9
    return image.resize(image.size, Image.Resampling.BICUBIC, box=(cut_x, cut_y, image.width - cut_x, image.height - cut_y))


def _rotation(shot: Shot, on: bool, rng: Rng) -> None:
    """Four degrees to the left or to the right, without empty corners: both classes are interpolated."""
    turned = shot.image.rotate(4 if on else -4, Image.Resampling.BICUBIC)
    cut_x, cut_y = shot.image.width // 14, shot.image.height // 14
    box = (cut_x, cut_y, shot.image.width - cut_x, shot.image.height - cut_y)
    shot.image = turned.resize(shot.image.size, Image.Resampling.BICUBIC, box=box)


def _exif(tag: int, yes: str | int, no: str | int) -> Callable[[Shot, bool, Rng], None]:
    def write(shot: Shot, on: bool, rng: Rng) -> None:
        exif = Image.Exif()
        exif[tag] = yes if on else no
        if tag == 0x0112 and on:  # stored on its side, shown upright
            shot.image = shot.image.transpose(Image.Transpose.ROTATE_90)
        shot.save = {**shot.save, "exif": exif.tobytes()}

    return write


def _saturation(image: Image.Image, rng: Rng) -> Image.Image:
    return ImageEnhance.Color(image).enhance(1.35)


TONES = ("tone", "color")
EDGES = ("overlay", "marks", "crop:where=border", "letterbox", "local", "lettering")
FINE = ("detail", "spectrum", "texture", "encoder")
KINDS = (
    Kind("brightness +6", levels(lambda x: x + 6), TONES),
    Kind("contrast", levels(lambda x: (x - 128) * 0.9 + 128), TONES),
    Kind("gamma", levels(lambda x: 255 * (x / 255) ** 0.85), TONES),
    Kind("saturation", drawn(_saturation), TONES),
    Kind("tint", levels(lambda x: x * np.array([1.06, 1.0, 0.94])), TONES),
    Kind("JPEG quality", _jpeg_quality, ("encoder", "file")),
    Kind("re-saved JPEG", _resaved, ("encoder", "file")),
    Kind("PNG against JPEG", _png, ("encoder", "file")),
    Kind("pixel size", _pixel_size, ("dimensions", "file")),
    Kind("aspect", _aspect, ("dimensions", "file")),
    Kind("letterbox", drawn(_letterbox), EDGES),
    Kind("white corner mark", drawn(_corner((255, 255, 255))), EDGES),
    Kind("grey corner mark", drawn(_corner((128, 128, 128))), EDGES),
    Kind("logo", drawn(_logo), EDGES),
    Kind("fixed time stamp", drawn(_stamp(False)), EDGES),
    Kind("moving time stamp", drawn(_stamp(True)), ("lettering", "local")),
    Kind("ruler at an edge", drawn(_ruler), EDGES),
    Kind("frame", drawn(_frame), EDGES),
    Kind("vignette", levels(_vignette), ("lighting", "crop:where=border")),
    Kind("lighting gradient", levels(_gradient), ("lighting",)),
    Kind("slight blur", drawn(lambda image, rng: image.filter(ImageFilter.GaussianBlur(0.7))), FINE),
    Kind("sharpening", drawn(lambda image, rng: image.filter(ImageFilter.UnsharpMask(1, 60, 0))), FINE),
    Kind("shot noise", _shot_noise, FINE),
    Kind("two cameras", _cameras, ("sensor",)),
    Kind("hot pixel", drawn(_hot_pixel), ("sensor", "local")),
    Kind("ground texture", _ground_texture, ("texture", "spectrum", "detail", "marks", "tilt", "local", "encoder", "scale")),
    Kind("ground colour", _ground_colour, ("color", "crop:where=border", "marks", "tone")),
    Kind("tighter crop", drawn(_tight), ("scale", "detail", "spectrum")),
    Kind("small rotation", _rotation, ("tilt",)),
    Kind("EXIF make", _exif(0x010F, "Canon", "NIKON"), ("exif:field=make",)),
)
SPARE = (  # left out of the thirty
    Kind("brightness +15", levels(lambda x: x + 15), TONES),
    Kind("EXIF orientation", _exif(0x0112, 6, 1), ("exif:field=orientation",)),
    Kind("EXIF date", _exif(0x0132, "2019:05:04 10:00:00", "2021:07:09 15:30:00"), ("exif:field=date",)),
)
