"""What anything that went wrong means to the user: one line and a status."""

import errno
import sys
import warnings
from types import SimpleNamespace

import polars as pl
import pytest
import torch
from torch import nn

from unskew.core import failures
from unskew.core.errors import UserError
from unskew.core.failures import describe, is_allocation, refusing


def caught(work):
    try:
        work()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def test_memory_that_is_not_there_is_said_with_its_size():
    error = caught(lambda: torch.empty(2**46, dtype=torch.uint8))  # 70,369 GB
    assert is_allocation(error)
    status, line = describe(error)
    assert status == 1
    assert line.startswith("needs about 7.04e+04 GB for ")


def test_the_network_that_asked_for_the_memory_is_named():
    class Greedy(nn.Module):
        def forward(self, x):
            return torch.empty(2**45, dtype=torch.uint8)

    class Method(nn.Module):
        sees = frozenset()
        cfg = SimpleNamespace(g={"model": "mlp", "channels": 9})

        def __init__(self):
            super().__init__()
            self.g = nn.ModuleList([Greedy()])

        def loss(self):
            return self.g[0](None)

    _, line = describe(caught(Method().loss))
    assert line == "needs about 3.52e+04 GB for the activations of g: lower train.batch or g.channels"


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 2, "the disk is full"),
        (OSError(errno.ENAMETOOLONG, "File name too long", "x" * 300), 2, "File name too long; choose another place"),
        (OSError(errno.EIO, "Input/output error", "disk/a"), 1, "disk/a: Input/output error. UNSKEW_DEBUG=1"),
        (OSError("no number"), 1, "no number"),
        (MemoryError(), 1, "needs more memory than there is"),
        (KeyboardInterrupt(), 130, "run the same command again"),
        (ZeroDivisionError("a\nb"), 1, "ZeroDivisionError: a b"),
        (RecursionError("deep"), 1, "RecursionError: deep"),
    ],
)
def test_every_error_has_a_status_and_one_line(error, status, words):
    got, line = describe(error)
    assert got == status
    assert words in line
    assert "\n" not in line
    assert len(line) < 300


class PanicException(BaseException):
    """As polars has it: no Exception."""


def test_a_panic_of_a_reader_is_the_inputs_fault():
    def panic():
        with refusing("t.parquet cannot be read"):
            raise PanicException("index out of bounds")

    error = caught(panic)
    assert isinstance(error, UserError)
    assert str(error) == "t.parquet cannot be read (PanicException: index out of bounds)"


@pytest.mark.parametrize(
    "error", [OSError(errno.EIO, "Input/output error"), MemoryError(), KeyboardInterrupt(), UserError("mine")]
)
def test_trouble_of_the_machine_stays_what_it_is(error):
    def work():
        with refusing("the table"):
            raise error

    assert caught(work) is error


def _refusal(read):
    """What a reader says of a damaged file; empty if it reads it."""
    try:
        read()
    except UserError as error:
        return str(error)
    return ""


def test_a_parquet_file_with_flipped_bytes_says_nothing_but_one_error(tmp_path, capfd):
    from unskew.core.tables import read_parquet

    path = tmp_path / "t.parquet"
    pl.DataFrame({"a": list(range(500)), "b": ["x", "yy"] * 250}).write_parquet(path)
    good = path.read_bytes()
    refused = 0
    for place in range(0, len(good), 37):
        path.write_bytes(good[:place] + bytes([good[place] ^ 0x5A]) + good[place + 1 :])
        said = _refusal(lambda: read_parquet(path))
        refused += str(path) in said
    assert refused > 5  # the rest read as other values, which nobody can know
    assert capfd.readouterr().err == ""


def test_a_librarys_warning_is_one_line_and_pillows_come_once(capsys, monkeypatch):
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    with warnings.catch_warnings():
        failures.one_line_warnings()
        for name in ("/site-packages/PIL/Image.py", "/site-packages/PIL/TiffImagePlugin.py", "/elsewhere.py"):
            warnings.showwarning(UserWarning("odd\n  thing"), UserWarning, name, 1)
    assert capsys.readouterr().err.splitlines() == ["warning: an image is odd: odd thing (said once)", "warning: odd thing"]


def test_the_traceback_comes_only_when_asked_for(capsys, monkeypatch):
    error = caught(lambda: 1 / 0)
    monkeypatch.delenv("UNSKEW_DEBUG", raising=False)
    failures.show_traceback(error)
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("UNSKEW_DEBUG", "1")
    failures.show_traceback(error)
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert sys.exc_info()[0] is None
