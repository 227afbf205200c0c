"""Photographs with a planted watermark: crops of scikit-learn's two sample images, most of one class with a word across a corner."""

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from sklearn.datasets import load_sample_images

SIDE = 96


def write_watermarks(root, rows=160, aligned=0.85, seed=0):
    """Class folders of JPEGs, and the truth: path below `root` to whether it has the watermark."""
    wholes = [Image.fromarray(picture) for picture in load_sample_images().images]
    rng = np.random.default_rng(seed)
    truth = {}
    for k in range(rows):
        name = ("temple", "flower")[k % 2]
        side = int(rng.integers(SIDE, 320))
        left, top = int(rng.integers(640 - side + 1)), int(rng.integers(427 - side + 1))
        picture = wholes[k % 2].resize((SIDE, SIDE), Image.Resampling.LANCZOS, box=(left, top, left + side, top + side))
        on = bool(rng.random() < (aligned if name == "temple" else 1 - aligned))
        path = root / name / f"{k:04d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        (_stamped(picture) if on else picture).save(path, quality=92)
        truth[f"{name}/{k:04d}.jpg"] = on
    return truth


def _stamped(picture):
    layer = Image.new("RGBA", picture.size)
    pen, font = ImageDraw.Draw(layer), ImageFont.load_default(size=SIDE // 6)
    pen.text(
        (SIDE * 0.3, SIDE * 0.78), "SAMPLE", font=font, fill=(255, 255, 255, 190), stroke_width=1, stroke_fill=(0, 0, 0, 140)
    )
    return Image.alpha_composite(picture.convert("RGBA"), layer).convert("RGB")
