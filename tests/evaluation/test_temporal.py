"""The temporal structure score, asked of networks with and without a sense of time."""

import dataclasses

import pytest

import unskew as package
from tests.support.clips import CLIPS, NARROW
from unskew.core.errors import UserError


def test_a_network_of_single_frames_has_no_temporal_structure(tmp_path):
    scores = {}
    for kind in ("2d", "3d"):
        run = package.train(CLIPS, model="resnet", out=tmp_path / kind, settings=NARROW | {"model.kind": kind})
        scores[kind] = package.evaluate(run, temporal=True).metrics["temporal"]
        assert scores[kind]["n"] == 30
    assert scores["2d"]["value"] == pytest.approx(0, abs=1e-5)
    assert scores["3d"]["low"] > 1e-3
    page = package.report([tmp_path / "2d", tmp_path / "3d"], tmp_path / "page.html").read_text()
    assert f"<td>{scores['3d']['value']:.3g}<span" in page
    images = package.train("colored-mnist:base=digits", out=tmp_path / "images", settings={"train.steps": 2})
    with pytest.raises(UserError, match="--temporal needs clips; colored-digits has inputs of shape"):
        package.evaluate(images, temporal=True)


def test_clips_of_any_class_can_be_played_backwards(tmp_path):
    run = package.train(CLIPS, model="resnet", out=tmp_path / "run", settings=NARROW | {"model.kind": "3d"})
    clips = package.load(CLIPS + ",seed=3")
    known = package.evaluate(run, clips, temporal=True)
    strangers = dataclasses.replace(clips, classes=tuple(f"another {c}" for c in clips.classes))
    found = package.evaluate(run, strangers, temporal=True)
    assert found.metrics["temporal"] == known.metrics["temporal"]  # the labels are not asked for
    assert found.groups.plain.n == 0
    assert known.groups.plain.n == 30
    with pytest.raises(UserError, match="which the run does not know"):
        package.evaluate(run, strangers)
