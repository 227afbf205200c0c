"""Ctrl-C during a short block comes after it; elsewhere nothing changes."""

import signal
import threading

import pytest

from unskew.core.interrupts import interrupted_later


def test_ctrl_c_waits_for_the_end_of_the_block():
    done = []

    def work():
        with interrupted_later():
            signal.raise_signal(signal.SIGINT)
            done.append("the block")
        done.append("what follows")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["the block"]
    with pytest.raises(KeyboardInterrupt):  # as before
        signal.raise_signal(signal.SIGINT)


def test_who_ignores_it_goes_on_doing_so():
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupted_later():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, usual)


def test_other_threads_cannot_set_handlers_and_do_not_try():
    failed = []

    def work():
        try:
            with interrupted_later():
                pass
        except ValueError as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert failed == []
