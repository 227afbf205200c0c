"""EfficientNet-Lite0: its published count, and weights from a file of its keys."""

import pytest
import torch

from unskew.core.errors import UserError
from unskew.models._contract import maker


def test_efficientnet_lite0_loads_a_file_of_its_keys_and_counts_right(tmp_path):
    model = maker("efficientnet-lite0", {"pretrained": False}, (3, 64, 64), 1000)()
    assert sum(p.numel() for p in model.parameters()) == 4_652_008  # as published
    torch.save(model.state_dict(), tmp_path / "w.pth")
    again = maker("efficientnet-lite0", {"weights": str(tmp_path / "w.pth")}, (3, 64, 64), 1000)().eval()
    x = torch.rand(2, 3, 64, 64)
    torch.testing.assert_close(again(x), model.eval()(x))
    with pytest.raises(UserError, match="one or three channels, got 2"):
        maker("efficientnet-lite0", {"pretrained": False}, (2, 64, 64), 10)
