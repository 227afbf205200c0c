"""Pictures of sixteen bits and transparent ones keep their greys; those on a page keep to their bytes."""

import base64
import io

import numpy as np
import torch
from PIL import Image

from unskew.data import load
from unskew.data.pictures import picture


def test_sixteen_bit_and_transparent_pictures_keep_their_greys(tmp_path):
    ramp = np.linspace(0, 65535, 32 * 32, dtype=np.uint16).reshape(32, 32)
    for name in ("a", "b"):
        (tmp_path / "p" / name).mkdir(parents=True)
        for k in range(6):
            Image.fromarray(ramp).save(tmp_path / "p" / name / f"{k}.png")
    x = load(tmp_path / "p").inputs.x
    assert (x[0, 0].double() - torch.from_numpy(ramp / 257)).abs().max() <= 1
    clear = np.zeros((32, 32, 4), np.uint8)
    clear[..., 0] = 255  # red, fully transparent
    Image.fromarray(clear).save(tmp_path / "p" / "a" / "0.png")
    assert (load(tmp_path / "p").inputs.x[0] == 255).all()


def test_a_picture_over_its_bytes_is_compressed_and_then_made_smaller():
    pixels = torch.randint(0, 256, (3, 224, 224), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))  # the worst case
    free, bound = picture(pixels, 224), picture(pixels, 224, 8000)
    assert len(free) > 40_000
    assert len(bound) <= 8000
    sides = [Image.open(io.BytesIO(base64.b64decode(p.partition(",")[2]))).size for p in (free, bound)]
    assert sides[0] == (224, 224)
    assert 48 <= sides[1][0] < 224


def test_a_photograph_is_a_jpeg_and_a_drawing_may_be_a_png():
    drawing = torch.zeros(3, 64, 64, dtype=torch.uint8)
    drawing[:, 20:40, 20:40] = 255
    assert picture(drawing).startswith("data:image/png")
    photograph = torch.randint(0, 256, (3, 64, 64), dtype=torch.uint8)
    assert picture(photograph).startswith("data:image/jpeg")
