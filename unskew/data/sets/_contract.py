"""What a file in this folder defines: a data set that is generated or downloaded, or the layout of a real one on disk."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unskew.core import registry
from unskew.core.errors import UserError
from unskew.data.readers.listing import Listing, Need

if TYPE_CHECKING:
    from unskew.data.dataset import DataSet


@dataclass(frozen=True)
class BuiltIn:
    """A loaded file of this folder; it defines either `make` or `listing`."""

    name: str
    config: type  # frozen dataclass of its settings
    make: Callable[[Any], "DataSet"] | None = None
    listing: Callable[[Any], Listing] | None = None  # the rows of a real set, before any image is opened
    needs: tuple[Need, ...] = ()  # files and folders of a real set

    def __post_init__(self) -> None:
        if (self.make is None) == (self.listing is None):
            raise UserError("a data set must define either make(cfg) or listing(cfg)")
        if self.listing is not None and not self.needs:
            raise UserError("a data set read from disk must list the files it needs in NEEDS")

    @property
    def on_disk(self) -> bool:
        """Whether it is read from a folder on the user's disk."""
        return self.listing is not None


def load(name: str) -> BuiltIn:
    """The built-in data set of this name; a dotted name is a user's module."""
    return registry.load("data", name, BuiltIn)
