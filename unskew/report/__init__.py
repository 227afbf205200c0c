"""From runs to one page that opens from disk, and the same as JSON: the verb `report`."""

from unskew.report.run import report
from unskew.verbs import callable_module

__all__ = ["report"]

callable_module(__name__, report)
