"""Every file of the representations has a complete card and defines what it must."""

import pytest

from unskew.core import registry


@pytest.mark.parametrize("name", registry.names("representations"))
def test_every_file_fulfils_the_contract(name):
    module = registry.module("representations", name)
    for part in (".. math::", "Source: ", "Differs: "):
        assert part in module.__doc__
    assert hasattr(module, "VARIANTS") or hasattr(module, "variants")
    for needed in ("Config", "PIXELS", "CONTENT", "phrase", "applies"):
        assert hasattr(module, needed), needed
    assert hasattr(module, "features") != hasattr(module, "look")
