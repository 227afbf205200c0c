"""Every verb on a full disk and in a read-only folder; a disk that fills during training, and is emptied."""

import json
import os
import subprocess
import sys

import pytest

from tests.support.processes import python


def _mounts(place):
    """Whether this process may mount a small disk."""
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True, check=False)
    if done.returncode == 0:
        subprocess.run(["umount", str(place)], check=True)
    return done.returncode == 0


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    if not sys.platform.startswith("linux") or os.geteuid() != 0 or not _mounts(tmp_path_factory.mktemp("disk")):
        pytest.skip("only root on Linux may mount a disk")
    done = python("tests.fuzz.disks")
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", ["full", "read-only"])
def test_one_line_and_nothing_left_for_every_verb(found, kind):
    words = {"full": "the disk is full", "read-only": "Read-only file system; choose another place"}[kind]
    cases = {name: ended for name, ended in found.items() if name.startswith(f"{kind}: ")}
    assert len(cases) == 12
    for name, ended in cases.items():
        assert (ended["status"], ended["lines"], ended["left"]) == (2, 1, []), (name, ended)
        assert words in ended["said"][0], name


def test_a_training_resumes_when_there_is_space_again(found):
    ended = found["fills"]
    assert (ended["stopped"], ended["status"]) == (2, 0)
    assert "the disk is full" in ended["said"][0]
    assert ended["state kept"]
    assert ended["resumed"]
    assert ended["equal"]
