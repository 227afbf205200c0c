"""Who is let in: nobody without the token, no page of another origin, no name that was made to point here."""

import re

import pytest

from unskew.explore.guard import POLICY, Guard

TOKEN, PORT = "a-token-that-nobody-guesses", 8123
OWN = f"127.0.0.1:{PORT}"


@pytest.fixture
def client(folder, own_cache, explore):
    return explore(folder, write=True).raw


@pytest.mark.parametrize(
    "path", ["/", "/api/about", "/wrong/api/about", f"/{TOKEN}x/api/about", f"//{TOKEN}/api/about", f"/x/../{TOKEN[:-1]}/"]
)
def test_nothing_answers_without_the_token(client, path):
    answer = client.get(path)
    assert answer.status_code == 403
    assert "token" in answer.text
    assert TOKEN not in answer.text


def test_the_token_opens_the_page_and_its_scripts(client):
    page = client.get(f"/{TOKEN}/")
    assert page.status_code == 200
    for name in re.findall(r'(?:src|href)="([\w.]+)"', page.text):
        assert client.get(f"/{TOKEN}/{name}").status_code == 200
    assert client.get(f"/{TOKEN}").headers["location"] == f"/{TOKEN}/"


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}", f"127.0.0.1.evil.example:{PORT}", ""]
)
def test_another_host_name_is_refused_even_with_the_token(client, host):
    answer = client.get(f"/{TOKEN}/api/about", headers={"host": host})
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "headers",
    [{"origin": "http://evil.example"}, {"origin": "null"}, {"origin": f"https://{OWN}"}, {"origin": f"http://127.0.0.1:{PORT + 1}"},
     {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}],
)  # fmt: skip
def test_a_page_of_another_origin_is_refused_even_with_the_token(client, headers):
    assert client.get(f"/{TOKEN}/api/about", headers=headers).status_code == 403
    assert client.post(f"/{TOKEN}/api/tag", json={"tag": "t", "rows": [0], "value": True}, headers=headers).status_code == 403


def test_its_own_page_is_let_in_by_both_names(client):
    for host in (OWN, f"localhost:{PORT}"):
        headers = {"host": host, "origin": f"http://{host}", "sec-fetch-site": "same-origin"}
        assert client.get(f"/{TOKEN}/api/about", headers=headers).status_code == 200


def test_every_answer_forbids_what_the_page_does_not_need(client):
    for path in (f"/{TOKEN}/", f"/{TOKEN}/api/about", f"/{TOKEN}/api/small/0", "/", f"/{TOKEN}/nothing"):
        headers = client.get(path).headers
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in headers
    assert "unsafe" not in POLICY
    assert "default-src 'none'" in POLICY


def test_a_form_of_another_page_cannot_write(client):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        answer = client.post(
            f"/{TOKEN}/api/tag", content='{"tag": "t", "rows": [0], "value": true}', headers={"content-type": kind}
        )
        assert answer.status_code == 415


def test_two_hosts_or_none_are_refused():
    guard = Guard(None, TOKEN, PORT)
    assert guard.refusal(f"/{TOKEN}/", [])
    assert guard.refusal(f"/{TOKEN}/", [(b"host", OWN.encode()), (b"Host", b"evil.example")])
    assert not guard.refusal(f"/{TOKEN}/", [(b"Host", OWN.encode())])


@pytest.mark.parametrize(
    "path",
    ["../pyproject.toml", "..%2f..%2fapp.py", "%2e%2e/app.py", "static/../../app.py", "/etc/passwd", "app.py",
     "api/small/../../../etc/passwd",
     "api/small/%2fetc%2fpasswd", "api/large/0/../../x", "api/row/-1", "api/row/99999999999999999999", "api/small/1000000"],
)  # fmt: skip
def test_paths_lead_to_rows_and_to_the_packages_own_files_only(client, path):
    answer = client.get(f"/{TOKEN}/{path}")
    assert answer.status_code in (400, 403, 404)
    assert "root:" not in answer.text
    assert "import" not in answer.text
