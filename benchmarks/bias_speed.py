"""representation_bias against scikit-learn's LogisticRegression on 50,000 x 512 features and 10 classes: same risk, less time.

    python -m benchmarks bias_speed [--whole]

Both do the same job: five folds, five weight decays, every row judged by the model of its fold. scikit-learn gets the same
standardised features and folds; only one of its folds is timed and scaled up, unless --whole is given.
"""

import argparse
import time

import torch
from sklearn.linear_model import LogisticRegression

from benchmarks._registry import Figure
from unskew.measure.representation_bias import DECAYS, representation_bias
from unskew.stats.readers import spread_folds

ROWS, WIDTH, CLASSES, FOLDS = 50_000, 512, 10, 5


def figures(words):
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--whole", action="store_true", help="run scikit-learn on all folds instead of one")
    given = asked.parse_args(words)
    torch.set_num_threads(1)
    g = torch.Generator().manual_seed(0)
    y = torch.randint(0, CLASSES, (ROWS,), generator=g)
    centres = torch.randn(CLASSES, WIDTH, generator=g) * 0.12
    x = centres[y] + torch.randn(ROWS, WIDTH, generator=g) @ (
        torch.eye(WIDTH) + 0.3 * torch.randn(WIDTH, WIDTH, generator=g) / WIDTH**0.5
    )
    started = time.process_time()
    ours = representation_bias(x, y, folds=FOLDS, permutations=0, bootstrap=0)
    ours_time = time.process_time() - started
    fold = spread_folds(y, FOLDS, 0)
    z = ((x - x.mean(0)) / x.std(0)).numpy()
    losses = {d: [] for d in DECAYS}
    folds = range(FOLDS) if given.whole else range(1)
    started = time.process_time()
    for k in folds:
        train, test = (fold != k).numpy(), (fold == k).numpy()
        for decay in DECAYS:
            model = LogisticRegression(C=1 / (decay * train.sum()), max_iter=1000, tol=1e-4).fit(z[train], y[train].numpy())
            p = torch.from_numpy(model.predict_log_proba(z[test]))
            losses[decay].append(-p.gather(1, y[test][:, None]).mean())
    theirs_time = (time.process_time() - started) * FOLDS / len(folds)
    chosen = torch.stack(losses[ours.decay])
    # Classes are nearly equal, so a row's prior loss equals the entropy to 1e-4.
    own = torch.stack([(ours.entropy - ours.gain[fold == k]).mean() for k in folds])
    more = {
        "ours (s)": ours_time,
        "scikit-learn (s)": theirs_time,
        "largest difference of risk": float((own - chosen).abs().max()),
    }
    what = f"representation_bias, {ROWS:,} x {WIDTH}: scikit-learn's LogisticRegression on the same folds over ours"
    yield Figure("representation bias, scikit-learn", what, theirs_time / ours_time, least=3.0, more=more)
