"""Defaults of settings, as the source has them."""

import dataclasses
import re

from unskew.core import registry
from unskew.core.reference import COMPONENTS, component_settings, find, run_settings
from unskew.data.reading import DataConfig


def test_an_empty_default_is_a_default():
    (split,) = find("data.split")
    assert (split.required, split.shown) == (False, "empty")
    assert find("train.batch")[0].shown == find("train.batch")[0].default
    assert not [s.name for s in run_settings() if s.required]


def test_a_default_that_is_a_constant_is_its_value():
    (pixels,) = find("data.max_pixels")
    assert int(pixels.default) == {f.name: f.default for f in dataclasses.fields(DataConfig)}["max_pixels"]
    (hidden,) = [s for s in component_settings("methods", "adversarial") if s.name == "adversarial.hidden"]
    assert hidden.default == "(300, 300, 300)"
    shown = {s.name: s.default for kind in COMPONENTS for name in registry.names(kind) for s in component_settings(kind, name)}
    assert (shown["adversarial.beta"], shown["learned_mixin.pretrain"]) == ("0.1", "5.0")
    assert not [name for name, default in shown.items() if re.fullmatch("[A-Z_]{2,}", default)]
