"""ResNets: torchvision's names and counts, and which kinds see time."""

import pytest
import torch

from unskew.core.errors import UserError
from unskew.models._contract import maker


def torchvision_keys(counts, convolutions):
    """Names in a state dict of torchvision's ResNets, written down from their definition."""
    norm = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    names = ["conv1.weight", *(f"bn1.{n}" for n in norm)]
    for stage, count in enumerate(counts, 1):
        for block in range(count):
            place = f"layer{stage}.{block}"
            for k in range(1, convolutions + 1):
                names += [f"{place}.conv{k}.weight", *(f"{place}.bn{k}.{n}" for n in norm)]
            if block == 0 and (stage > 1 or convolutions == 3):
                names += [f"{place}.downsample.0.weight", *(f"{place}.downsample.1.{n}" for n in norm)]
    return [*names, "fc.weight", "fc.bias"]


@pytest.mark.parametrize(
    ("depth", "counts", "convolutions", "parameters"), [(18, (2, 2, 2, 2), 2, 11_689_512), (50, (3, 4, 6, 3), 3, 25_557_032)]
)
def test_resnets_are_torchvisions(depth, counts, convolutions, parameters):
    model = maker("resnet", {"depth": depth}, (3, 32, 32), 1000)()
    assert sum(p.numel() for p in model.parameters()) == parameters
    assert sorted(model.state_dict()) == sorted(torchvision_keys(counts, convolutions))


def test_the_two_dimensional_network_cannot_see_time():
    x = torch.rand(2, 8, 3, 16, 16)
    flat = maker("resnet", {"kind": "2d", "width": 4}, (8, 3, 16, 16), 5)().eval()
    torch.testing.assert_close(flat(x), flat(x.flip(1)))
    deep = maker("resnet", {"kind": "3d", "width": 4}, (8, 3, 16, 16), 5)().eval()
    assert (deep(x) - deep(x.flip(1))).abs().max() > 1e-4


def test_the_network_of_differences_sees_what_moves():
    moving, flat = (maker("resnet", {"kind": k, "width": 4}, (8, 3, 16, 16), 5)().eval() for k in ("difference", "2d"))
    flat.load_state_dict(moving.state_dict())
    x, still = torch.rand(2, 8, 3, 16, 16), torch.rand(2, 1, 3, 16, 16).expand(-1, 8, -1, -1, -1)
    torch.testing.assert_close(moving(x), flat(x[:, 1:] - x[:, :-1]))
    torch.testing.assert_close(moving(x + still), moving(x))  # what stands still is not seen
    assert (moving(x) - moving(x.flip(1))).abs().max() > 1e-4
    with pytest.raises(UserError, match="at least 2 frames"):
        maker("resnet", {"kind": "difference"}, (1, 3, 16, 16), 5)()


@pytest.mark.parametrize("depth", [18, 50])
def test_a_network_of_clips_starts_from_the_weights_of_one_of_images(tmp_path, depth):
    """2-D: the mean over frames of what the image network sees. 3-D, inflated: no sense of time before it learns one."""
    torch.manual_seed(0)
    images = maker("resnet", {"depth": depth, "width": 4}, (3, 32, 32), 5)()
    for module in images.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
    torch.save(images.state_dict(), tmp_path / "w.pth")
    given = {"depth": depth, "width": 4, "weights": str(tmp_path / "w.pth"), "normalise": "none"}
    clip = torch.rand(2, 6, 3, 32, 32)
    flat = maker("resnet", {**given, "kind": "2d"}, (6, 3, 32, 32), 5)().eval()
    alone = images.eval().features(clip.flatten(0, 1)).view(2, 6, -1).mean(1)
    torch.testing.assert_close(flat.features(clip), alone, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(flat(clip), images(clip.flatten(0, 1)).view(2, 6, -1).mean(1), rtol=1e-4, atol=1e-5)  # consensus
    inflated = maker("resnet", {**given, "kind": "3d"}, (6, 3, 32, 32), 5)().eval()
    torch.testing.assert_close(inflated.features(clip), inflated.features(clip.flip(1)), rtol=1e-4, atol=1e-5)
    fresh = maker("resnet", {"depth": depth, "width": 4, "kind": "3d"}, (6, 3, 32, 32), 5)().eval()
    assert float((fresh.features(clip) - fresh.features(clip.flip(1))).detach().abs().max()) > 1e-3
