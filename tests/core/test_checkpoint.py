"""A file of weights comes back as it was, or is refused."""

import pytest
import torch
from safetensors.torch import save_file

from unskew.core import checkpoint
from unskew.core.errors import UserError

TENSORS = {
    "half": torch.rand(3, 5, generator=torch.Generator().manual_seed(0)).bfloat16(),
    "count": torch.tensor(7),
    "flags": torch.tensor([True, False, True]),
    "none": torch.zeros(0, 4, dtype=torch.float64),
}


@pytest.fixture
def path(tmp_path):
    checkpoint.save(tmp_path / "state.safetensors", TENSORS, {"step": 4})
    return tmp_path / "state.safetensors"


def test_what_is_saved_comes_back(path):
    tensors, facts = checkpoint.read(path)
    assert facts == {"step": 4}
    assert tensors.keys() == TENSORS.keys()
    assert all(torch.equal(tensors[k], TENSORS[k]) and tensors[k].dtype == TENSORS[k].dtype for k in TENSORS)


def test_the_same_contents_are_the_same_bytes(path, tmp_path):
    for k in range(20):
        checkpoint.save(tmp_path / "again.safetensors", dict(reversed(TENSORS.items())) if k % 2 else TENSORS, {"step": 4})
        assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


def test_a_damaged_number_is_noticed(path):
    raw = bytearray(path.read_bytes())
    start = 8 + int.from_bytes(raw[:8], "little")  # the numbers follow a header, whose length stands first
    for place in range(start, len(raw)):
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
        with pytest.raises(UserError, match=r"state.safetensors is not a usable weights file"):
            checkpoint.read(path)


def test_a_damaged_fact_is_noticed(path):
    path.write_bytes(path.read_bytes().replace(b"step", b"stop"))
    with pytest.raises(UserError, match="damaged after it was written; remove it"):
        checkpoint.read(path)


def test_weights_of_others_have_no_checksum(tmp_path):
    save_file({"w": torch.ones(2)}, tmp_path / "theirs.safetensors", metadata={"format": "pt"})
    assert checkpoint.read(tmp_path / "theirs.safetensors")[0]["w"].tolist() == [1, 1]
