"""Settings of the whole suite: hypothesis without a clock, no network, and small data sets that tests share."""

import os

# One thread each: two test workers with two threads each on two cores wait for one another. Before torch is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from PIL import Image

settings.register_profile("repo", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("repo")

# A shell that runs the tests in its background makes them, and whatever they start, deaf to Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

LOOPBACK = ("127.0.0.1", "::1", "localhost", "0.0.0.0")


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """A test that reaches out fails, whatever the machine allows."""
    real = socket.socket.connect

    def connect(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in LOOPBACK:
            raise OSError(f"tests have no network, not even {address}")
        return real(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect)


@pytest.fixture
def unskew(tmp_path):
    """The real command line, in a process of its own, in an empty folder."""

    def run(*words, expect=0, cwd=None, env=None, **kwargs):
        done = subprocess.run(
            [sys.executable, "-m", "unskew", *map(str, words)],
            capture_output=True,
            text=True,
            cwd=cwd or tmp_path,
            env=os.environ | (env or {}),
            timeout=300,
            **kwargs,
        )
        assert done.returncode == expect, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return run


def write_image(path: Path, colour, side=(32, 32), seed=0):
    """A noisy patch of one colour."""
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(seed).integers(-20, 20, (*side, 3))
    Image.fromarray(np.clip(np.array(colour) + noise, 0, 255).astype(np.uint8)).save(path)


@pytest.fixture
def folder(tmp_path):
    """Two classes of twelve images."""
    root = tmp_path / "photos"
    for k in range(12):
        write_image(root / "cat" / f"{k}.png", (200, 60, 60), seed=k)
        write_image(root / "dog" / f"{k}.png", (60, 60, 200), seed=100 + k)
    return root


# Helpers that check something explain a failure as tests do.
pytest.register_assert_rewrite("tests.support")


@pytest.fixture
def real_set(tmp_path):
    """The maker of a real set's official layout: by its name, the source and its folder."""
    from tests.support.real_sets import MAKE

    def build(name):
        more = MAKE[name](tmp_path)
        return f"{name}:root={tmp_path}" + (f",{more}" if more else ""), tmp_path

    return build


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """Downloads and features go to a cache of the test's own."""
    monkeypatch.setenv("UNSKEW_DATA", str(tmp_path / "cache"))


@pytest.fixture
def suite(tmp_path):
    """The small suite, in a file beside its table."""
    from tests.support.suites import GOOD, TABLE

    (tmp_path / "table.csv").write_text(TABLE)
    path = tmp_path / "toy.toml"
    path.write_text(GOOD)
    return path
