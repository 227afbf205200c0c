"""Accuracy over clusters of texture, asked of a finished run."""

import pytest

import unskew as package
from tests.support.clips import NARROW
from unskew.core.errors import UserError
from unskew.features import compute, spec
from unskew.measure import cluster_accuracy, texture_clusters
from unskew.pages.text import group_table


def test_texture_clusters_of_a_run(tmp_path):
    source = "texture-shapes:rows=2000,size=24"
    run = package.train(source, model="resnet", out=tmp_path / "run", settings=NARROW)
    found = package.evaluate(run, split="train", textures="texture")  # enough rows for cells of more than 10
    data = package.load(source)
    ids, features = compute(data, [spec("texture")], data.rows("train"))
    logits = found.predictions.column("logits")
    expected = cluster_accuracy(logits, data.y[ids], texture_clusters(features["texture"]))
    assert found.metrics["textures"]["value"] == pytest.approx(expected.value)
    assert "unbiased over 9 clusters of texture" in group_table(found)
    assert package.evaluate(run, split="train").metrics["textures"] == found.metrics["textures"]  # kept: it took time
    judged = package.evaluate(run, textures="texture")  # the test split is too small for cells of more than 10 rows
    assert judged.metrics["textures"]["reason"]
    page = package.report([run], tmp_path / "page.html").read_text()
    assert "over texture clusters" in page
    assert judged.metrics["textures"]["reason"] in page
    with pytest.raises(UserError, match="no representation 'nosuch'"):
        package.evaluate(run, textures="nosuch")
