"""Serve an exploration on this machine's own address until it is interrupted."""

import os
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unskew.core.errors import UserError
from unskew.core.failures import one_line_warnings
from unskew.core.interrupts import on_interrupt

HOST = "127.0.0.1"
INSTALL = "unskew explore needs two more packages; install them with: pip install 'unskew[explore]'"


@dataclass(frozen=True)
class Serving:
    """What the command prints."""

    address: str
    rows: int
    write: bool
    table: Path

    def json(self) -> dict[str, Any]:
        return {"address": self.address, "rows": self.rows, "write": self.write, "tags": str(self.table)}


def explore(
    place: str,
    *,
    settings: Mapping[str, Any] | None = None,
    write: bool = False,
    port: int = 0,
    most: int = 20_000,
    tags: Path | None = None,
    say: Callable[[Serving], None] = lambda _: None,
) -> None:
    """Open what was named, say where it can be looked at, and serve it until Ctrl-C."""
    try:
        import starlette  # noqa: F401
        import uvicorn
    except ImportError:
        raise UserError(INSTALL) from None
    from unskew.explore.app import application
    from unskew.explore.explorer import Explorer
    from unskew.explore.guard import new_token
    from unskew.explore.opened import open_place

    if most < 0:
        raise UserError(f"--most {most}: must not be negative; 0 computes features of all rows")
    listening = listen(port)
    with listening:
        explorer = Explorer.of(open_place(place, settings), write=write, most=most, table=tags)
        token, chosen = new_token(), listening.getsockname()[1]
        app = application(explorer, token, chosen)
        one_line_warnings()
        server = uvicorn.Server(
            uvicorn.Config(app, log_level="critical", access_log=False, lifespan="off", server_header=False, ws="none")
        )
        # From here on Ctrl-C asks the server to end: raised while it starts, it would leave a coroutine that nobody awaits.
        with on_interrupt(lambda: setattr(server, "should_exit", True)), suppress(KeyboardInterrupt):
            explorer.looks.start()
            say(Serving(f"http://{HOST}:{chosen}/{token}/", len(explorer.opened.data), write, explorer.tags.path))
            server.run(sockets=[listening])
    if explorer.looks.working:
        # The thread cannot be stopped inside torch, and an interpreter that shuts down around it aborts. Nothing is left to write.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def listen(port: int) -> socket.socket:
    """A socket on this machine's own address, at a port that is free if none is named."""
    if not 0 <= port <= 65535:
        raise UserError(f"--port {port}: must lie in [0, 65535]; 0 takes one that is free")
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((HOST, port))
        made.listen(128)
    except OSError as error:
        made.close()
        raise UserError(f"port {port} cannot be used ({error.strerror}); choose another with --port, or leave it out") from None
    return made
