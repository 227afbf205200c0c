"""One file, one repair: from a data set to a weight per row that any training code can use. Called, it is the verb `repair`."""

from typing import Any

from unskew.repair._sampler import sampler
from unskew.repair._select import select
from unskew.repair.aflite import aflite
from unskew.repair.balance import balance
from unskew.repair.denoise import denoise
from unskew.repair.gradients import gradient_probabilities
from unskew.repair.inverse_frequency import inverse_frequency
from unskew.repair.repair import repair_weights
from unskew.verbs import callable_module

__all__ = ["aflite", "balance", "denoise", "gradient_probabilities", "inverse_frequency", "repair_weights", "sampler", "select"]


def _verb(*args: Any, **kwargs: Any) -> Any:
    """See unskew.repair._run.repair."""
    from unskew.repair._run import repair

    return repair(*args, **kwargs)


callable_module(__name__, _verb)
