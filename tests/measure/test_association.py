"""Association against scikit-learn, SciPy and independence."""

import numpy as np
import pytest
import torch
from scipy.stats import chi2_contingency
from scipy.stats.contingency import association as scipy_association
from sklearn.metrics import mutual_info_score

from unskew.core.errors import UserError
from unskew.measure import association


def columns(n=300, seed=0):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=g)
    return y, torch.where(torch.rand(n, generator=g) < 0.5, y, torch.randint(0, 3, (n,), generator=g))


def test_plain_forms_are_the_libraries():
    y, b = columns()
    found = association(y, b)
    table = np.zeros((3, 3), dtype=int)
    np.add.at(table, (y.numpy(), b.numpy()), 1)
    assert found.plain_information == pytest.approx(mutual_info_score(y, b), rel=1e-10)
    assert found.plain_cramers_v == pytest.approx(scipy_association(table, method="cramer"), rel=1e-10)
    assert found.p_value == pytest.approx(chi2_contingency(table, correction=False).pvalue, rel=1e-8)


def test_corrections_by_hand():
    # 2 x 2 with counts 30, 10, 10, 30: chi2 = 80 * (1/2)^2 = 20, phi2 = 1/4.
    y = torch.tensor([0] * 40 + [1] * 40)
    b = torch.tensor([0] * 30 + [1] * 10 + [0] * 10 + [1] * 30)
    found = association(y, b)
    assert found.plain_cramers_v == pytest.approx(0.5)
    assert found.cramers_v == pytest.approx(((0.25 - 1 / 79) / (2 - 1 / 79 - 1)) ** 0.5)
    assert found.information == pytest.approx(found.plain_information - 1 / 160)


def test_corrected_forms_are_near_zero_for_independent_columns():
    plain, corrected = [], []
    for seed in range(200):
        g = torch.Generator().manual_seed(seed)
        found = association(torch.randint(0, 5, (100,), generator=g), torch.randint(0, 5, (100,), generator=g))
        plain.append(found.plain_cramers_v)
        corrected.append(found.cramers_v)
    assert sum(plain) / 200 > 0.15
    assert sum(corrected) / 200 < 0.07


def test_missing_rows_are_left_out_and_one_value_is_refused():
    y, b = columns()
    b[:50] = -1
    assert association(y, b).n == 250
    with pytest.raises(UserError, match="the bias column has fewer than two values"):
        association(y, torch.zeros(300))
