"""timm: what it says when the library or the name is missing."""

import pytest

from unskew.core.errors import UserError
from unskew.models._contract import maker


def test_timm_says_what_it_needs():
    with pytest.raises(UserError, match=r"model timm needs timm and torchvision|choose a network, such as model\.name"):
        maker("timm", {}, (3, 64, 64), 5)()
