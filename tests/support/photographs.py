"""A folder of photographs with known twins: crops of scikit-learn's two sample images, some saved again in another way."""

import numpy as np
from PIL import Image, ImageEnhance
from sklearn.datasets import load_sample_image


def write_photographs(root, crops=12):
    """Crops of each photograph in its class folder; every third has twins. The names of each set of twins, as `class/file`."""
    sets = []
    for name in ("china", "flower"):
        whole = Image.fromarray(load_sample_image(f"{name}.jpg"))
        folder = root / name
        folder.mkdir(parents=True)
        for k in range(crops):
            left, top = 40 * k, 25 * (k % 6)
            crop = whole.crop((left, top, left + 180, top + 180))
            crop.save(folder / f"{k:02d}.png")
            if k % 3 == 0:
                crop.save(folder / f"{k:02d}-again.jpg", quality=80)
                ImageEnhance.Brightness(crop).enhance(1.06).save(folder / f"{k:02d}-bright.png")
                crop.resize((140, 140), Image.Resampling.BICUBIC).save(folder / f"{k:02d}-small.jpg", quality=90)
                sets.append({f"{name}/{k:02d}{end}" for end in (".png", "-again.jpg", "-bright.png", "-small.jpg")})
    return sets


def noise(n, side=32, seed=0):
    """Pictures (n, 3, side, side) that have nothing in common."""
    return np.random.default_rng(seed).integers(0, 256, (n, 3, side, side), dtype=np.uint8)
