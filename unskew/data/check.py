"""Which files of a real data set are on disk: `unskew data NAME --root DIR --check`."""

from pathlib import Path
from typing import Any

from unskew.core.errors import UserError
from unskew.data.readers.listing import inventory
from unskew.data.sets._contract import load as load_set


def check(name: str, root: str) -> dict[str, Any]:
    """Every file and folder the set needs, whether it exists, and, if all do, its rows by split."""
    built_in = load_set(name)
    if built_in.listing is None:
        raise UserError(f"{name} is generated or downloaded, not read from a folder: nothing to check")
    if not root:
        raise UserError("--check needs --root DIR, the folder of the data set")
    place = Path(root).expanduser()
    found = inventory(place, built_in.needs)
    whole = all(entry["there"] for entry in found)
    lines = [f"{'there  ' if e['there'] else 'MISSING'}  {place / e['path']}  ({e['what']})" for e in found]
    rows: dict[str, int] = {}
    notes: tuple[str, ...] = ()
    if whole:
        listed = built_in.listing(built_in.config(root=root))
        for row in listed.rows:
            rows[row.split] = rows.get(row.split, 0) + 1
        notes = listed.notes
        absent = [row.file for row in listed.rows if not (listed.root / row.file).exists()]
        whole = not absent
        lines += [f"{', '.join(f'{n} {s}' for s, n in rows.items())}; {len(listed.classes)} classes", *notes]
        if absent:
            lines.append(f"MISSING  {len(absent)} files named in the lists; the first is {listed.root / absent[0]}")
    lines += [f"{name}: complete"] if whole else []
    return {
        "name": name,
        "root": str(place),
        "needs": found,
        "rows": rows,
        "notes": list(notes),
        "whole": whole,
        "text": "\n".join(lines),
    }
