"""Files that appear whole or not at all, names that stay inside, and temporary files that only their owner removes."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unskew.core import files
from unskew.core.errors import UserError
from unskew.core.files import (
    check_shape,
    defused,
    nothing_left,
    parents,
    part_path,
    read_json,
    replacing,
    safe_name,
    whole_folder,
)


@given(st.text(max_size=400))
def test_a_safe_name_is_one_part_of_a_path(name):
    safe = safe_name(name)
    assert Path(safe).name == safe
    assert os.path.normpath(os.path.join("/out", safe)) == f"/out/{safe}"
    assert 0 < len(os.fsencode(safe)) <= 200
    assert not safe.startswith(".")
    assert safe_name(safe) == safe


def test_long_names_that_begin_alike_stay_apart():
    assert safe_name("a" * 300 + "1") != safe_name("a" * 300 + "2")
    assert safe_name("a" * 300 + ".png").endswith(".png")


def other(path, tag):
    return path.with_name(f".{path.name}.{tag}.part")


def test_parts_of_the_living_and_of_other_containers_stay(tmp_path):
    out = tmp_path / "t.parquet"
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    dead = ended.pid
    alive, gone = other(out, f"{files.machine()}-{os.getppid()}"), other(out, f"{files.machine()}-{dead}")
    container, old = other(out, f"0badcafe-{dead}"), other(out, "0badcafe-7")
    for path in (alive, gone, container, old):
        path.write_text("half")
    long_ago = time.time() - 8 * 24 * 3600
    os.utime(old, (long_ago, long_ago))
    with replacing(out) as part:
        part.write_text("whole")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([out.name, alive.name, container.name])
    folder = tmp_path / "kept"
    theirs = other(folder, f"0badcafe-{dead}")
    theirs.mkdir()
    with whole_folder(folder) as part:
        (part / "a").touch()
    assert theirs.is_dir()


def test_two_containers_have_different_parts(tmp_path, monkeypatch):
    mine = part_path(tmp_path / "x")
    files.machine.cache_clear()
    monkeypatch.setattr(files.socket, "gethostname", lambda: "another")
    theirs = part_path(tmp_path / "x")
    files.machine.cache_clear()
    assert mine != theirs  # although the number of the process is the same


def test_folders_made_for_nothing_are_removed(tmp_path):
    def work():
        with parents(tmp_path / "a" / "b" / "c"):
            assert (tmp_path / "a" / "b").is_dir()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert not list(tmp_path.iterdir())


def test_what_was_there_before_stays(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").touch()

    def work():
        with nothing_left(tmp_path / "out", tmp_path / "beside"):
            (tmp_path / "out" / "deep").mkdir()
            (tmp_path / "out" / "deep" / "new").touch()
            (tmp_path / "beside").touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert [p.name for p in sorted(tmp_path.rglob("*"))] == ["out", "old"]


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1"])
def test_a_formula_does_not_begin_a_cell(text):
    assert defused(text) == f"'{text}"


@pytest.mark.parametrize("text", ["cat", "-3", "+1e-5", "", "a=b"])
def test_numbers_and_words_stay_as_they_are(text):
    assert defused(text) == text


@pytest.mark.parametrize("content", ["", "{", "[1]", "[" * 100_000, "\xff", "3"])
def test_a_record_that_is_none_is_refused_by_its_name(tmp_path, content):
    path = tmp_path / "r.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(UserError, match=r"r\.json"):
        read_json(path)


@pytest.mark.parametrize("wrong", [{"a": "1"}, {"a": True}, {}, {"a": 1, "b": {"c": [1]}}, {"a": 1, "b": []}])
def test_a_record_of_another_shape_is_refused(wrong):
    with pytest.raises(UserError, match="damaged or not unskew's"):
        check_shape(wrong, {"a": int, "b": {"c": [str]}}, Path("r.json"))
