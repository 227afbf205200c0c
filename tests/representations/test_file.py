"""Facts of files that were written with known facts."""

import math

import numpy as np
import pytest
from PIL import Image

from unskew.data.native import read_header
from unskew.representations.file import facts

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.mark.parametrize("quality", [20, 50, 75, 95])
def test_file_facts(quality, tmp_path):
    noise = np.random.default_rng(0).integers(0, 255, (40, 60, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "a.jpg", quality=quality)
    width, height, aspect, log_bytes, _, found, exif, jpeg, png, *_ = facts(read_header(str(tmp_path / "a.jpg")))
    assert (width, height, aspect) == (60, 40, 1.5)
    assert log_bytes == pytest.approx(math.log((tmp_path / "a.jpg").stat().st_size))
    assert found == pytest.approx(quality, abs=2)
    assert (exif, jpeg, png) == (0, 1, 0)
    tagged = Image.Exif()
    tagged[0x0110] = "camera"
    Image.fromarray(noise).save(tmp_path / "b.jpg", exif=tagged)
    assert facts(read_header(str(tmp_path / "b.jpg")))[6] == 1
