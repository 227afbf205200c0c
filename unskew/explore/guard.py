"""Who may ask: this machine's own pages, with the token in the address. Everything else is refused before any work is done.

The token is the first part of every path, so that scripts, pictures and requests carry it without a cookie, which other services of this
machine would receive too. The Host header must name this machine: a page elsewhere whose name is made to point here (DNS rebinding)
sends its own. A request that a page of another origin makes has an Origin or Sec-Fetch-Site header that says so.
"""

import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
}


def new_token() -> str:
    """Thirty-two random characters that are safe in an address.

    >>> len(new_token()) >= 32
    True
    """
    return secrets.token_urlsafe(24)


class Guard:
    """The application behind it sees only requests that are allowed, without the token in their path."""

    def __init__(self, app: App, token: str, port: int) -> None:
        self.app, self.token = app, token.encode()
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":  # nothing here speaks anything else
            return await send({"type": "websocket.close", "code": 1008})
        reason = self.refusal(scope["path"], scope["headers"])
        if reason:
            return await _answer(send, 403, f"{reason}\n")
        rest = scope["path"].removeprefix("/").partition("/")[1:]
        if not rest[0]:  # addresses on the page are relative: they need the slash
            return await _answer(send, 308, "", ((b"location", scope["path"].encode() + b"/"),))
        inner = {**scope, "path": f"/{rest[1]}", "raw_path": f"/{rest[1]}".encode(), "root_path": ""}
        return await self.app(inner, receive, _with_headers(send))

    def refusal(self, path: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """Why a request is refused; empty if it is allowed."""
        given: dict[str, list[str]] = {}
        for name, value in headers:
            given.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        hosts = given.get("host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return "refused: the explorer answers only to the address it printed"
        if any(origin != f"http://{hosts[0]}" for origin in given.get("origin", [])):
            return "refused: a page of another origin asked"
        if any(site not in ("same-origin", "none") for site in given.get("sec-fetch-site", [])):
            return "refused: a page of another site asked"
        token = path.removeprefix("/").partition("/")[0].encode()
        if not secrets.compare_digest(token, self.token):
            return "refused: open the whole address that unskew explore printed; it holds a token"
        return ""


async def _answer(send: Send, status: int, text: str, more: tuple[tuple[bytes, bytes], ...] = ()) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *((k.encode(), v.encode()) for k, v in HEADERS.items()), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})


def _with_headers(send: Send) -> Send:
    async def wrapped(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            known = {name.lower() for name, _ in message["headers"]}
            own = [(k.encode(), v.encode()) for k, v in {**HEADERS, "cache-control": "no-store"}.items()]
            message = {**message, "headers": [*message["headers"], *((k, v) for k, v in own if k not in known)]}
        await send(message)

    return wrapped
