"""The verb dependency: a model that sees the shortcut depends on it; and what is refused."""

import json

import numpy as np
import pytest
from PIL import Image

import unskew as package
from tests.support.clips import CLIPS, NARROW
from unskew.core.errors import UserError
from unskew.records import Run, Table


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
        ).json()
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
        ({"phi": ""}, "dependency needs --phi"),
        ({"phi": "nosuch"}, "no representation 'nosuch'"),
        ({"rates": (0.5, 1.5)}, "keep rates must lie between 0 and 1"),
        ({"rates": (0.5, 0.5)}, "and differ"),
        ({"method": "jtt"}, "method 'jtt' has several stages"),
        ({"settings": {"nosuch": 1}}, "unknown setting 'method.nosuch'"),
    ):
        with pytest.raises(UserError, match=said):
            package.dependency(source, **{"phi": "color", "out": tmp_path / "early", **wrong})
    assert not (tmp_path / "early").exists()
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="not the result of dependency"):
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
    assert found.phi == phi
    rows = Run(tmp_path / "d" / "repaired-0.5").config["facts"]["rows"]
    random = Run(tmp_path / "d" / "random-0.5").config["facts"]["rows"]
    assert abs(rows - random) <= 6
    table = Table.read(tmp_path / "d" / "weights.parquet")
    assert int(table.column("score").isnan().sum()) == 6  # they have no score, and are in no subset
    with pytest.raises(UserError, match="gram=true needs a layer that is a map"):
        package.dependency(tmp_path / "png", phi="layer:model=resnet,net.width=4,gram=true", out=tmp_path / "e", settings=asked)
