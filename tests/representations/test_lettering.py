"""Writing is denser in strokes than anything else, wherever it stands, and has its colour."""

import numpy as np
import pytest
from PIL import Image, ImageDraw

from unskew.data.native import Picture, Steps
from unskew.representations.lettering import BOXES, Config, look, strokes, windows


def written(place, fill):
    image = Image.fromarray(np.full((128, 128, 3), 90, dtype=np.uint8))
    ImageDraw.Draw(image).text(place, "24.12.19", fill=fill)
    return Picture(np.asarray(image))


@pytest.mark.parametrize("place", [(10, 20), (60, 90)])
def test_writing_is_found_where_it_is_in_its_colour(place):
    picture = written(place, (255, 170, 40))
    found = look(picture, Config())
    assert not look(Picture(np.full((128, 128, 3), 90, dtype=np.uint8)), Config()).any()
    assert (
        found[: BOXES**3].argmax() == 2 * 9 + 1 * 3 + 0
    )  # red in the third of three boxes, green in the second, blue in the first
    strong = strokes(Steps(picture.whole))[0]
    dense = windows(*strong.nonzero(), strong.shape)
    row, column = np.unravel_index(dense.argmax(), dense.shape)
    assert abs(row * 8 + 5 - (place[1] + 6)) <= 8
    assert abs(column * 8 + 21 - (place[0] + 22)) <= 16
    assert found[BOXES**3] == dense.max() > 0.05


def test_dark_writing_is_counted_apart():
    white, black = BOXES**3 - 1, 0
    for fill, part, box in (((255, 255, 255), 0, white), ((0, 0, 0), 1, black)):
        parts = look(written((20, 30), fill), Config()).reshape(2, -1)
        assert parts[part, box] > 2 * parts[1 - part, box]


def test_a_stroke_exceeds_both_neighbours():
    grey = np.random.default_rng(0).uniform(0, 255, (20, 30)).astype(np.float32)
    across = 2 * grey[1:-1, 1:-1] - grey[1:-1, :-2] - grey[1:-1, 2:]
    down = 2 * grey[1:-1, 1:-1] - grey[:-2, 1:-1] - grey[2:, 1:-1]
    bright, dark = strokes(Steps(grey))
    assert np.array_equal(bright, np.maximum(across, down) > 110)
    assert np.array_equal(dark, np.minimum(across, down) < -110)


def test_windows_are_means_of_five_cells():
    strong = np.random.default_rng(0).random((16, 64)) < 0.3
    assert windows(*strong.nonzero(), strong.shape)[1, 2] == pytest.approx(strong[8:16, 16:56].mean())
