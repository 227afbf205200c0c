"""The explorer as the fuzzer meets it: once it serves, it is asked for odd things over its own address, and then stopped."""

import http.client
import json
import threading
from typing import Any
from urllib.parse import quote, urlencode

READING = ("rows", "row", "small", "large", "colours", "ask", "measure", "map")
WRITING = ("view", "tag", "spread", "forget", "drop", "relabel")


def ask_hostile_things(asked: list[tuple[str, dict[str, Any]]]) -> None:
    """From here on uvicorn, in this process, serves these requests only; an answer of 500 or none at all ends it with an error."""
    import uvicorn

    serve = uvicorn.Server.run

    def run(self: Any, sockets: Any = None) -> None:
        # It has its own ways with signals in the main thread.
        serving = threading.Thread(target=serve, args=(self,), kwargs={"sockets": sockets}, daemon=True)
        serving.start()
        try:
            for name, fields in [("", {}), ("about", {}), *asked, ("about", {})]:
                status = _answer(sockets[0].getsockname()[1], self.config.app.token.decode(), name, fields)
                assert 200 <= status < 500, f"{name} {fields} was answered with {status}"
        finally:
            self.should_exit = True
            serving.join(20)

    uvicorn.Server.run = run


def _answer(port: int, token: str, name: str, fields: dict[str, Any]) -> int:
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    if not name:
        link.request("GET", f"/{token}/")
    elif name in READING or name == "about":
        text = {key: value for key, value in fields.items() if not isinstance(value, (dict, list))}
        inside = (
            ""
            if name in ("about", "map", "rows")
            else f"/{quote(str(fields.get('tag', fields.get('row', 3))), safe='', errors='replace')}"
        )
        link.request("GET", f"/{token}/api/{name}{inside}?{urlencode(text, errors='replace')}")
    else:
        link.request("POST", f"/{token}/api/{name}", json.dumps(fields), {"Content-Type": "application/json"})
    answer = link.getresponse()
    answer.read()
    return answer.status
