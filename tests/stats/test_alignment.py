"""Aligned pairs from hand-made tables: never the rarer case of a class, and in words."""

import hypothesis.strategies as st
import torch
from hypothesis import given

from unskew.stats.alignment import BUILT, COUNTED, Alignment, aligned_pairs, in_words


def table(*rows):
    aligned, neither = aligned_pairs(torch.tensor(rows))
    return aligned.int().tolist(), neither.int().tolist()


def test_the_usual_case_is_the_diagonal():
    assert table([95, 5], [5, 95]) == ([[1, 0], [0, 1]], [[0, 0], [0, 0]])
    ten = torch.full((10, 10), 1).fill_diagonal_(91)
    assert torch.equal(aligned_pairs(ten)[0], torch.eye(10).bool())


def test_an_over_represented_but_rarer_value_is_not_aligned():
    """160 of 200 rows are indoors: expected 80 and 20 in each class. Of cats 75 and 25 are seen: outdoors has lift 1.25."""
    assert table([75, 25], [85, 15]) == ([[0, 0], [1, 0]], [[1, 1], [0, 0]])


def test_independent_columns_have_no_aligned_pair():
    assert table([30, 60], [10, 20]) == ([[0, 0], [0, 0]], [[1, 1], [1, 1]])
    assert table([7, 7, 7], [3, 3, 3]) == ([[0] * 3] * 2, [[1] * 3] * 2)


def test_several_values_of_a_class_can_be_aligned():
    # Values 0 and 1 are over-represented and common in the first class, 2 and 3 in the second.
    assert table([40, 40, 10, 10], [10, 10, 40, 40])[0] == [[1, 1, 0, 0], [0, 0, 1, 1]]


def test_a_value_below_one_that_is_more_common_is_never_conflicting_with_it():
    """First class: shares .55, .35, .10. Value totals 1250, 450, 300 of 2000; expected 625, 225, 150 of its 1000 rows.

    Only the second value is over-represented (350 / 225), but it is rarer than the first: no pair is aligned.
    """
    aligned, neither = table([550, 350, 100], [700, 100, 200])
    assert aligned[0] == [0, 0, 0]
    assert neither[0] == [1, 1, 1]
    # Second class: 700 > 625 and the most common; 200 > 150 is over-represented but below a third of 1000: neither.
    assert aligned[1] == [1, 0, 0]
    assert neither[1] == [0, 0, 1]


def test_a_value_without_rows_does_not_lower_the_bar():
    # Two of three values occur, so the average share is a half: 40 of 100 is not the common case.
    assert table([60, 40, 0], [80, 20, 0])[0] == [[0, 0, 0], [1, 0, 0]]


@given(st.lists(st.lists(st.integers(0, 50), min_size=3, max_size=3), min_size=2, max_size=4))
def test_in_every_table_aligned_pairs_are_the_more_common_ones_of_their_class(rows):
    counts = torch.tensor(rows)
    aligned, neither = aligned_pairs(counts)
    assert not bool((aligned & neither).any())
    for n, a, m in zip(counts, aligned, neither, strict=True):
        if bool(a.any()):
            assert int(n[a].min()) > int(n[~a].max() if bool((~a).any()) else -1)
            assert 3 * int(n[a].min()) >= int(n.sum())
        else:
            assert bool(m.all())


def test_rows_are_aligned_in_every_column_or_conflicting_in_one():
    eye, none = torch.eye(2).bool(), torch.zeros(2, 2).bool()
    neutral = torch.tensor([[False, True], [False, False]])
    pairs = Alignment((eye, eye), (none, neutral), COUNTED)
    bias = torch.tensor([[0, 0], [1, 0], [0, 1], [1, 1], [-1, 0]])
    aligned, conflicting = pairs.of_rows(torch.zeros(5, dtype=torch.long), bias)
    assert aligned.tolist() == [True, False, False, False, False]
    assert conflicting.tolist() == [False, True, False, True, False]  # (0, 1) of the second column is neither


def test_words():
    classes, values = ["cat", "dog", "fox"], ["in", "out"]
    # 196 of 300 rows are indoors, two thirds less a bit; foxes are outdoors more than others, but still mostly in.
    aligned, neither = aligned_pairs(torch.tensor([[90, 10], [46, 54], [60, 40]]))
    said = in_words("place", classes, values, aligned, neither, COUNTED)
    assert said == (
        "aligned: the (class, place) pairs that occur more often together in training than by chance and are the common case of "
        "their class: cat-in, dog-out; conflicting: the others; neither: all rows of class fox, where no place is both common and "
        "more often than by chance"
    )
    nothing = aligned_pairs(torch.ones(3, 2))
    assert in_words("place", classes, values, *nothing, COUNTED).startswith("aligned: no (class, place) pair, because")
    many = torch.eye(10).bool()
    names = [str(k) for k in range(10)]
    assert in_words("c", names, names, many, ~many & False, BUILT).endswith("4-4, 5-5 and 4 more; conflicting: the others")
