"""Small work on one thread, and the usual number again afterwards; threads for files that are waited for."""

import sys
import threading
import time

import pytest
import torch

from unskew.core import threads
from unskew.core.threads import SMALL, in_order, threads_for


@pytest.fixture
def two():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("numbers", "used"), [(0, 1), (SMALL - 1, 1), (SMALL, 2)])
def test_small_work_uses_one_thread(two, numbers, used):
    with threads_for(numbers):
        assert torch.get_num_threads() == used
    assert torch.get_num_threads() == 2


def test_the_number_comes_back_after_a_failure(two):
    with pytest.raises(ZeroDivisionError), threads_for(0):
        1 / 0  # noqa: B018
    assert torch.get_num_threads() == 2


def test_work_is_done_in_order_whoever_does_it(monkeypatch):
    squares = [k * k for k in range(50)]
    assert list(in_order(lambda k: k * k, range(50), 4)) == squares
    monkeypatch.setattr(threads, "_waits", lambda: None)  # where nobody counts, threads are used
    seen = set()
    assert list(in_order(lambda k: (seen.add(threading.get_ident()), time.sleep(0.002), k * k)[2], range(50), 4)) == squares
    assert len(seen) > 2


@pytest.mark.skipif(sys.platform != "linux", reason="waits are counted on Linux")
def test_threads_are_used_for_what_is_waited_for_alone():
    seen = {"at hand": set(), "waited for": set()}
    list(in_order(lambda k: seen["at hand"].add(threading.get_ident()), range(200), 4))
    list(in_order(lambda k: (seen["waited for"].add(threading.get_ident()), time.sleep(0.001)), range(200), 4))
    assert seen["at hand"] == {threading.get_ident()}
    assert len(seen["waited for"]) > 2
