"""AFLite's scores against scikit-learn; it drops what a feature solves, and an interrupted one resumes."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression

from unskew.core.errors import UserError
from unskew.core.matrix import spilled
from unskew.core.rng import stream
from unskew.repairs import aflite
from unskew.repairs.aflite import predictability


def test_aflite_scores_rank_as_scikit_learn_fits_do():
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(0, 3, (300,), generator=generator)
    x = F.one_hot(y, 3) + 0.9 * torch.randn(300, 3, generator=generator)
    ours = predictability(x, y, 32, 0.5, None, stream(0, "aflite", 0))
    same, right, held = stream(0, "aflite", 0), np.zeros(300), np.zeros(300)
    for _ in range(32):
        inside = (torch.randperm(300, generator=same) < 150).numpy()
        fitted = LogisticRegression().fit(x[inside], y[inside])
        right += (fitted.predict(x) == y.numpy()) & ~inside
        held += ~inside
    assert spearmanr(ours, right / held).statistic > 0.95


def test_with_many_rows_the_classifiers_are_fitted_on_some_and_judge_all(monkeypatch):
    monkeypatch.setitem(predictability.__globals__, "POOL", 200)
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(0, 3, (500,), generator=generator)
    x = F.one_hot(y, 3) + 0.9 * torch.randn(500, 3, generator=generator)
    ours = predictability(x, y, 16, 0.5, None, stream(0, "aflite", 0))
    same, right, held = stream(0, "aflite", 0), np.zeros(500), np.zeros(500)
    pool = torch.randperm(500, generator=same)[:200].sort().values
    for _ in range(16):
        fit_on = pool[torch.randperm(200, generator=same) < 100].numpy()
        judged = np.setdiff1d(np.arange(500), fit_on)
        fitted = LogisticRegression().fit(x[fit_on], y[fit_on])
        right[judged] += fitted.predict(x[judged]) == y[judged].numpy()
        held[judged] += 1
    assert float(np.abs(ours.numpy() - right / held).mean()) < 0.02
    assert spearmanr(ours, right / held).statistic > 0.95


def test_aflite_drops_what_the_feature_solves_and_goes_on_after_an_interruption(tmp_path, monkeypatch):
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(0, 2, (400,), generator=generator)
    z = torch.where(torch.arange(400) < 300, y, torch.randint(0, 2, (400,), generator=generator)).float()[:, None]
    z = z + 0.05 * torch.randn(400, 1, generator=generator)
    settings = {"models": 16, "slice": 0.1, "size": 0.3}
    kept, score, rounds = aflite(z, y, **settings)
    assert rounds > 2
    assert float(score[300:].mean()) < float(score[:300].mean())
    agree = (z[:, 0].round() == y).float()
    assert float(agree[kept].mean()) < float(agree.mean()) - 0.05
    seen = []

    def one_round(*args):
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(1)
        return predictability(*args)

    monkeypatch.setitem(aflite.__globals__, "predictability", one_round)
    with pytest.raises(KeyboardInterrupt):
        aflite(z, y, state=tmp_path / "state", **settings)
    monkeypatch.undo()
    resumed = aflite(z, y, state=tmp_path / "state", **settings)
    assert torch.equal(resumed[0], kept)
    assert resumed[2] == rounds


@pytest.mark.parametrize(
    "ask",
    [
        lambda: aflite(np.zeros((0, 3)), []),
        lambda: aflite(np.zeros((2, 3)), [-1, 0]),
    ],
)
def test_no_rows_and_codes_out_of_range_are_told(ask):
    with pytest.raises(UserError):
        ask()


def test_features_in_a_file_are_filtered_as_those_in_memory(tmp_path):
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(0, 3, (400,), generator=generator)
    x = (F.one_hot(y, 3) + 0.9 * torch.randn(400, 3, generator=generator)).float()
    settings = {"models": 16, "slice": 0.1, "size": 0.5}
    held, stored = aflite(x, y, **settings), aflite(spilled(x, tmp_path), y, **settings)
    assert len(set(held[0].tolist()) ^ set(stored[0].tolist())) <= 4  # but for the rounding of standardised columns
    assert spearmanr(held[1], stored[1]).statistic > 0.99
