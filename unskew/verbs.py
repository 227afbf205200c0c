"""Packages that are verbs: `unskew.train(...)` runs the verb, `unskew.train.fit` is still a module inside it."""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def callable_module(name: str, verb: Callable[..., Any]) -> None:
    """Let the module `name` be called as `verb`."""

    class Verb(ModuleType):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return verb(*args, **kwargs)

    Verb.__call__.__doc__ = verb.__doc__
    sys.modules[name].__class__ = Verb
