"""LeNet-5: its parameters counted by hand."""

from tests.support.networks import count


def test_parameters_counted_by_hand():
    # LeNet-5: 3*6*25+6, 6*16*25+16, 256*120+120, 120*84+84, 84*10+10
    assert count("lenet5") == 456 + 2416 + 30_840 + 10_164 + 850
