"""Lists of real sets: files that they name and that are not there."""

import pytest

from unskew.core.errors import UserError
from unskew.data import load


def test_lists_that_name_absent_files_are_refused(real_set):
    source, home = real_set("celeba")
    (home / "img_align_celeba" / "000004.jpg").unlink()
    with pytest.raises(
        UserError, match=r"1 of 30 files named in the lists are not in .*; the first is img_align_celeba/000004.jpg"
    ):
        load(source)
