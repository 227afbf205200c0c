"""Writing is denser in strokes than anything else, wherever it stands, and has its colour."""

import numpy as np
import pytest
from PIL import Image, ImageDraw

from unskew.data.native import Picture
from unskew.representations.lettering import Config, look


@pytest.mark.parametrize("place", [(10, 20), (60, 90)])
def test_writing_is_found_where_it_is(place):
    image = Image.fromarray(np.full((128, 128, 3), 90, dtype=np.uint8))
    plain = look(Picture(np.asarray(image)), Config())
    ImageDraw.Draw(image).text(place, "24.12.19", fill=(255, 170, 40))
    found = look(Picture(np.asarray(image)), Config())
    assert plain[0] == 0
    assert found[0] > 0.2
    row, column = found[-2] * 15, found[-1] * 15  # of 8 pixels; the first two pixels are not looked at
    assert abs(row * 8 + 2 - place[1]) <= 10
    assert place[0] - 12 <= column * 8 + 2 <= place[0] + 50
    assert found[8] > found[9] > found[10]  # red, green, blue of the strokes
