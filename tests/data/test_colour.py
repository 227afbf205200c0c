"""Shares of bias values dealt out by exact counts, and tints of photographs."""

import numpy as np
import pytest
import torch

from unskew.data.colour import TINTS, even_shares, tinted


@pytest.mark.parametrize(("kinds", "ratio"), [(2, 0.95), (3, 0.7), (5, 0.2), (4, 0.0), (4, 1.0)])
def test_shares_are_exact_and_the_rest_is_even(kinds, ratio):
    counts = [40 + 7 * c for c in range(kinds)]
    y = torch.cat([torch.full((n,), c) for c, n in enumerate(counts)])
    value = even_shares(y, ratio, torch.Generator().manual_seed(3), kinds)
    for c, n in enumerate(counts):
        table = np.bincount(value[y == c].numpy(), minlength=kinds)
        assert table[c] == round(n * ratio)
        others = np.delete(table, c)
        assert others.sum() == n - table[c]
        assert others.max() - others.min() <= 1


def test_a_tint_is_a_product_of_every_pixel():
    x = np.random.default_rng(0).integers(0, 256, (600, 3, 4, 5), dtype=np.uint8)  # more rows than are tinted at once
    kind = np.arange(600) % len(TINTS)
    expected = np.rint(x * np.array(TINTS, dtype=np.float32)[kind][:, :, None, None])
    np.testing.assert_array_equal(tinted(torch.from_numpy(x), torch.from_numpy(kind)).numpy(), expected)
