"""A folder of planted photographs, explored through the real application without a network."""

import pytest
from starlette.testclient import TestClient

from tests.support.watermarks import write_watermarks
from unskew.explore.app import application
from unskew.explore.explorer import Explorer
from unskew.explore.opened import open_place

TOKEN, PORT = "a-token-that-nobody-guesses", 8123


class Client:
    """Requests as the page makes them."""

    def __init__(self, explorer):
        self.explorer = explorer
        self.raw = TestClient(application(explorer, TOKEN, PORT), base_url=f"http://127.0.0.1:{PORT}", follow_redirects=False)

    def get(self, path, expect=200):
        answer = self.raw.get(f"/{TOKEN}/api/{path}")
        assert answer.status_code == expect, answer.text
        return answer

    def post(self, path, body, expect=200):
        answer = self.raw.post(f"/{TOKEN}/api/{path}", json=body)
        assert answer.status_code == expect, answer.text
        return answer.json()


@pytest.fixture
def photos(tmp_path, own_cache):
    """The folder of photographs, and the truth about the watermark."""
    root = tmp_path / "photos"
    return root, write_watermarks(root)


@pytest.fixture
def explore():
    """Open a place and talk to its application; features are computed when a test starts them."""

    def begin(place, write=True, **given):
        return Client(Explorer.of(open_place(str(place)), write=write, **given))

    return begin
