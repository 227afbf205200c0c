"""A column of texts: what goes in comes out, wherever it is cut, and it is small."""

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unskew.data.texts import Texts, contents, in_turn

texts = st.lists(st.text(st.characters(), max_size=6), max_size=12)


@given(texts, st.text(max_size=3), st.integers(-14, 14), st.integers(-14, 14), st.sampled_from([1, 2, -1, -3]))
def test_it_is_a_sequence_like_a_tuple(given_texts, before, start, stop, step):
    plain = tuple(before + text for text in given_texts)
    column = Texts.of(given_texts, before)
    assert tuple(column) == plain
    assert [column[k] for k in range(-len(plain), len(plain))] == [plain[k] for k in range(-len(plain), len(plain))]
    assert tuple(column[start:stop:step]) == plain[start:stop:step]
    assert tuple(column[start:stop][1:]) == plain[start:stop][1:]
    assert column == plain
    assert pickle.loads(pickle.dumps(column)) == column


@given(texts, texts)
def test_joined(first, second):
    assert tuple(Texts.joined([Texts.of(first, "a/")[1:], Texts.of(second)])) == (*[f"a/{t}" for t in first[1:]], *second)


def test_names_that_are_not_utf8_are_known():
    assert Texts.of(["é", "plain"]).is_utf8
    assert not Texts.of(["\udcff"]).is_utf8
    assert Texts.of(["b", "/a"]).any_begins("/")
    assert not Texts.of(["", "b/a"]).any_begins("/")


def test_a_text_takes_its_length_and_eight_bytes():
    column = Texts.of(f"{k:04d}" for k in range(1000))
    assert column.raw.nbytes + column.starts.nbytes == 1000 * 4 + 1001 * 8
    assert column.starts.dtype == np.int64


def test_what_is_opened_is_the_path_itself():
    column = Texts.of(["a", "b", "c"], "x/")
    assert contents(column, [2, 0]) == contents(("x/a", "x/b", "x/c"), [2, 0]) == ["x/c", "x/a"]
    assert list(in_turn(column, [0, 1, 2], few=2)) == ["x/a", "x/b", "x/c"]
