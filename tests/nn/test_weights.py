"""First weights from a file: loaded strictly, or refused with a reason."""

import pytest
import torch
from safetensors.torch import save_file

from unskew.core.errors import UserError
from unskew.models._contract import maker


def test_weights_load_strictly_from_both_kinds_of_file(tmp_path):
    names = {name: value.shape for name, value in maker("resnet", {}, (3, 32, 32), 1000)().state_dict().items()}
    g = torch.Generator().manual_seed(0)
    state = {n: torch.rand(s, generator=g) if len(s) else torch.tensor(3) for n, s in names.items()}
    torch.save(state, tmp_path / "r.pth")
    save_file(state, tmp_path / "r.safetensors")
    for file in ("r.pth", "r.safetensors"):
        full = maker("resnet", {"weights": str(tmp_path / file)}, (3, 32, 32), 1000)()
        assert all(torch.equal(full.state_dict()[n], v) for n, v in state.items())
        other = maker("resnet", {"weights": str(tmp_path / file)}, (3, 32, 32), 7)()  # another task: its own last layer
        assert torch.equal(other.state_dict()["layer4.1.conv2.weight"], state["layer4.1.conv2.weight"])
        assert other.fc.weight.shape == (7, 512)
        # ImageNet's scaling comes with weights: a picture of the mean colour is all zeros to the first layer.
        mean = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1).expand(1, 3, 32, 32)
        got = []
        full.conv1.register_forward_hook(lambda module, given, out, got=got: got.append(given[0]))
        full.eval()(mean)
        torch.testing.assert_close(got[0], torch.zeros(1, 3, 32, 32))


def test_weights_of_another_network_are_refused(tmp_path):
    def load(**settings):
        return maker("resnet", {"weights": str(tmp_path / "w.pth"), **settings}, (3, 32, 32), 10)

    with pytest.raises(UserError, match=r"no weights at .*w\.pth"):
        load()
    (tmp_path / "w.pth").write_bytes(b"rubbish")
    with pytest.raises(UserError, match="not a state dict that can be opened safely"):
        load()
    torch.save({"a": torch.zeros(2)}, tmp_path / "w.pth")
    with pytest.raises(UserError, match=r"another network: missing bn1\.bias, bn1\.running_mean, .* and \d+ more; unknown a"):
        load()
    torch.save(maker("resnet", {"width": 8}, (3, 32, 32), 10)().state_dict(), tmp_path / "w.pth")
    with pytest.raises(UserError, match=r"conv1\.weight has shape \(8, 3, 7, 7\), but the network needs \(64, 3, 7, 7\)"):
        load()
    (tmp_path / "w.pth").write_bytes(b"")
    with pytest.raises(UserError, match="not a state dict that can be opened safely"):
        load()
    torch.save({1: torch.zeros(2)}, tmp_path / "w.pth")
    with pytest.raises(UserError, match="does not hold a state dict"):
        load()
    torch.save([1, 2], tmp_path / "w.pth")
    with pytest.raises(UserError, match="does not hold a state dict"):
        load()
