"""The verb `export`: a run as a network with its model card, an audit as a data card, a table for other tools to show."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unskew.core.errors import UserError, suggest
from unskew.core.files import check_shape, read_json, whole_folder, write_json, write_text
from unskew.core.workplace import alone, claim, digest, identity
from unskew.pages.cards import model_card
from unskew.records import Run
from unskew.training.finished import trained_method
from unskew.training.portable import WRITERS, Portable, description
from unskew.verbs.evaluate import recall
from unskew.verbs.export_tables import TABLES, write_tables

FORMS = (*WRITERS, *TABLES)
RECORD = "export.json"  # in the folder: what was asked for, so that the same command finds its result


@dataclass(frozen=True, slots=True)
class Exported:
    path: Path
    files: tuple[str, ...]
    note: str = ""

    def json(self) -> dict[str, Any]:
        return {"path": str(self.path), "files": list(self.files), "note": self.note}


def export(what: Run | str | Path, form: str, out: str | Path, *, source: Any = None) -> Exported:
    """Write the folder `out`: a run as one of WRITERS, an audit as one of TABLES.

    `source` replaces the data that a run was trained on, or an audit measured, where it has moved.
    """
    out = Path(out)
    if form not in FORMS:
        raise UserError(f"--as {form}: cannot be written{suggest(form, FORMS)}")
    place = what.path if isinstance(what, Run) else Path(what)
    is_audit = (place / "audit.json").is_file()
    if form in TABLES and not is_audit:
        raise UserError(f"--as {form} needs the folder of an audit; {place} has no audit.json")
    if form not in TABLES and is_audit:
        raise UserError(f"--as {form} needs a run; {place} is an audit, which can be written as {', '.join(TABLES)}")
    if form not in TABLES:
        what = what if isinstance(what, Run) else Run(place)
    request = identity(form=form, of=_content(place, is_audit), source="" if source is None else str(source))
    with alone(out, "export"):
        done = _finished(out, request)
        if done is not None:
            return done
        with whole_folder(out) as folder:
            note = write_tables(form, place, folder, source) if is_audit else _write_network(Run(place), form, folder, source)
            files = _names(folder)
            write_json(folder / RECORD, {"request": request, "files": files, "note": note})
    return Exported(out, files, note)


def _write_network(run: Run, form: str, folder: Path, source: Any) -> str:
    """The network, what a program needs to know of it, and its card; returns a note."""
    record, method = run.whole, trained_method(run)
    split = "test" if source is not None or record["data"]["rows"].get("test") else "val"
    judged = recall(run, split, source)
    name, writer = WRITERS[form]
    note = writer(Portable(method), tuple(record["data"]["shape"]), folder / name)
    write_json(folder / "network.json", description(record))
    parameters = sum(p.numel() for p in method.model.parameters())
    write_text(folder / "README.md", model_card(record, run.outcome, judged.json(), name, parameters))
    return note


def _content(place: Path, is_audit: bool) -> str:
    """A digest of what is exported."""
    names = ("audit.json",) if is_audit else ("config.json", "done.json", "model.safetensors")
    return digest(*((place / name).read_bytes() if (place / name).is_file() else b"" for name in names))


def _finished(out: Path, request: dict[str, Any]) -> Exported | None:
    """What the same request wrote before; None if the place is free. Anything else there is refused."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return None
    if not (out / RECORD).is_file():
        raise UserError(f"--out {out} exists and is not an empty folder; choose another")
    there = read_json(out / RECORD, "the record of an export")
    check_shape(there, {"request": dict, "files": [str], "note": str}, out / RECORD)
    claim(out, "export", there["request"], request)
    return Exported(out, tuple(there["files"]), there["note"])


def _names(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()))
