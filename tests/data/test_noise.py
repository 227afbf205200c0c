"""Label noise is a setting of any source, and follows its seed."""

import numpy as np

import unskew as package
from unskew.data import load


def test_noise_is_a_setting_of_any_source(folder):
    clean, noisy = load(folder), load(folder, noise=0.5)
    assert int((clean.y != noisy.y).sum()) == 10 + 1  # of 20 train and 2 val rows
    assert clean.fingerprint != noisy.fingerprint


def test_noise_follows_the_seed_of_the_set():
    a, b = (package.load(f"colored-mnist:base=digits,noise=0.1,seed={seed}") for seed in (0, 1))
    clean = package.load("digits").y
    assert not np.array_equal((a.y != clean).numpy(), (b.y != clean).numpy())
