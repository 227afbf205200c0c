"""Verdicts on claims, from results made up so that each of them is known."""

import math

import pytest

from docs.claims import CLAIMS, NOT, REPRODUCED, SAME, UNKNOWN, Found, Gap, _at_equal_f1, _toy, page, verdict
from tests.support.results import line as toy_line
from unskew.pages.results import add


@pytest.mark.parametrize(
    ("ours", "published", "spread", "said"),
    [
        ([30.0, 32.0, 34.0], 34.0, 3.0, REPRODUCED),  # 32 is within 34 - 3
        ([40.0, 41.0, 42.0], 34.0, 0.0, REPRODUCED),  # better
        ([10.0, 11.0, 12.0], 34.0, 3.0, SAME),  # clearly above zero, but too small
        ([10.0, 11.0, 12.0], math.nan, 0.0, SAME),  # the paper prints no number
        ([-1.0, 5.0, 2.0], math.nan, 0.0, NOT),  # the interval of three seeds contains zero
        ([40.0], 34.0, 0.0, NOT),  # one seed has no interval
        ([], 34.0, 0.0, UNKNOWN),
    ],
)
def test_a_gap_is_judged_by_its_interval_and_the_published_one(ours, published, spread, said):
    assert Gap("x", ours, published, spread).verdict == said


def test_the_interval_is_that_of_students_t():
    low, high = Gap("x", [1.0, 2.0, 3.0]).interval
    assert (low, high) == pytest.approx((2 - 4.302653 / math.sqrt(3), 2 + 4.302653 / math.sqrt(3)))  # from a table, 2 degrees


def test_a_claim_is_as_weak_as_its_weakest_gap():
    strong, weak = Gap("a", [5.0, 5.1], 5.0), Gap("b", [1.0, 1.1], 5.0)
    assert verdict([strong]) == REPRODUCED
    assert verdict([strong, weak]) == SAME
    assert verdict([strong, weak, Gap("c", [])]) == UNKNOWN


def test_the_page_judges_what_is_there_and_says_what_is_not(tmp_path):
    add(tmp_path / "toy.md", [toy_line("erm", k, 0.55 + 0.01 * k) for k in range(3)])
    add(tmp_path / "toy.md", [toy_line("rebias", k, 0.80 + 0.01 * k) for k in range(3)])
    files = [tmp_path / "toy.csv"]
    (gap,) = _toy(Found(files))
    assert gap.ours == pytest.approx([25, 25, 25])
    assert gap.published == pytest.approx(89 - 55)
    text = page(files)
    assert "## 4. On the toy, ReBias takes unbiased accuracy from 55 to 89 % (ReBias): same direction" in text
    assert text.count(": not run yet\n") == len(CLAIMS) - 1
    assert "1 of 10 are reproduced or in the same direction." in text


def test_noise_is_compared_at_the_f1_of_the_critic():
    class Results:
        values = {("tiles", "", m, "f1_macro"): {} for m in ("erm", "noise-1", "noise-2", "last")}

        def of(self, data, at, method, figure):
            table = {"erm": (60.0, 80.0), "noise-1": (50.0, 70.0), "noise-2": (40.0, 65.0), "last": (45.0, 52.0)}
            return {0: table[method][figure == "leakage.model"]} if method in table else {}

    assert _at_equal_f1(Results()) == pytest.approx([67.5 - 52.0])  # halfway between 70 and 65
