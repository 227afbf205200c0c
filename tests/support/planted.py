"""Vectors with a weak signal of the class and a strong shortcut, whose column `site` lies beside them."""

import numpy as np

TRAIN, VAL, TEST = 1000, 400, 400


def planted_vectors(path, aligned=0.95, seed=0, columns=True):
    """One number shows the class (84 % alone), another the site, which agrees with it in `aligned` of the rows; half in the test."""
    rng = np.random.default_rng(seed)
    n = TRAIN + VAL + TEST
    y = rng.integers(0, 2, n)
    site = np.where(rng.random(n) < aligned, y, 1 - y)
    site[-TEST:] = rng.integers(0, 2, TEST)
    x = rng.standard_normal((n, 5))
    x[:, 0] += 2 * y - 1
    x[:, 1] = 2 * site - 1 + 0.2 * rng.standard_normal(n)
    more = {"site": np.array(["p", "q"])[site]} if columns else {}
    split = np.array(["train"] * TRAIN + ["val"] * VAL + ["test"] * TEST)
    np.savez(path, x=x.astype(np.float32), y=np.array(["a", "b"])[y], split=split, **more)
    return str(path)


def worst_true_group(path, index, said):
    """Accuracy of the worst (class, site) group, counted row by row."""
    arrays = np.load(path)
    right, rows = {}, {}
    for i, answer in zip(index, said, strict=True):
        group = str(arrays["y"][i]), str(arrays["site"][i])
        rows[group] = rows.get(group, 0) + 1
        right[group] = right.get(group, 0) + (arrays["y"][i] == "ab"[answer])
    assert len(rows) == 4
    return min(right[g] / rows[g] for g in rows)
