"""Headers written by Pillow and read back; a field that no file has is left out with the reason."""

import numpy as np
import pytest
import torch
from PIL import Image

from unskew.data.native import read_header
from unskew.data.sources import load
from unskew.features import compute, spec, standard

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for k in range(40):
        exif = Image.Exif()
        exif[0x010F] = "Canon" if k % 2 else "NIKON"
        exif[0x0132] = f"2020:01:{k // 2 + 1:02d} 12:00:00"
        home = tmp_path / "photos" / "ab"[k % 2]
        home.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)).save(home / f"{k}.jpg", exif=exif.tobytes())
    return tmp_path / "photos"


def test_the_make_is_read_and_other_fields_are_left_out(folder):
    data = load(str(folder), holdout=0.0, duplicates=False)
    chosen, left = standard(data)
    assert {"exif:field=make", "exif:field=date"} <= {one.name for one in chosen}
    assert "none of 40 files" in left["exif:field=software"]
    found = compute(data, [spec("exif:field=make"), spec("exif:field=date")], torch.arange(40))[1]
    make = found["exif:field=make"]
    assert (make.sum(1) == 1).all()
    assert torch.equal(make[data.y == 0].unique(dim=0), make[:1])
    assert len(make.unique(dim=0)) == 2
    # 1 January 2020 is day 7,305 after 1 January 2000: twenty years with five leap days.
    assert found["exif:field=date"][:, 1].min() == 7305.5
    assert read_header(data.paths[0]).exif == {"make": "NIKON", "date": "2020:01:01 12:00:00"}


def test_rows_that_are_not_files(folder):
    data = load((np.zeros((20, 3, 32, 32), dtype=np.uint8), np.arange(20) % 2))
    assert standard(data)[1]["exif:field=make"] == "the rows are not image files"
    assert "tone" in {one.name for one in standard(data)[0]}
