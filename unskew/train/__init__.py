"""The loop, its optimisers and schedules, and the verb `train`."""

from typing import Any

from unskew.verbs import callable_module


def _verb(*args: Any, **kwargs: Any) -> Any:
    """See unskew.stages.train."""
    from unskew.stages import train

    return train(*args, **kwargs)


callable_module(__name__, _verb)
