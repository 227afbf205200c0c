"""Give memory that is no longer used back to the system: the C library keeps it where it lies between what is still used."""

import contextlib
import ctypes
import gc


def release() -> None:
    """Does nothing where the C library is not GNU's."""
    gc.collect(0)
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library; on Windows CDLL takes a name
        ctypes.CDLL(None).malloc_trim(0)
