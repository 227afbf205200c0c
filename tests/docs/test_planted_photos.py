"""The page of planted photographs is made from its two files, and its totals for cleanlab are those of the file, read here again."""

import csv

from benchmarks.planted_photos import page
from docs.results_pages import HERE

PHOTOS = HERE / "planted-photos.csv"


def test_pages_are_up_to_date():
    for table in (PHOTOS, HERE / "planted-photos-trial.csv"):
        assert table.with_suffix(".md").read_text() == page(table), "run python -m benchmarks planted_photos"


def test_totals_of_cleanlab_are_those_of_its_file():
    with open(HERE / "planted-cleanlab.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    with open(PHOTOS, newline="") as file:
        names = [row["name"] for row in csv.DictReader(file)]
    assert sorted(row["name"] for row in rows) == sorted(names)  # the same 100 folders
    assert all((row["raised"] == "1") == bool(row["properties"]) for row in rows)
    full = sum(row["raised"] == "1" for row in rows if row["name"].endswith(" 100"))
    most = sum(row["raised"] == "1" for row in rows if row["name"].endswith(" 85"))
    clean = [row for row in rows if not row["kind"]]
    alarms = sum(row["false"] == "1" for row in clean)
    text = PHOTOS.with_suffix(".md").read_text()
    assert f"any property raised: {full} of 30 at 100 %, {most} of 30 at 85 %; false alarms in {alarms} of {len(clean)}" in text
    # Each table row ends with what was raised: nothing, or names of properties.
    raised = [line for line in text.splitlines() if line.startswith("| ") and " % |" in line and not line.endswith("| nothing |")]
    assert len(raised) == full + most


def test_without_the_other_file_the_page_has_no_column(tmp_path):
    alone = tmp_path / PHOTOS.name
    alone.write_text(PHOTOS.read_text())
    assert "cleanlab" not in page(alone)
