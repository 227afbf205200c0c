"""Judgement: predictions by sample id, group tables, selection rules, and the verb `evaluate`."""

from unskew.evaluate.run import evaluate
from unskew.verbs import callable_module

__all__ = ["evaluate"]

callable_module(__name__, evaluate)
