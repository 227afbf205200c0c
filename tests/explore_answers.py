"""Does an installed `unskew explore DIR` answer? Used by `make wheel-test`; needs nothing but the standard library.

python tests/explore_answers.py PATH/TO/unskew DIR
"""

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request


def main(command: str, place: str) -> None:
    process = subprocess.Popen([command, "explore", place, "--json"], stdout=subprocess.PIPE, text=True)
    try:
        text = ""
        while not text.rstrip().endswith("}"):
            line = process.stdout.readline()
            if not line:
                raise SystemExit(f"unskew explore {place} ended with status {process.wait()}")
            text += line
        address = json.loads(text)["address"]
        page = _read(address).decode()
        assert "<title>unskew explore</title>" in page
        for name in ("app.js", "style.css"):
            assert _read(address + name)
        about = json.loads(_read(f"{address}api/about"))
        assert about["rows"] > 0
        assert _read(f"{address}api/small/0")
        assert _status(address.rsplit("/", 2)[0] + "/") == 403
        print(f"unskew explore {place}: {about['rows']:,} rows, {', '.join(about['results']) or 'no results'}")
    finally:
        process.send_signal(signal.SIGINT)
        status = process.wait(60)
    if status != 0:
        raise SystemExit(f"unskew explore {place} ended with status {status} after Ctrl-C")


def _status(address: str) -> int:
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def _read(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=60) as answer:
        return answer.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
