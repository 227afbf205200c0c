"""A recipe of every row of a user's own suite is the run that the plan of the suite has for it."""

import pytest

from unskew.core.errors import UserError
from unskew.suites.plan import plan
from unskew.suites.reader import read
from unskew.suites.recipe import recipe


def test_a_row_is_the_run_of_the_plan(suite, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    planned = {t.id: t for t in plan(read(str(suite)), "smoke", seeds="1..1")}
    for method in ("erm", "pgd"):
        found = recipe(f"toy.toml/{method}@smoke", seed=1)
        assert found.task == planned[f"toy-s1-{method}"]
        assert found == recipe(f"toy.toml/toy/{method}", seed=1)  # there is one scale, and one data set
        assert [t.id for t in found.shared] == list(planned[f"toy-s1-{method}"].needs)
    with pytest.raises(UserError, match="no method 'erv'; did you mean 'erm'"):
        recipe("toy.toml/erv@smoke")
