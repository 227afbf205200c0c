"""A run judged on another set, over the classes that both have."""

import numpy as np
import pytest

import unskew as package
from unskew.core.errors import UserError
from unskew.measure import cross_dataset
from unskew.pages.text import group_table


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
