"""VGG-16: torchvision's names and count, and its first layers by hand."""

import torch

from unskew.models._contract import maker


def test_vgg16_is_torchvisions(tmp_path):
    assert sum(p.numel() for p in maker("vgg16", {}, (3, 32, 32), 1000)().parameters()) == 138_357_544  # as published
    # torchvision's names and shapes, at a thirty-second of the width: indices of configuration D's convolutions.
    places = {0: (3, 2), 2: (2, 2), 5: (2, 4), 7: (4, 4), 10: (4, 8), 12: (8, 8), 14: (8, 8), 17: (8, 16), 19: (16, 16),
              21: (16, 16), 24: (16, 16), 26: (16, 16), 28: (16, 16)}  # fmt: skip
    g = torch.Generator().manual_seed(0)
    state = {f"features.{k}.weight": torch.rand(o, i, 3, 3, generator=g) - 0.5 for k, (i, o) in places.items()}
    state |= {f"features.{k}.bias": torch.rand(o, generator=g) for k, (_, o) in places.items()}
    for k, (i, o) in {0: (16 * 49, 128), 3: (128, 128), 6: (128, 1000)}.items():
        state |= {f"classifier.{k}.weight": torch.rand(o, i, generator=g), f"classifier.{k}.bias": torch.rand(o, generator=g)}
    torch.save(state, tmp_path / "v.pth")
    model = maker("vgg16", {"width": 2, "weights": str(tmp_path / "v.pth"), "normalise": "none"}, (3, 32, 32), 1000)().eval()
    x = torch.rand(2, 3, 32, 32, generator=g)
    h = x
    for k in range(3):  # relu1_2 and, after the pooling, the convolution after it, by hand
        place = (0, 2, 5)[k]
        h = torch.nn.functional.conv2d(h, state[f"features.{place}.weight"], state[f"features.{place}.bias"], padding=1)
        if k == 1:
            torch.testing.assert_close(model.features(x, "relu1_2"), h.relu())
        h = h if k == 2 else h.relu() if k == 0 else torch.nn.functional.max_pool2d(h.relu(), 2)
    torch.testing.assert_close(model.features(x, "conv2_1"), h)
    torch.testing.assert_close(model.after(model.features(x, "conv3_3"), "conv3_3"), model(x))
    other = maker("vgg16", {"width": 2, "weights": str(tmp_path / "v.pth")}, (3, 32, 32), 5)()
    assert other.output.weight.shape == (5, 128)
