"""Listing: the order and the choice of files are those of pathlib, and nothing that is not a file is listed."""

import os
import sys
from pathlib import Path

import pytest

from unskew.data.readers.listing import images_below
from unskew.data.readers.walking import images_in, measured, together
from unskew.data.texts import Texts


def test_the_files_of_pathlib_in_its_order(tmp_path):
    names = (
        "b.png",
        "a.JPG",
        "sub/z.png",
        "sub-x/a.png",
        "sub.png",
        "sub/deep/er/1.gif",
        ".hidden.png",
        ".dir/x.png",
        "n.txt",
        "é.png",
        "10.png",
        "9.png",
    )
    for name in names:
        (tmp_path / "cat" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "cat" / name).write_bytes(name.encode())
    (tmp_path / "cat" / "folder.png").mkdir()
    if sys.platform != "win32":
        (tmp_path / "cat" / "loop.png").symlink_to("loop.png")
        (tmp_path / "cat" / "gone.png").symlink_to("nowhere")
        (tmp_path / "cat" / "link.png").symlink_to("b.png")
        (tmp_path / "cat" / "around").symlink_to(tmp_path / "cat")
        os.mkfifo(tmp_path / "cat" / "pipe.png")
    (found,) = images_in([tmp_path / "cat"], tmp_path)
    expected = [p for p in images_below(tmp_path / "cat") if p.name != "pipe.png"]
    assert list(found.paths) == [str(p.relative_to(tmp_path)) for p in expected]
    assert found.size.tolist() == [p.stat().st_size for p in expected]
    assert found.mtime.tolist() == [p.stat().st_mtime_ns for p in expected]
    assert len(together([found, found]).paths) == 2 * len(expected)


def test_what_is_not_a_file_has_no_size(tmp_path):
    (tmp_path / "a.png").write_bytes(b"abc")
    found = measured(Texts.of(["a.png", "none.png", "", "a\0b", "x" * 300], before=os.path.join(tmp_path, "")))
    assert found.size.tolist() == [3, -1, -1, -1, -1]


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="needs folders that cannot be read")
def test_a_folder_that_cannot_be_read_is_passed_over(tmp_path):
    (tmp_path / "cat" / "closed").mkdir(parents=True)
    (tmp_path / "cat" / "closed").chmod(0)
    assert not len(images_in([Path(tmp_path / "cat")], tmp_path)[0].paths)
