"""The first question: how biased is this data set, towards what, and in which samples. The verb `audit`."""

from unskew.audit.run import audit
from unskew.verbs import callable_module

__all__ = ["audit"]

callable_module(__name__, audit)
