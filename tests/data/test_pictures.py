"""Pictures of sixteen bits and transparent ones keep their greys."""

import numpy as np
import torch
from PIL import Image

from unskew.data import load


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
