"""The explorer over a million generated rows: the first screen, and a filter, as a browser's requests see them.

    python -m benchmarks explore_million [--rows 1000000] [--rounds 15]

Rows are pictures of 8 by 8 pixels in memory with a label, a split, four bias columns, a text column and eight scores, served by uvicorn on
this machine. The first screen is the page, its scripts, what there is, the first view and the pictures of sixty rows, over six connections
as a browser opens them. A filter is one view: rows that pass, counts of every column under the other filters, and the first rows.
Times are those of the clock; the load of the machine, and the processor seconds of this process, which is server and client, stand
beside them.
With Chromium, the first screen is also timed in it, from the address until every picture on the screen is drawn; the first start of a
browser does not count.
"""

import argparse
import http.client
import json
import os
import shutil
import socket
import statistics
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl
import torch

from benchmarks._registry import Figure
from unskew.data.dataset import DataSet, Memory
from unskew.explore.app import STATIC, application
from unskew.explore.explorer import Explorer
from unskew.explore.opened import open_place

TOKEN, PICTURES, CONNECTIONS = "benchmark", 60, 6
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip

DRAWN = "(p => p.length >= 12 && p.every(i => i.complete && i.naturalWidth))([...document.querySelectorAll('.cell img')])"


def generated(rows: int) -> DataSet:
    """Pictures of noise, columns at random."""
    rng = np.random.default_rng(0)
    columns = {f"score {k}": rng.normal(size=rows).astype(np.float32) for k in range(8)}
    words = pl.select(pl.format("folder/{}.png", pl.int_range(rows))).to_series()
    return DataSet(
        name="generated", source="toy", inputs=Memory(torch.from_numpy(rng.integers(0, 256, (rows, 3, 8, 8), dtype=np.uint8))),
        y=torch.from_numpy(rng.integers(0, 10, rows)), classes=tuple(map(str, range(10))), split=torch.from_numpy(rng.integers(0, 3, rows)),
        bias=torch.from_numpy(rng.integers(0, 4, (rows, 4))), bias_names=("a", "b", "c", "d"), bias_values=(("w", "x", "y", "z"),) * 4,
        columns=pl.DataFrame({**columns, "name": words}),
    )  # fmt: skip


class Server:
    """The application in a thread of its own."""

    def __init__(self, explorer: Explorer) -> None:
        import uvicorn

        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        app = application(explorer, TOKEN, self.port)
        self.server = uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False, lifespan="off", ws="none"))
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.socket]}, daemon=True)

    def __enter__(self) -> "Server":
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self.server.should_exit = True
        self.thread.join()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/{TOKEN}/"

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port)


def asked(connection: http.client.HTTPConnection, path: str, body: object = None) -> bytes:
    if body is None:
        connection.request("GET", f"/{TOKEN}/{path}")
    else:
        connection.request("POST", f"/{TOKEN}/{path}", json.dumps(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    content = answer.read()
    assert answer.status == 200, content
    return content


def view(connection: http.client.HTTPConnection, where: object) -> list[int]:
    return [row["id"] for row in json.loads(asked(connection, "api/view", {"where": where}))["first"]]


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the clock, and of the processor."""
    started, worked = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - started, time.process_time() - worked


def first_screen(server: Server) -> None:
    connection = server.connection()
    for name in ("", *(path.name for path in STATIC.iterdir() if path.suffix in (".js", ".css")), "api/about"):
        asked(connection, name)
    ids = view(connection, {})[:PICTURES]
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        lines = [(server.connection(), ids[k::CONNECTIONS]) for k in range(CONNECTIONS)]
        list(pool.map(lambda line: [asked(line[0], f"api/small/{i}") for i in line[1]], lines))


def in_browser(server: Server, rounds: int) -> list[float]:
    """Seconds from the address to the pictures on the screen; empty without Chromium."""
    chromium = shutil.which("chromium")
    if chromium is None:
        return []
    from playwright.sync_api import sync_playwright

    times = []
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=chromium, args=FLAGS)
        for turn in range(rounds + 1):
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            started = time.perf_counter()
            page.goto(server.address)
            page.wait_for_selector("body[data-ready]")
            while not page.evaluate(DRAWN):  # the page's own policy forbids Playwright's waiting for a condition
                time.sleep(0.01)
            if turn:
                times.append(time.perf_counter() - started)
            page.close()
        browser.close()
    return times


def figures(words):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args(words)
    import dataclasses

    opened = open_place("toy")
    data = generated(given.rows)
    from unskew.explore.opened import _own  # the columns of a data set without results

    started = time.perf_counter()
    explorer = Explorer.of(dataclasses.replace(opened, data=data, columns=_own(data)))
    opening = time.perf_counter() - started
    wheres = [
        {
            "label": {"in": [str(k % 10)]},
            **({"score 1": {"between": [-1, k / 10]}} if k % 2 else {}),
            **({"a": {"in": ["w", "x"]}} if k % 3 else {}),
        }
        for k in range(given.rounds)
    ]
    with Server(explorer) as server:
        first, worked = zip(*[timed(lambda: first_screen(server)) for _ in range(6)][1:], strict=True)
        connection = server.connection()
        filters, filtered = zip(*[timed(lambda where=where: view(connection, where)) for where in wheres], strict=True)
        seen = in_browser(server, 3)
    about = {"rows": given.rows, "seconds to open": round(opening, 3), "load of the machine": round(os.getloadavg()[0], 1)}
    more = (
        about
        | {"all": [round(t, 3) for t in first], "processor seconds, median": round(statistics.median(worked), 3)}
        | ({"in Chromium, median": round(statistics.median(seen), 3)} if seen else {})
    )
    slowest = max([statistics.median(first), *([statistics.median(seen)] if seen else [])])
    what = f"explorer over {given.rows:,} rows: median seconds to the first screen, by plain requests or in Chromium, whichever is slower"
    yield Figure("explore, first screen", what, None, value=round(slowest, 3), unit="s", most=1.5, more=more)
    what = f"explorer over {given.rows:,} rows: median seconds of a filter, with the counts of every column and the first rows"
    more = about | {"slowest": round(max(filters), 3), "processor seconds, median": round(statistics.median(filtered), 3)}
    yield Figure("explore, filter", what, None, value=round(statistics.median(filters), 3), unit="s", most=0.3, more=more)
