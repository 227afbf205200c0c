"""Two videos written with different rates and sizes."""

import math

import numpy as np
import pytest
import torch

from unskew.data.sources import load
from unskew.features import compute, spec, standard

av = pytest.importorskip("av")
pytestmark = pytest.mark.usefixtures("own_cache")


def film(path, rate, width):
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as video:
        track = video.add_stream("mpeg4", rate=rate)
        track.width, track.height, track.pix_fmt = width, 48, "yuv420p"
        for k in range(12):
            frame = av.VideoFrame.from_ndarray(np.full((48, width, 3), 10 * k, dtype=np.uint8), format="rgb24")
            video.mux(track.encode(frame))
        video.mux(track.encode())


def test_rate_and_size_are_read(tmp_path):
    for k in range(6):
        film(tmp_path / "clips" / "ab"[k % 2] / f"{k}.avi", (12, 24)[k % 2], (64, 80)[k % 2])
    data = load(str(tmp_path / "clips"), frames=2, holdout=0.0)
    assert "codec" in {one.name for one in standard(data)[0]}
    found = compute(data, [spec("codec")], torch.arange(6))[1]["codec"]
    rates, widths = found[:, 24].exp().tolist(), found[:, 25].tolist()
    assert rates == pytest.approx([12] * 3 + [24] * 3, rel=1e-4)
    assert widths == pytest.approx([math.log(64)] * 3 + [math.log(80)] * 3, rel=1e-5)
    assert found[:, :24].sum(1).tolist() == [3] * 6


def test_pictures_have_no_codec():
    data = load((np.zeros((20, 3, 32, 32), dtype=np.uint8), np.arange(20) % 2))
    assert "not clips" in standard(data)[1]["codec"]
