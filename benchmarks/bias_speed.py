"""representation_bias against scikit-learn's LogisticRegression on 50,000 x 512 features and 10 classes: same risk, less time.

    python benchmarks/bias_speed.py

Both do the same job: five folds, five weight decays, every row judged by the model of its fold. scikit-learn gets the same
standardised features and folds; only one of its folds is timed and scaled up, unless --whole is given.
"""

import argparse
import time

import torch
from sklearn.linear_model import LogisticRegression

from unskew.measure.representation_bias import DECAYS, representation_bias
from unskew.stats.readers import spread_folds

ROWS, WIDTH, CLASSES, FOLDS = 50_000, 512, 10, 5


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--whole", action="store_true", help="run scikit-learn on all folds instead of one")
    given = words.parse_args()
    g = torch.Generator().manual_seed(0)
    y = torch.randint(0, CLASSES, (ROWS,), generator=g)
    centres = torch.randn(CLASSES, WIDTH, generator=g) * 0.12
    x = centres[y] + torch.randn(ROWS, WIDTH, generator=g) @ (
        torch.eye(WIDTH) + 0.3 * torch.randn(WIDTH, WIDTH, generator=g) / WIDTH**0.5
    )

    started = time.perf_counter()
    ours = representation_bias(x, y, folds=FOLDS, permutations=0, bootstrap=0)
    ours_time = time.perf_counter() - started

    fold = spread_folds(y, FOLDS, 0)
    z = ((x - x.mean(0)) / x.std(0)).numpy()
    losses = {d: [] for d in DECAYS}
    started = time.perf_counter()
    folds = range(FOLDS) if given.whole else range(1)
    for k in folds:
        train, test = (fold != k).numpy(), (fold == k).numpy()
        for decay in DECAYS:
            model = LogisticRegression(C=1 / (decay * train.sum()), max_iter=1000, tol=1e-4).fit(z[train], y[train].numpy())
            p = torch.from_numpy(model.predict_log_proba(z[test]))
            losses[decay].append(-p.gather(1, y[test][:, None]).mean())
    theirs_time = (time.perf_counter() - started) * FOLDS / len(folds)
    chosen = torch.stack(losses[ours.decay])
    surprise = ours.entropy  # classes are nearly equal, so a row's prior loss equals the entropy to 1e-4
    own = torch.stack([(surprise - ours.gain[fold == k]).mean() for k in folds])
    print(
        f"unskew {ours_time:.1f} s; scikit-learn {theirs_time:.1f} s{'' if given.whole else ' (one fold measured, times five)'}"
    )
    print(f"{theirs_time / ours_time:.1f} times faster; must be at least 3")
    print(f"risk at decay {ours.decay:g}, per fold measured: ours {own.tolist()}, scikit-learn {chosen.tolist()}")
    print(f"largest difference {float((own - chosen).abs().max()):.5f}; must be at most 0.001")


if __name__ == "__main__":
    main()
