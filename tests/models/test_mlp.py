"""The perceptron: its parameters counted by hand."""

from tests.support.networks import count


def test_parameters_counted_by_hand():
    # LfF's perceptron 2352-100-100-100-10
    assert count("mlp") == 2352 * 100 + 100 + 2 * (100 * 100 + 100) + 1010
