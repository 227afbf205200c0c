"""Every table in docs/results is what its file says, read here without the code that wrote it."""

import csv
import re
import statistics
from pathlib import Path

import pytest

from docs.results_pages import HERE, files, pages

# Pages of benchmarks, not of suites: what makes them is in benchmarks/, and their data, if any, lies beside them. Pages of suites that were
# written before results files existed wait here for their runs; a page leaves the list when its results are committed.
OTHER = {
    "README.md", "auto.md", "calibration.md", "colour-bias.md", "field-test.md", "repair.md",
    "denoise.md", "leakage-tiles.md", "pgd-table1-paper.md", "pgd-table1-small.md", "pgd-table14.md", "pgd-table2-small.md",
    "static-and-texture.md", "toy.md", "fuzz.md", "kills.md", "planted-photos.md", "planted-photos-trial.md", "scale.md", "slices.md",
    "speed.md",
}  # fmt: skip


def test_pages_of_results_are_up_to_date():
    for name, text in pages().items():
        assert (HERE.parent / name).read_text() == text, f"docs/{name}: run make results"


def test_every_page_with_a_table_has_results_beside_it():
    for page in HERE.glob("*.md"):
        if page.name in OTHER or page.name.endswith(".notes.md") or page.name == "reproduces.md":
            continue
        assert page.with_suffix(".csv") in files(), f"{page.name} has no results file"


def cells(page: Path) -> dict[tuple[str, str], list[str]]:
    """The cells of a page's tables by the table's place and the method."""
    found, place = {}, ""
    for line in page.read_text().splitlines():
        if line.startswith("## "):
            place = re.sub(r" \(.*\)$", "", line[3:])
        elif line.startswith("| ") and not line.startswith("| method"):
            name, *rest = (cell.strip() for cell in line.strip("|").split("|"))
            found[place, name] = rest
    return found


@pytest.mark.parametrize("table", files(), ids=lambda path: path.stem)
def test_means_and_seeds_of_a_page_are_those_of_its_file(table):
    shown = cells(table.with_suffix(".md"))
    values: dict[tuple[str, str, str], list[float]] = {}
    with table.open() as file:
        for row in csv.DictReader(file):
            if row["value"] and not row["tried"]:
                place = " ".join(filter(None, (row["data"], row["at"])))
                values.setdefault((place, row["method"], row["figure"]), []).append(float(row["value"]))
    for (place, method, _), found in values.items():
        assert shown[place, method][0] == str(len(found))
        mean, numbers = statistics.mean(found), " ".join(shown[place, method])
        assert f"{100 * mean:.2f}" in numbers or f"{mean:.3g}" in numbers or f"{mean:,.0f}" in numbers, (place, method)
