"""Average precision on the classes that two sets share, against scikit-learn."""

import pytest
import torch
from sklearn.metrics import average_precision_score

from unskew.core.errors import UserError
from unskew.measure import cross_dataset


def test_cross_dataset_maps_classes_by_name():
    g = torch.Generator().manual_seed(0)
    logits = torch.randn(50, 3, generator=g)  # trained on run, jump, sit
    y = torch.randint(0, 3, (50,), generator=g)  # the other set: sit, run, swim
    found = cross_dataset(logits, ["run", "jump", "sit"], y, ["sit", "run", "swim"])
    assert set(found.by_class) == {"sit", "run"}
    rows = y < 2
    score = logits[rows].double().softmax(1)
    assert found.by_class["sit"] == pytest.approx(average_precision_score(y[rows] == 0, score[:, 2]))
    assert found.by_class["run"] == pytest.approx(average_precision_score(y[rows] == 1, score[:, 0]))
    assert found.n == int(rows.sum())
    with pytest.raises(UserError, match="share 0 classes"):
        cross_dataset(logits, ["a", "b", "c"], y, ["sit", "run", "swim"])
