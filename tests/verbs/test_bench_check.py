"""A suite that cannot succeed is refused with its line before anything trains."""

import pytest

from tests.support.suites import GOOD, refused

CANNOT = {
    "[settings]": ('split = "tset"\n[settings]', "toy-s0-erm cannot succeed: toy has no split 'tset'"),
    'columns = { plain = "acc %" }': ('columns = { "nosuch.plain" = "" }', "has no split 'nosuch'"),
    "[method.erm]\n": ("evaluate = { temporal = true }\n[method.erm]\n", "unknown entry 'evaluate'"),
    "batch = 64 }": ('batch = 64 }\nselect = { rule = "oracle" }', "needs aligned and conflicting rows in val"),
    '[method.erm]\npublished = "Vanilla"': (
        '[method.rebias]\npublished = "Vanilla"',
        "no default biased network for inputs of shape (2,)",
    ),
    "settings = { biased": ('model = "lenet5"\nsettings = { biased', "toy-s0-pgd cannot succeed: model 'lenet5' needs images"),
}


@pytest.mark.parametrize("part", CANNOT)
def test_a_suite_that_cannot_succeed_is_refused(suite, tmp_path, part):
    now, said = CANNOT[part]
    assert said in refused(suite, tmp_path, GOOD.replace(part, now, 1))


def test_questions_that_the_data_cannot_answer_are_refused(suite, tmp_path):
    told = refused(suite, tmp_path, f"evaluate = {{ temporal = true }}\n{GOOD}")
    assert "cannot succeed: --temporal needs clips" in told
