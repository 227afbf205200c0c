"""The fetch layer against a mirror on this machine: checksums, fall-back, going on after a broken line."""

import gzip
import hashlib
import http.server
import threading

import pytest

from unskew.core.errors import UserError
from unskew.core.fetch import Npm, Remote, Web, fetch

BODY = bytes(range(256)) * 400
DIGEST = hashlib.sha256(BODY).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    asked = []

    def do_GET(self):
        Handler.asked.append((self.path, self.headers.get("Range")))
        body = {"/good": BODY, "/bad": b"x" * 10, "/packed.gz": gzip.compress(BODY)}.get(self.path, BODY)
        if self.path == "/missing":
            self.send_error(404)
            return
        start = int((self.headers.get("Range") or "bytes=0-")[6:].rstrip("-"))
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        if self.path == "/breaks" and not start:
            self.wfile.write(body[:1000])  # and hang up
            return
        self.wfile.write(body[start:])

    def log_message(self, *args):
        pass


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    monkeypatch.setenv("UNSKEW_DATA", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    Handler.asked = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def file(*mirrors):
    return (Remote("f.bin", DIGEST, mirrors),)


def test_fetched_once_then_from_the_cache(mirror):
    for _ in range(2):
        (path,) = fetch("x", file(Web(f"{mirror}/good")))
        assert path.read_bytes() == BODY
    assert len(Handler.asked) == 1


def test_a_dead_or_lying_mirror_is_passed_over(mirror):
    (path,) = fetch("x", file(Web(f"{mirror}/missing"), Web(f"{mirror}/bad"), Npm("none@0.0.0", "x"), Web(f"{mirror}/packed.gz")))
    assert path.read_bytes() == BODY
    assert [p for p, _ in Handler.asked] == ["/missing", "/bad", "/packed.gz"]


def test_a_broken_line_is_gone_on_from(mirror):
    with pytest.raises(UserError, match="the connection broke at 1000 of"):
        fetch("x", file(Web(f"{mirror}/breaks")))
    (path,) = fetch("x", file(Web(f"{mirror}/breaks")))
    assert path.read_bytes() == BODY
    assert Handler.asked[-1] == ("/breaks", "bytes=1000-")


def test_a_damaged_cache_is_fetched_again(mirror):
    (path,) = fetch("x", file(Web(f"{mirror}/good")))
    path.write_bytes(BODY[:-1])
    assert fetch("x", file(Web(f"{mirror}/good")))[0].read_bytes() == BODY


def test_when_no_mirror_answers_it_says_what_to_do_by_hand(mirror, tmp_path):
    with pytest.raises(UserError, match=f"To add it by hand, put a file with SHA-256 {DIGEST} at"):
        fetch("x", file(Web(f"{mirror}/bad")))
    assert not [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]
