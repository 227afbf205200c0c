"""The loop, its optimisers and schedules, and the verb `train`."""

from unskew.train.run import train
from unskew.verbs import callable_module

__all__ = ["train"]

callable_module(__name__, train)
