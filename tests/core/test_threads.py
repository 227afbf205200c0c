"""Small work on one thread, and the usual number again afterwards."""

import pytest
import torch

from unskew.core.threads import SMALL, threads_for


@pytest.fixture
def two():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("numbers", "threads"), [(0, 1), (SMALL - 1, 1), (SMALL, 2)])
def test_small_work_uses_one_thread(two, numbers, threads):
    with threads_for(numbers):
        assert torch.get_num_threads() == threads
    assert torch.get_num_threads() == 2


def test_the_number_comes_back_after_a_failure(two):
    with pytest.raises(ZeroDivisionError), threads_for(0):
        1 / 0  # noqa: B018
    assert torch.get_num_threads() == 2
