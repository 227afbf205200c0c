"""What a recipe stands for: a user's file with words over it, or a row of a suite with its shared runs beside the training."""

from pathlib import Path

from unskew.suites.recipe import recipe
from unskew.verbs.recipe import read_recipe


def test_words_of_the_command_line_stand_over_those_of_a_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('q = 0.5\n[run]\nsource = "toy"\nmethod = "gce"\n[train]\nsteps = 4\nbatch = 8\n')
    asked = read_recipe(str(path), tmp_path / "run", 0, "cpu", {"train.steps": "9"}, "")
    assert (asked.source, asked.method, asked.model) == ("toy", "gce", "")
    assert asked.settings == {"train.steps": "9", "train.batch": 8, "q": 0.5}
    assert [p.name for p in tmp_path.iterdir()] == ["mine.toml"]


def test_a_shared_run_is_trained_once_beside_the_place_and_named_in_the_settings(tmp_path):
    row = "lnl-figure4/0.02/grl@smoke"
    found = recipe(row, 3)
    (shared,) = found.shared
    asked = read_recipe(row, tmp_path / "run", 3, "cpu", {"train.batch": "16"}, "unskew train")
    place = tmp_path / f"run-{shared.name}"
    assert (place / "done.json").is_file()
    assert Path(asked.settings["train.start"]) == place
    assert asked.settings["train.batch"] == "16"
    assert (asked.source, asked.method, asked.model) == (found.task.source, "grl", found.task.model)
    stamp = (place / "done.json").stat().st_mtime_ns
    read_recipe(row, tmp_path / "run", 3, "cpu", {}, "unskew train")
    assert (place / "done.json").stat().st_mtime_ns == stamp
