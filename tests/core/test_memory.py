"""Memory between what is still used goes back to the system."""

import os
import sys

import pytest

from unskew.core.memory import release


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_gaps_are_given_back():
    blocks = [bytes([k % 251 + 1]) * 20_000 for k in range(10_000)]  # 200 MB in pieces that the C library keeps
    kept = blocks[::100]
    del blocks
    before = resident()
    release()
    assert before - resident() > 100e6
    assert len(kept) == 100


def test_another_c_library_is_left_alone(monkeypatch):
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    release()
