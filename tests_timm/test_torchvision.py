"""Networks against torchvision's own, in an environment of their own: make test-timm."""

import pytest
import torch

from unskew.models._contract import maker

torchvision = pytest.importorskip("torchvision")
timm = pytest.importorskip("timm")


@pytest.mark.parametrize("depth", [18, 50])
def test_outputs_are_torchvisions(depth, tmp_path):
    torch.manual_seed(0)
    theirs = getattr(torchvision.models, f"resnet{depth}")(weights=None).eval()
    for module in theirs.modules():  # statistics that are not the first ones
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    torch.save(theirs.state_dict(), tmp_path / "w.pth")
    ours = maker("resnet", {"depth": depth, "weights": str(tmp_path / "w.pth"), "normalise": "none"}, (3, 96, 96), 1000)().eval()
    x = torch.rand(2, 3, 96, 96)
    with torch.no_grad():
        single = theirs(x)
        assert (ours(x) - single).abs().max() < 1e-5 * single.abs().max()
        torch.testing.assert_close(ours.double()(x.double()), theirs.double()(x.double()), rtol=1e-9, atol=1e-9)


def test_any_timm_model_is_a_model():
    make = maker("timm", {"name": "resnet10t"}, (3, 64, 64), 5)
    model = make().eval()
    x = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        assert model(x).shape == (2, 5)
        assert model.both(x)[0].shape[0] == 2
