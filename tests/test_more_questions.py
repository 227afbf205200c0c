"""Texture clusters, temporal structure, shared classes and bias dependency, asked of finished runs."""

import json

import numpy as np
import pytest
from PIL import Image

import unskew as package
from unskew.core.errors import UserError
from unskew.features import compute, spec
from unskew.measure import cluster_accuracy, cross_dataset, texture_clusters
from unskew.pages.text import group_table
from unskew.records import Run, Table

CLIPS = "moving-digits:base=digits,rows=300,size=24,noise_std=0"
NARROW = {"model.width": 4, "train.steps": 3, "train.batch": 32}


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
    with pytest.raises(UserError, match="--temporal is for clips; colored-digits has inputs of shape"):
        package.evaluate(images, temporal=True)


def arrays(path, classes, n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, len(classes), n)
    names = np.array(classes)
    centre = np.array([sum(map(ord, c)) % 7 for c in classes])[y]
    np.savez(path, x=np.stack([centre + rng.standard_normal(n), rng.standard_normal(n)], 1), y=names[y])
    return str(path)


def test_another_set_with_other_classes_is_judged_on_those_that_both_have(tmp_path):
    run = package.train(arrays(tmp_path / "a.npz", ("run", "jump", "sit")), out=tmp_path / "run", settings={"train.epochs": 5})
    other = arrays(tmp_path / "b.npz", ("swim", "sit", "run"), seed=1)
    with pytest.raises(UserError, match="class 'swim', which the run does not know"):
        package.evaluate(run, other)
    found = package.evaluate(run, other, shared_classes=True)
    data = package.load(other)
    rows = (data.y != data.classes.index("swim")).nonzero().flatten()
    assert found.rows.tolist() == rows.tolist()
    expected = cross_dataset(found.predictions.column("logits"), found.data.classes, data.y[rows], data.classes)
    assert found.metrics["cross_dataset"]["mean"] == pytest.approx(expected.mean)
    assert set(found.metrics["cross_dataset"]["by_class"]) == {"run", "sit"}
    assert "average precision on 2 shared classes" in group_table(found)
    with pytest.raises(UserError, match="name it with --on"):
        package.evaluate(run, shared_classes=True)
    with pytest.raises(UserError, match="has a class that the run knows"):
        package.evaluate(run, arrays(tmp_path / "c.npz", ("swim", "fly")), shared_classes=True)


def with_a_site(path, sees_site):
    """A weak signal of the class and a column `site` that agrees with it in nine rows of ten, in the inputs too or not."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3000)
    site = np.where(rng.random(3000) < 0.9, y, 1 - y)
    x = np.stack([y + 0.9 * rng.standard_normal(3000), 3 * site * sees_site + 0.1 * rng.standard_normal(3000)], 1)
    np.savez(path, x=x, y=np.array(["a", "b"])[y], site=np.array(["p", "q"])[site])
    return str(path)


def test_a_model_that_sees_the_shortcut_depends_on_it_and_one_that_does_not_does_not(tmp_path):
    settings = {"data.bias": "site", "train.epochs": 10, "optim.lr": 0.01}
    found = {}
    for sees in (True, False):
        source = with_a_site(tmp_path / f"{sees}.npz", sees)
        found[sees] = package.dependency(
            source, phi="column:name=site", out=tmp_path / str(sees), rates=(0.2, 0.4), settings=settings
        )
        random, repaired = np.array(found[sees]["random"]), np.array(found[sees]["repaired"])
        assert found[sees]["beta"] == pytest.approx((random - repaired).mean())
    assert found[True]["beta"] > 0.1
    assert abs(found[False]["beta"]) < 0.06  # the two classes stay as they are: only the site is thinned
    assert sorted(p.name for p in (tmp_path / "True").iterdir() if p.is_dir()) == [
        f"{kind}-{rate}" for kind in ("random", "repaired") for rate in ("0.2", "0.4")
    ]


def test_dependency_needs_a_representation_and_a_split_that_is_weighed(tmp_path, unskew):
    source, training = "colored-mnist:base=digits,ratio=0.9,protocol=pgd", {"train.steps": 2}
    with pytest.raises(UserError, match="gives the test split no weights"):
        package.dependency(source, phi="color", out=tmp_path / "t", split="test", settings=training)
    for wrong, said in (
        ({"phi": ""}, "name with --phi"),
        ({"phi": "nosuch"}, "no representation 'nosuch'"),
        ({"rates": (0.5, 1.5)}, "keep rates must lie between 0 and 1"),
        ({"rates": (0.5, 0.5)}, "and differ"),
        ({"method": "jtt"}, "no method 'jtt'"),
        ({"settings": {"nosuch": 1}}, "unknown setting 'method.nosuch'"),
    ):
        with pytest.raises(UserError, match=said):
            package.dependency(source, **{"phi": "color", "out": tmp_path / "early", **wrong})
    assert not (tmp_path / "early").exists()
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="is not the result of dependency"):
        package.dependency(source, phi="color", out=tmp_path / "file")
    words = ["dependency", CLIPS, "--phi", "frame", "--model", "resnet", "--rates", "0.5", "--out", str(tmp_path / "clips")]
    words += ["model.kind=2d", "repair.epochs=5", *(f"{k}={v}" for k, v in NARROW.items()), "--json"]
    clips = json.loads(unskew(*words).stdout)
    assert clips["temporal"]["repaired"]["0.5"]["value"] == pytest.approx(0, abs=1e-5)


def test_a_representation_with_several_settings_and_images_that_cannot_be_read(tmp_path):
    rng = np.random.default_rng(0)
    for k in range(60):
        place = tmp_path / "png" / "ab"[k % 2]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (16, 16, 3), dtype=np.uint8)).save(place / f"{k}.png")
        if k % 10 == 0:
            (place / f"{k}.png").write_bytes(b"broken")
    asked = {"repair.epochs": 2, "train.steps": 2, "train.batch": 16, "data.max_bad": 0.5}
    phi = "layer:model=resnet,net.width=4,at=layer1,gram=true"
    found = package.dependency(tmp_path / "png", phi=phi, out=tmp_path / "d", model="mlp", rates=(0.5,), settings=asked)
    assert found["phi"] == phi
    rows = Run(tmp_path / "d" / "repaired-0.5").config["facts"]["rows"]
    random = Run(tmp_path / "d" / "random-0.5").config["facts"]["rows"]
    assert abs(rows - random) <= 6
    table = Table.read(tmp_path / "d" / "weights.parquet")
    assert int(table.column("score").isnan().sum()) == 6  # they have no score, and are in no subset
    with pytest.raises(UserError, match="no places for a Gram matrix"):
        package.dependency(tmp_path / "png", phi="layer:model=resnet,net.width=4,gram=true", out=tmp_path / "e", settings=asked)
