"""Image files that cannot be decoded: left out up to the share allowed."""

import pytest
import torch

from unskew.core.errors import UserError
from unskew.data import load
from unskew.data.loader import rows_in_order


def test_undecodable_images_are_skipped_up_to_the_share_allowed(folder):
    whole = (folder / "cat" / "3.png").read_bytes()
    (folder / "cat" / "3.png").write_bytes(whole[: len(whole) // 2])  # the header is fine, the body is cut
    with pytest.raises(UserError, match=r"1 of 24 images cannot be decoded.*cat/3\.png"):
        load(folder)
    for mode in ("memory", "stream"):
        data = load(folder, max_bad=0.1, mode=mode)
        seen = torch.cat([i for i, _ in rows_in_order(data, torch.arange(24), 8)])
        assert len(seen) == 23
        assert data.paths[(set(range(24)) - set(seen.tolist())).pop()].endswith("cat/3.png")
