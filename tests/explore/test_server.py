"""The command: an address on this machine, and one line for everything that can be wrong."""

import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from unskew.core.errors import UserError
from unskew.explore.server import HOST, listen


def test_it_listens_on_this_machine_alone():
    with listen(0) as made:
        assert made.getsockname()[0] == HOST == "127.0.0.1"
        assert made.getsockname()[1] > 0


def test_a_port_that_is_taken_is_one_line(unskew, folder):
    with socket.socket() as other:
        other.bind((HOST, 0))
        other.listen()
        port = other.getsockname()[1]
        done = unskew("explore", folder, "--port", port, expect=2)
    assert len(done.stderr.splitlines()) == 1
    assert f"port {port} cannot be used" in done.stderr
    assert "--port" in done.stderr


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_that_cannot_be_is_refused(port):
    with pytest.raises(UserError, match="must lie in"):
        listen(port)


def test_without_the_extra_the_line_says_what_to_install(folder):
    code = (
        "import sys; sys.modules['uvicorn'] = None\nfrom unskew.core.errors import UserError\nfrom unskew.explore.server import explore\n"
        f"try: explore({str(folder)!r})\nexcept UserError as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install 'unskew[explore]'" in said


def test_places_that_cannot_be_explored_are_one_line(unskew, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "alien" / "src").mkdir(parents=True)
    (tmp_path / "alien" / "src" / "main.c").write_text("int main;")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "audit.json").write_text("{")
    reasons = {"empty": "an empty folder", "alien": "neither an audit", "broken": "damaged", "nowhere": "unknown source"}
    for place, words in {**reasons, "alien/src/main.c": "cannot read"}.items():
        done = unskew("explore", place, expect=2)
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert words in done.stderr
    assert "end in .parquet" in unskew("explore", "toy", "--tags", "x.csv", expect=2).stderr
    assert "nothing is trained" in unskew("explore", "toy", "train.steps=3", expect=2).stderr
    assert "--most" in unskew("explore", "toy", "--most", "-1", expect=2).stderr


def test_an_interrupt_while_the_server_starts_is_a_clean_end(photos):
    root, _ = photos
    code = (
        "import asyncio, signal\nfrom unskew.explore.server import explore\n"
        "begin = asyncio.Runner.__init__\n"
        "def interrupted(*args, **kwargs): signal.raise_signal(signal.SIGINT); begin(*args, **kwargs)\n"
        f"asyncio.Runner.__init__ = interrupted\nexplore({str(root)!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("wait", [0.0, 0.2])
def test_an_interrupt_while_features_are_computed_is_a_clean_end(photos, wait):
    root, _ = photos
    words = [sys.executable, "-m", "unskew", "explore", str(root)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
    assert process.stdout.readline().startswith("http://127.0.0.1:")
    time.sleep(wait)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert (process.returncode, said) == (0, "")
