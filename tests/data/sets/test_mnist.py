"""mnist: the four IDX files read in their order, the last tenth of the training part validates."""

import struct

import numpy as np
import pytest

from unskew.core.errors import UserError
from unskew.data import bases, load


def idx(path, array):
    """The format as its authors describe it: two zeros, the type (8: bytes), the number of sizes, the sizes, the bytes."""
    path.write_bytes(struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes())
    return path


@pytest.fixture
def files(tmp_path, monkeypatch):
    pixels = np.arange(30, dtype=np.uint8)
    parts = (pixels[:20], pixels[20:])
    made = []
    for part in parts:
        made.append(idx(tmp_path / f"x{len(part)}", np.broadcast_to(part[:, None, None], (len(part), 28, 28))))
        made.append(idx(tmp_path / f"y{len(part)}", part % 10))
    monkeypatch.setattr(bases, "fetch", lambda folder, remotes: made)
    bases._idx.cache_clear()
    yield made
    bases._idx.cache_clear()


def test_rows_and_splits(files):
    data = load("mnist")
    assert data.shape == (1, 28, 28)
    assert data.inputs.x[:, 0, 5, 7].tolist() == list(range(30))
    assert data.y.tolist() == [k % 10 for k in range(30)]
    assert [data.rows(s).tolist() for s in ("train", "val", "test")] == [list(range(18)), [18, 19], list(range(20, 30))]


def test_a_cut_file_is_refused(files):
    files[0].write_bytes(files[0].read_bytes()[:-1])
    with pytest.raises(UserError, match="15679 of 15680 bytes"):
        load("mnist")
    files[0].write_bytes(b"\x1f\x8b packed")
    with pytest.raises(UserError, match="not an IDX file"):
        load("mnist")
