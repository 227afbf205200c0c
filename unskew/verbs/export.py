"""The verb `export`: a run as a network with its model card, an audit as a data card, a table for other tools to show."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unskew.core.errors import UserError, suggest
from unskew.core.files import whole_folder, write_json, write_text
from unskew.core.workplace import alone
from unskew.pages.cards import model_card
from unskew.records import Run
from unskew.training.finished import trained_method
from unskew.training.portable import WRITERS, Portable, description
from unskew.verbs.evaluate import recall
from unskew.verbs.export_tables import TABLES, write_tables

FORMS = (*WRITERS, *TABLES)


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
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"--out {out} exists and is not an empty folder; choose another")
    place = what.path if isinstance(what, Run) else Path(what)
    is_audit = (place / "audit.json").is_file()
    if form in TABLES:
        if not is_audit:
            raise UserError(f"--as {form} needs the folder of an audit; {place} has no audit.json")
        with alone(out, "export"), whole_folder(out) as folder:
            note = write_tables(form, place, folder, source)
            return Exported(out, _names(folder), note)
    if is_audit:
        raise UserError(f"--as {form} needs a run; {place} is an audit, which can be written as {', '.join(TABLES)}")
    run = what if isinstance(what, Run) else Run(place)
    record, method = run.whole, trained_method(run)
    split = "test" if source is not None or record["data"]["rows"].get("test") else "val"
    judged = recall(run, split, source)
    name, writer = WRITERS[form]
    with alone(out, "export"), whole_folder(out) as folder:
        note = writer(Portable(method), tuple(record["data"]["shape"]), folder / name)
        write_json(folder / "network.json", description(record))
        parameters = sum(p.numel() for p in method.model.parameters())
        write_text(folder / "README.md", model_card(record, run.outcome, judged.json(), name, parameters))
        return Exported(out, _names(folder), note)


def _names(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()))
