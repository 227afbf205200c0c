"""The web application: a few addresses, each one call of the explorer. Static files are those of the package, by name, and no others."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from unskew.core.errors import UserError
from unskew.core.failures import describe
from unskew.core.files import dumps
from unskew.core.workplace import Busy
from unskew.explore.explorer import Explorer
from unskew.explore.guard import Guard
from unskew.explore.pictures import Outside
from unskew.explore.tags import ReadOnly

STATIC = Path(__file__).parent / "static"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
MOST_BYTES = 8_000_000  # of a request's body: a million sample ids
FOREVER = {"cache-control": "private, max-age=86400, immutable"}  # the address holds a token that is used once


def application(explorer: Explorer, token: str, port: int) -> Guard:
    """The guarded application of one exploration."""
    return Guard(Starlette(routes=_routes(explorer), exception_handlers={HTTPException: _missing}), token, port)


def _routes(explorer: Explorer) -> list[Route]:
    def whole(asked: Request, name: str, default: int) -> int:
        try:
            return int(asked.query_params.get(name, default))
        except ValueError:
            raise UserError(f"{name} must be a whole number") from None

    def window(asked: Request) -> Response:
        return _json(explorer.window(asked.query_params.get("view", ""), whole(asked, "from", 0), whole(asked, "count", 100)))

    def row(asked: Request) -> Response:
        return _json(explorer.row(asked.path_params["row"]))

    def picture(asked: Request, large: bool) -> Response:
        explorer.check(asked.path_params["row"])
        content, kind = (explorer.pictures.large if large else explorer.pictures.small)(asked.path_params["row"])
        return Response(content, media_type=kind, headers=FOREVER)

    def view(asked: dict[str, Any]) -> Any:
        return explorer.view(asked.get("where", {}), asked.get("sort", ""), asked.get("descending", False))

    def tag(asked: dict[str, Any]) -> Any:
        value = asked.get("value")
        if value not in (True, False, None):
            raise UserError("value must be true, false or null")
        return explorer.mark(_text(asked, "tag"), explorer.ids(asked), value)

    def forget(asked: dict[str, Any]) -> Any:
        explorer.tags.forget(_text(asked, "tag"))
        return {"tags": explorer.about()["tags"]}

    def drop(asked: dict[str, Any]) -> Any:
        explorer.tags.drop(explorer.ids(asked), bool(asked.get("value", True)))
        return {"done": True}

    def relabel(asked: dict[str, Any]) -> Any:
        label = asked.get("label")
        explorer.tags.relabel(explorer.ids(asked), None if label is None else str(label))
        return {"done": True}

    reading: dict[str, Callable[[Request], Response]] = {
        "/": lambda _: _static("index.html"),
        "/{name:str}": lambda asked: _static(asked.path_params["name"]),
        "/api/about": lambda _: _json(explorer.about()),
        "/api/rows": window,
        "/api/row/{row:int}": row,
        "/api/small/{row:int}": lambda asked: picture(asked, False),
        "/api/large/{row:int}": lambda asked: picture(asked, True),
        "/api/map": lambda _: Response(explorer.points(), media_type="application/octet-stream"),
        "/api/colours/{column:path}": lambda asked: Response(
            explorer.colours(asked.path_params["column"]), media_type="application/octet-stream"
        ),
        "/api/ask/{tag:str}": lambda asked: _json(explorer.ask(asked.path_params["tag"])),
        "/api/measure/{tag:str}": lambda asked: _json(explorer.measures.of(asked.path_params["tag"])),
    }
    asking: dict[str, Callable[[dict[str, Any]], Any]] = {
        "/api/view": view, "/api/tag": tag, "/api/spread": lambda asked: explorer.spread(_text(asked, "tag")),
        "/api/forget": forget, "/api/drop": drop, "/api/relabel": relabel,
    }  # fmt: skip
    return [
        *(Route(path, _get(answer), methods=["GET"]) for path, answer in reading.items()),
        *(Route(path, _post(answer), methods=["POST"]) for path, answer in asking.items()),
    ]


def _get(answer: Callable[[Request], Response]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            return await run_in_threadpool(answer, request)
        except Exception as error:
            return _failed(error)

    return endpoint


def _post(answer: Callable[[dict[str, Any]], Any]) -> Callable[[Request], Awaitable[Response]]:
    """A form of another page cannot send JSON, and a body that is too long is not read to its end."""

    async def endpoint(request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return _json({"error": "the body must be application/json"}, 415)
        raw = bytearray()
        async for part in request.stream():
            raw += part
            if len(raw) > MOST_BYTES:
                return _json({"error": f"the body is longer than {MOST_BYTES} bytes"}, 413)
        try:
            asked = json.loads(bytes(raw) or b"{}")
        except (ValueError, RecursionError):
            return _json({"error": "the body is not JSON"}, 400)
        if not isinstance(asked, dict):
            return _json({"error": "the body must be an object"}, 400)
        try:
            return _json(await run_in_threadpool(answer, asked))
        except Exception as error:
            return _failed(error)

    return endpoint


def _failed(error: Exception) -> Response:
    """One line for whatever went wrong. Paths of this machine are no secret to the one who sits at it."""
    status = 403 if isinstance(error, (ReadOnly, Outside)) else 409 if isinstance(error, Busy) else 400
    return _json({"error": describe(error)[1]}, status if isinstance(error, UserError) else 500)


async def _missing(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _json({"error": error.detail}, error.status_code)


def _json(value: Any, status: int = 200) -> Response:
    return Response(dumps(value, indent=None), status, media_type="application/json")


def _static(name: str) -> Response:
    """A file of the package's own, found by its plain name among those that are there."""
    known = {path.name: path for path in STATIC.iterdir() if path.suffix in TYPES}
    if name not in known:
        return _json({"error": "Not Found"}, 404)
    return Response(known[name].read_bytes(), media_type=TYPES[known[name].suffix])


def _text(asked: dict[str, Any], name: str) -> str:
    value = asked.get(name)
    if not isinstance(value, str):
        raise UserError(f"{name} must be text")
    return value
