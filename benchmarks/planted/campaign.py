"""A row of a table for every planted folder: the folders are written one after another, and an interrupted run resumes from its table."""

import argparse
import csv
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.planted.folders import Folder, plan, write


def words(about: str | None, out: str) -> argparse.ArgumentParser:
    """What every such benchmark can be asked."""
    asked = argparse.ArgumentParser(description=about)
    asked.add_argument("--only", nargs="*", default=[""], help="folders whose name contains one of these")
    asked.add_argument("--folders", type=Path, default=Path("planted-photos"), help="where the files are written")
    asked.add_argument("--keep", action="store_true", help="keep the files")
    asked.add_argument("--out", type=Path, default=Path(out))
    return asked


def fill(given: argparse.Namespace, columns: Sequence[str], row: Callable[[Folder, Path], dict[str, Any]]) -> None:
    """Add the rows that the table given.out lacks."""
    done = set()
    if given.out.exists():
        with open(given.out, newline="") as file:
            done = {row["name"] for row in csv.DictReader(file)}
    with open(given.out, "a", newline="") as file:
        table = csv.DictWriter(file, columns)
        if not done:
            table.writeheader()
        for folder in plan():
            if folder.name in done or not any(text in folder.name for text in given.only):
                continue
            place = write(folder, given.folders)
            table.writerow(row(folder, place))
            file.flush()
            if not given.keep:
                shutil.rmtree(place)
