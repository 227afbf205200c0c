"""A tag spread from few marks: held-out rows, the class cannot pass for the tag, the right representation is read."""

import math

import pytest
import torch
from sklearn.metrics import roc_auc_score

from unskew.core.errors import UserError
from unskew.parts.tagging import MOST, area, ask, principal, spread


def planted(n=600, seed=0):
    """A class that 90 % share with the tag, a block that shows the class, one that shows the tag, and noise."""
    g = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % 2
    tag = torch.where(torch.rand(n, generator=g) < 0.9, y, 1 - y)
    noise = torch.randn(n, 12, generator=g)
    shows = lambda code: torch.cat([3.0 * code[:, None] + torch.randn(n, 1, generator=g), noise], 1)  # noqa: E731
    return y, tag, {"class": principal(shows(y)), "tag": principal(shows(tag)), "noise": principal(noise)}


def test_the_class_does_not_pass_for_the_tag():
    y, tag, blocks = planted()
    mark = torch.full_like(tag, -1)
    mark[(tag == 1).nonzero().flatten()[:40]] = 1
    mark[(tag == 0).nonzero().flatten()[:20]] = 0
    found = spread(blocks, mark, y)
    assert found.weight["tag"] > 0.9
    for c in (0, 1):
        rest = (mark < 0) & (y == c)
        assert roc_auc_score(tag[rest], found.p[rest]) > 0.9
    assert found.agreement > 0.8
    mark[mark == 0] = -1
    assert math.isnan(spread(blocks, mark, y).agreement)  # nothing was marked no


def test_marked_rows_are_judged_by_readers_that_did_not_see_them():
    """With labels at random there is nothing to read, so that agreement with the marks is chance, not memory."""
    values = []
    for seed in range(6):
        g = torch.Generator().manual_seed(seed)
        mark = torch.full((300,), -1)
        mark[:60] = torch.randint(0, 2, (60,), generator=g)
        values.append(spread({"x": principal(torch.randn(300, 40, generator=g))}, mark).agreement)
    assert 0.3 < sum(values) / len(values) < 0.65


def test_wide_features_are_turned_to_their_principal_axes():
    x = torch.randn(200, 3, generator=torch.Generator().manual_seed(0)) @ torch.randn(
        3, 90, generator=torch.Generator().manual_seed(1)
    )
    turned = principal(x)
    assert turned.shape[1] <= MOST + 1
    assert bool((turned[:, 0] == 1).all())
    again = torch.linalg.lstsq(turned, x).solution
    assert torch.allclose(turned @ again, x, atol=1e-2)  # three axes hold all of it


def test_questions_are_open_doubtful_and_apart():
    p = torch.linspace(0, 1, 101)
    mark = torch.full((101,), -1)
    mark[50] = 1
    x = torch.arange(101.0)[:, None]
    asked = ask(p, mark, x, 4)
    assert 50 not in asked.tolist()
    assert float((p[asked] - 0.5).abs().max()) <= 0.201
    assert float(torch.cdist(x[asked], x[asked]).fill_diagonal_(99).min()) >= 5


def test_area_is_that_of_scikit_learn():
    g = torch.Generator().manual_seed(0)
    score, yes = torch.randint(0, 9, (200,), generator=g).double(), torch.rand(200, generator=g) < 0.3
    assert area(score, yes) == pytest.approx(roc_auc_score(yes, score))


def test_what_is_missing_is_said():
    x = {"x": principal(torch.randn(20, 2))}
    with pytest.raises(UserError, match="at least 3"):
        spread(x, torch.full((20,), -1))
    with pytest.raises(UserError, match="lack it"):
        spread(x, torch.ones(20, dtype=torch.long))
    with pytest.raises(UserError, match="no features"):
        spread({}, torch.ones(20, dtype=torch.long))
