"""Single numbers of a vector: those that stand out, and not the best of many that tell nothing."""

import numpy as np
import pytest
import torch

import unskew as package
from tests.support.pictures import features
from unskew.core.errors import UserError
from unskew.data import load
from unskew.features import spec, standard
from unskew.parts.opinion import nuisances
from unskew.representations.number import explained_variance

pytestmark = pytest.mark.usefixtures("own_cache")


def planted(width=6, n=600, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    x = rng.standard_normal((n, width)).astype("float32")
    return x, y


def test_share_of_the_variance_between_the_classes():
    x, y = planted()
    x[:, 1] += y
    x[:, 5] = 7
    by_hand = []
    for column in x.T.astype("float64"):
        groups = [column[y == c] for c in range(3)]
        between = sum(len(g) * (g.mean() - column.mean()) ** 2 for g in groups)
        total = ((column - column.mean()) ** 2).sum()
        by_hand.append(between / total if total else 0.0)
    found = explained_variance(torch.from_numpy(x).double(), torch.from_numpy(y), 3)
    torch.testing.assert_close(found, torch.tensor(by_hand, dtype=torch.float64))


def test_an_audit_measures_the_numbers_that_stand_out():
    x, y = planted()
    x[:, 4] += 2 * y
    x[:, 2] += y
    x[:, 3] += 0.3 * y  # hardly: eta^2 is 0.06
    data = load((x, y))
    assert [s.name for s in standard(data)[0]] == ["input", "number:at=2", "number:at=4"]
    assert torch.equal(features(data, "number:at=4").flatten(), data.inputs.x[:, 4])
    assert nuisances(data) == []  # asked about, and never balanced away unasked
    assert spec("number:at=9").missing(data) == "at=9: the vectors have numbers 0 to 5"
    with pytest.raises(UserError, match="numbers 0 to 5"):
        features(data, "number:at=9")


@pytest.mark.parametrize(("n", "width", "classes"), [(100, 2000, 2), (400, 5000, 2), (500, 500, 50)])
def test_the_best_of_many_that_tell_nothing_is_not_measured(n, width, classes):
    rng = np.random.default_rng(1)
    data = load((rng.standard_normal((n, width)).astype("float32"), np.arange(n) % classes))
    assert [s.name for s in standard(data)[0]] == ["input"]


def test_pictures_and_several_labels_have_none(folder):
    assert not any(s.name.startswith("number") for s in standard(load(folder))[0])
    x, y = planted()
    assert "number" not in {s.name for s in standard(load((x, np.stack([y > 0, y > 1], 1).astype(int))))[0]}


def test_a_number_that_a_model_follows_is_still_a_question(tmp_path):
    rng = np.random.default_rng(0)
    z = rng.standard_normal(900)
    x = np.stack([z, rng.standard_normal(900)], 1).astype("float32")
    y = (z + 0.5 * rng.standard_normal(900) > 0).astype(int)  # number 0 is what makes the class
    found = package.audit((x, y), out=tmp_path / "audit").findings[0]
    assert (found.name, found.verdict) == ("number:at=0", "question")
    assert found.followed < 0.5  # which would make a shortcut of anything that is not the input itself
