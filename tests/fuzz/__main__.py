"""python -m tests.fuzz --cases 2000 [--seed 0] [--minutes 30] [--csv FILE]: the long fuzz, with a table of kinds and counts."""

import argparse
import sys
import time
from pathlib import Path

from tests.fuzz.campaign import campaign, table


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--cases", type=int, default=2000)
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--minutes", type=float, default=1e9, help="stop after this long")
    words.add_argument("--only", default="", help="kinds, separated by commas")
    words.add_argument("--csv", type=Path, default=None)
    given = words.parse_args()
    started = time.monotonic()
    only = tuple(filter(None, given.only.split(",")))
    found = campaign(given.cases, given.seed, seconds=60 * given.minutes, only=only, say=lambda text: print(text, flush=True))
    text = table(found)
    print(f"\n{text}\n{sum(map(len, found.values()))} cases, seed {given.seed}, {time.monotonic() - started:.0f} s")
    if given.csv is not None:
        given.csv.write_text(text)
    sys.exit(any(ended.faults for by_kind in found.values() for _, ended in by_kind))


if __name__ == "__main__":
    main()
