"""Tiny pictures and videos."""

import av
import numpy as np
from PIL import Image


def picture(path, colour=(90, 90, 90), side=24):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (side, side), colour).save(path)


def video(path, frames=12, side=32, start=0):
    """A video whose frame k is grey of level start + 20 k."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as out:
        track = out.add_stream("mpeg4", rate=12)
        track.width = track.height = side
        track.pix_fmt = "yuv420p"
        track.bit_rate = 1_000_000
        for k in range(frames):
            level = np.full((side, side, 3), min(start + 20 * k, 255), dtype=np.uint8)
            for packet in track.encode(av.VideoFrame.from_ndarray(level, format="rgb24")):
                out.mux(packet)
        for packet in track.encode():
            out.mux(packet)
