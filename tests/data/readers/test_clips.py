"""Clips: which frames are read, a user's own videos, and those that cannot be read."""

import os
from pathlib import Path

import av
import numpy as np
import polars as pl
import pytest
import torch

from tests.support.media import picture, video
from unskew.core.errors import UserError
from unskew.data import load, manifest
from unskew.data.readers import clips
from unskew.data.readers.clips import places, read_clip
from unskew.data.readers.listing import images_below


def test_frames_are_those_asked_for(tmp_path):
    video(tmp_path / "v.avi", frames=12)
    clip = read_clip(str(tmp_path / "v.avi"), 4, (16, 16)).float().mean((1, 2, 3))
    expected = torch.tensor([20.0 * k for k in places(12, 4, "uniform", "")])
    assert (clip - expected).abs().max() < 8  # as near as the codec comes
    for k in range(6):
        picture(tmp_path / "f" / f"{k:03d}.png", (40 * k,) * 3)
    folder = read_clip(str(tmp_path / "f"), 3, (16, 16)).float().mean((1, 2, 3))
    assert folder.tolist() == [40.0, 120.0, 200.0]
    assert places(100, 5, "random", "a") != places(100, 5, "random", "b")
    assert all(20 * k <= p < 20 * (k + 1) for k, p in enumerate(places(100, 5, "random", "a")))


def test_users_own_clips(tmp_path, unskew):
    for c, name in enumerate(("up", "down")):
        for k in range(8):
            video(tmp_path / "d" / name / f"{k}.avi", start=100 * c)
    with pytest.raises(UserError, match=r"holds videos, not images; set the frames to take of each, such as data.frames=8"):
        load(tmp_path / "d")
    data = load(tmp_path / "d", frames=4, size=16)
    assert data.shape == (4, 3, 16, 16)
    streamed = load(tmp_path / "d", frames=4, size=16, mode="stream")
    assert torch.equal(streamed.inputs.rows(torch.arange(16))[0], data.inputs.rows(torch.arange(16))[0])
    said = unskew(
        "train", tmp_path / "d", "--model", "resnet", "model.kind=3d", "model.width=4", "data.frames=4", "data.size=16",
        "train.steps=2", "train.batch=4", "--out", tmp_path / "run",
    )  # fmt: skip
    assert said.returncode == 0, said.stderr


def test_videos_that_cannot_be_read_are_counted_or_stop_it(tmp_path):
    for name in ("up", "down"):
        for k in range(8):
            video(tmp_path / name / f"{k}.avi")
    (tmp_path / "up" / "3.avi").write_bytes(b"no video at all")
    whole = (tmp_path / "up" / "4.avi").read_bytes()
    (tmp_path / "up" / "4.avi").write_bytes(whole[:200])  # a header and nothing after it
    with pytest.raises(UserError, match=r"2 of 16 images cannot be decoded"):
        load(tmp_path, frames=4, size=16)
    data = load(tmp_path, frames=4, size=16, max_bad=0.2)
    assert data.notes[-1] == "2 clips could not be decoded and are left out"
    assert [data.paths[k].rpartition("/")[2] for k, _ in data.unreadable] == ["3.avi", "4.avi"]


def test_a_video_without_frames_is_none(tmp_path):
    with av.open(str(tmp_path / "sound.wav"), "w") as out:
        track = out.add_stream("pcm_s16le", rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 800), dtype=np.int16), format="s16", layout="mono")
        frame.rate = 8000
        for packet in (*track.encode(frame), *track.encode()):
            out.mux(packet)
    with pytest.raises(ValueError, match="no video track"):
        read_clip(str(tmp_path / "sound.wav"), 4, (16, 16))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="the folder has no frames"):
        read_clip(str(tmp_path / "empty"), 4, (16, 16))


@pytest.fixture
def many(tmp_path, monkeypatch, own_cache):
    """Sixteen clips that changed long ago, half of them folders of frames; as many as make a manifest here."""
    monkeypatch.setattr(manifest, "KEPT", 10)
    for c, name in enumerate(("up", "down")):
        for k in range(8):
            if k % 2:
                video(tmp_path / "d" / name / f"{k}.avi", start=100 * c)
                old(tmp_path / "d" / name / f"{k}.avi")
            else:
                for frame in range(3):
                    picture(tmp_path / "d" / name / str(k) / f"{frame}.png", (40 * frame + k,) * 3)
                    old(tmp_path / "d" / name / str(k) / f"{frame}.png")
                old(tmp_path / "d" / name / str(k))
    return tmp_path / "d"


def old(path):
    os.utime(path, (1_000_000_000, 1_000_000_000))


@pytest.fixture
def looked(monkeypatch):
    """The files that are opened for their digest."""
    names: list[str] = []
    real = clips.glimpse
    monkeypatch.setattr(clips, "glimpse", lambda path: (names.append("/".join(Path(path).parts[-2:])), real(path))[1])
    return names


def read(root):
    return load(root, frames=2, size=16, mode="stream").fingerprint


def test_a_clip_is_opened_once_and_again_when_it_changes(many, looked, monkeypatch):
    first = read(many)
    assert len(looked) == 16
    looked.clear()
    assert read(many) == first
    assert looked == []
    assert sum(map(len, (pl.read_parquet(part) for part in manifest.parts_of(str(many))))) == 16
    video(many / "up" / "3.avi", start=50)  # another video, another time
    (many / "down" / "4" / "0.png").unlink()  # another first frame, though no file has changed
    changed = read(many)
    assert sorted(looked) == ["4/1.png", "up/3.avi"]
    assert changed != first
    monkeypatch.setattr(manifest, "KEPT", 1000)
    assert read(many) == changed  # as without a manifest


def test_the_first_frame_is_that_of_the_sorted_files_below(tmp_path):
    for name in ("b.png", ".a.png", "notes.txt", "c.png"):
        picture(tmp_path / "flat" / name if name.endswith("png") else tmp_path / "flat" / "a.png", (9,) * 3)
    (tmp_path / "flat" / "a.png").rename(tmp_path / "flat" / "notes.txt")
    (tmp_path / "flat" / "0.png").symlink_to(tmp_path / "nowhere")
    picture(tmp_path / "deep" / "z" / "0.png", (9,) * 3)
    (tmp_path / "none").mkdir()
    for name in ("flat", "deep", "none"):
        listed = images_below(tmp_path / name)
        assert clips.first_frame(str(tmp_path / name)) == (str(listed[0]) if listed else "")
    assert clips.first_frame(str(tmp_path / "flat")).endswith("b.png")
