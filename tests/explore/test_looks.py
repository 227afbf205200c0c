"""Places on the map: by UMAP where it is installed, else by PCA, which is checked against a decomposition made here."""

import importlib.machinery
import sys
import types

import numpy as np
import pytest
import torch

from unskew.explore import looks
from unskew.explore.looks import _looks, map_of


@pytest.fixture
def umap(monkeypatch):
    """A stand-in for umap-learn that notes what it is asked for, and puts every row at its first two features, turned round."""
    asked = []

    class UMAP:
        def __init__(self, **given):
            self.given = given

        def fit_transform(self, x):
            asked.append((self.given, x))
            return -x[:, :2].astype(np.float64)

    module = types.ModuleType("umap")
    module.UMAP, module.__spec__ = UMAP, importlib.machinery.ModuleSpec("umap", None)
    monkeypatch.setitem(sys.modules, "umap", module)
    return asked


def rows(n=40, width=5):
    return torch.from_numpy(np.random.default_rng(0).normal(size=(n, width)).astype(np.float32))


def test_umap_places_the_rows_where_it_is_installed(umap):
    x = rows()
    points, how = map_of(x)
    assert how == "UMAP"
    assert points.dtype == torch.float32
    torch.testing.assert_close(points, -x[:, :2])
    ((given, seen),) = umap
    assert given["n_components"] == 2
    assert given["random_state"] == 0  # the same map every time
    np.testing.assert_array_equal(seen, x.numpy())


def test_without_umap_the_map_is_that_of_the_two_largest_components(monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)  # as if it were not installed
    x = rows() * torch.tensor([1.0, 5.0, 0.1, 3.0, 0.2])
    points, how = map_of(x)
    assert how == "PCA"
    centred = (x - x.mean(0)).double().numpy()
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    for k in (0, 1):  # the sign of a component is free
        assert abs(np.corrcoef(points[:, k], u[:, k] * s[k])[0, 1]) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("n", [1, 15, 51])
def test_too_few_and_too_many_rows_are_not_given_to_umap(umap, monkeypatch, n):
    monkeypatch.setattr(looks, "UMAP_ROWS", 50)
    points, how = map_of(rows(n))
    assert (how, tuple(points.shape)) == ("PCA", (n, 2))
    assert not umap


def test_in_a_hurry_the_map_is_by_pca(umap):
    assert map_of(rows(), quick=True)[1] == "PCA"
    assert not umap


def test_the_map_is_there_at_once_and_gets_better(umap, folder, own_cache, explore):
    client = explore(folder)
    looks = client.explorer.looks
    drawn = [seen.how for seen in _looks(looks.data, looks.rows())]
    assert [how.partition(" ")[0] for how in drawn] == ["PCA", "UMAP"]
    looks.start()
    looks._thread.join(300)
    assert looks.version == 2
    low, high = client.explorer.looks.seen.points.min(), client.explorer.looks.seen.points.max()
    assert (float(low), float(high)) == (0.0, 1.0)
    client.get("about")
    assert client.get("about").json()["map"]["how"].startswith("UMAP of ")
