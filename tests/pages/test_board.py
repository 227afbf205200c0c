"""The board of a bench: the time left, and the table on a terminal."""

import io

import pytest

from unskew.pages.board import Board
from unskew.suites.plan import plan
from unskew.suites.reader import read


def test_the_board_tells_the_time_left(suite, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("unskew.pages.board.time.monotonic", lambda: clock[0])
    tasks = plan(read(str(suite)), "smoke", only=["erm"], seeds=5)
    board = Board(tasks, workers=2)
    assert board.seconds_left() is None
    board.started(tasks[0])
    board.started(tasks[1])
    clock[0] = 100.0
    board.finished(tasks[0], {"figures": {"plain": 0.5}})
    board.finished(tasks[1], {})
    board.started(tasks[2])
    clock[0] = 140.0
    assert board.seconds_left() == pytest.approx((60 + 100 + 100) / 2)  # one run 40 s old, two to come
    assert board.headline() == "2 of 5 runs, 2 min left"


def test_the_board_is_a_table_on_a_terminal(suite):
    from rich.console import Console

    tasks = plan(read(str(suite)), "smoke", only=["erm"], seeds=40)
    board = Board(tasks, workers=1)
    for task in tasks[:20]:
        board.started(task)
        board.finished(task, {"figures": {"plain": 0.5}})
    board.started(tasks[20])
    board.failed(tasks[20], "out of memory")
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(board)
    lines = console.export_text().splitlines()
    assert lines[0].startswith("21 of 40 runs")
    assert len(lines) == 32  # the headline, the names of the columns, and thirty runs
    assert any("failed: out of memory" in line for line in lines)
    assert any("plain 50.0" in line for line in lines)
    assert any("waiting" in line for line in lines)
