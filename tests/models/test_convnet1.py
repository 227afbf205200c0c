"""ConvNet-1: its parameters counted by hand."""

from tests.support.networks import count


def test_parameters_counted_by_hand():
    # ConvNet-1: three 4x4 convolutions, three normalisations, 64 -> 10
    assert count("convnet1") == 3 * 8 * 16 + 8 + 16 + 8 * 32 * 16 + 32 + 64 + 32 * 64 * 16 + 64 + 128 + 650
