"""A minute of the fuzzer, in a process of its own: its cases are forked, and this process may have threads. `make fuzz N=2000` for long."""

import os
import sys

import pytest

from tests.support.processes import python

CASES = int(os.environ.get("UNSKEW_FUZZ_CASES", "45"))

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="cases are forked, and bounded by Linux's limits")


def test_no_tracebacks_no_wrong_statuses_nothing_left_no_hangs():
    done = python("tests.fuzz", "--cases", str(CASES), "--seed", "0")
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert f"{CASES} cases" in done.stdout


def test_a_fault_is_noticed():
    """The judge itself: a traceback, a status, a second line and a leftover each count."""
    from tests.fuzz.harness import HUNG, Ended

    assert Ended(2, "reading\nunskew: no such file\n", (), 1.0).faults == []
    assert Ended(0, "", ("run",), 1.0).faults == []
    assert Ended(1, "unskew: needs about 9 GB for features: lower data.size\n", (), 1.0).faults == []
    assert Ended(1, "unskew: KeyError: 'x'\n", (), 1.0).faults == ["status"]
    assert Ended(2, "Traceback (most recent call last):\n  x\nunskew: no\n", (), 1.0).faults == ["traceback"]
    assert Ended(2, "unskew: a\nunskew: b\n", (), 1.0).faults == ["lines"]
    assert Ended(2, "unskew: a\nand more\n", (), 1.0).faults == ["lines"]
    assert Ended(2, "unskew: a\n", ("out/x",), 1.0).faults == ["leftovers"]
    assert Ended(-11, "", (), 1.0).faults == ["status", "lines"]
    assert Ended(HUNG, "", (), 99.0).faults == ["hang"]
