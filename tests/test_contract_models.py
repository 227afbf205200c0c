"""What every network must do, asked of every file in unskew/models; and the facts published about some of them."""

import subprocess
import sys

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import unskew as package
from unskew.core import registry
from unskew.core.errors import UserError
from unskew.models import receptive_field
from unskew.models._contract import Adapter, maker
from unskew.nn import guard_convolutions

MODELS = [n for n in registry.names("models") if n != "timm"]  # an extra: make test-timm
SHAPES = {"mlp": (6,), "convnet2": (3, 36, 36), "efficientnet-lite0": (3, 32, 32), "vgg16": (3, 32, 32)}
# Weights of the first are fetched (benchmarks/fruit_probe.py); the second is large.
SETTINGS = {"efficientnet-lite0": {"pretrained": False}, "vgg16": {"width": 4}}


def shape_for(name):
    return SHAPES.get(name, (3, 28, 28))


@pytest.mark.parametrize("name", MODELS)
def test_logits_layers_and_entering_in_the_middle(name):
    shape = shape_for(name)
    model = maker(name, SETTINGS.get(name, {}), shape, 7)().eval()
    x = torch.randn(5, *shape)
    logits = model(x)
    assert logits.shape == (5, 7)
    assert model.layers
    for layer in model.layers:
        torch.testing.assert_close(model.after(model.features(x, layer), layer), logits)
    torch.testing.assert_close(model.after(model.features(x)), logits)
    with pytest.raises(UserError, match="no layer 'nosuch'"):
        model.features(x, "nosuch")


@pytest.mark.parametrize("name", MODELS)
def test_every_parameter_gets_a_gradient_and_state_goes_round(name):
    shape = shape_for(name)
    make = maker(name, SETTINGS.get(name, {}), shape, 3)
    model, other = make(), make()
    model(torch.randn(8, *shape)).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    other.load_state_dict(model.state_dict())
    x = torch.randn(4, *shape)
    torch.testing.assert_close(model.eval()(x), other.eval()(x))


@pytest.mark.parametrize("name", MODELS)
def test_a_wrong_shape_or_setting_is_said(name):
    with pytest.raises(UserError, match=r"unknown setting 'model\.nosuch'"):
        maker(name, {"nosuch": 1}, shape_for(name), 3)
    if name != "mlp":
        with pytest.raises(UserError, match="takes images"):
            maker(name, {}, (6,), 3)


@pytest.mark.parametrize("name", MODELS)
def test_card_is_complete(name):
    doc = registry.card("models", name)
    for part in (".. math::", "Source: ", "Differs: "):
        assert part in doc


def count(name, shape=(3, 28, 28), **settings):
    return sum(p.numel() for p in maker(name, settings, shape, 10)().parameters())


def test_parameter_counts_that_are_published_or_counted_by_hand():
    assert count("rebias-conv") == 531_210  # ReBias f
    assert count("rebias-conv", kernel=1) == 12_810  # ReBias g
    # LeNet-5: 3*6*25+6, 6*16*25+16, 256*120+120, 120*84+84, 84*10+10
    assert count("lenet5") == 456 + 2416 + 30_840 + 10_164 + 850
    # LfF's perceptron 2352-100-100-100-10
    assert count("mlp") == 2352 * 100 + 100 + 2 * (100 * 100 + 100) + 1010
    # ConvNet-1: three 4x4 convolutions, three normalisations, 64 -> 10
    assert count("convnet1") == 3 * 8 * 16 + 8 + 16 + 8 * 32 * 16 + 32 + 64 + 32 * 64 * 16 + 64 + 128 + 650


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


def test_receptive_fields():
    def seen(shape=(3, 32, 32), **settings):
        return receptive_field(maker("resnet", settings, shape, 10)())

    assert seen() == (435, 435)
    assert seen(kind="bagnet") == (43, 43)
    assert seen(kind="bagnet-released") == (5, 5)
    assert seen((8, 3, 32, 32), kind="3d", width=4) == (19, 435, 435)
    assert seen((8, 3, 32, 32), kind="2d", width=4) == (1, 435, 435)
    assert seen((8, 3, 32, 32), kind="difference", width=4) == (2, 435, 435)
    assert receptive_field(maker("rebias-conv", {}, (3, 28, 28), 10)()) == (25, 25)  # 1 + 4 (7 - 1)
    with pytest.raises(UserError, match="no convolution"):
        receptive_field(nn.Linear(3, 2))


@pytest.mark.parametrize("kind", ["bagnet", "bagnet-released"])
def test_a_bagnet_sees_no_further_than_computed(kind):
    # The gradient of one place of the last map, with respect to the pixels, is the receptive field by another way.
    torch.manual_seed(0)
    model = maker("resnet", {"kind": kind, "width": 8}, (3, 129, 129), 10)().eval()
    x = torch.rand(1, 3, 129, 129, requires_grad=True)
    out = model.features(x, "layer4")
    out[0, :, out.shape[2] // 2, out.shape[3] // 2].sum().backward()
    rows = x.grad.abs().sum((0, 1, 3)).nonzero().flatten()
    assert rows.max() - rows.min() + 1 <= receptive_field(model)[0]
    assert rows.max() - rows.min() + 1 > receptive_field(model)[0] / 2


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
    with pytest.raises(UserError, match=r"another network: bn1\.bias, bn1\.running_mean, .* and \d+ more missing, a not known"):
        load()
    torch.save(maker("resnet", {"width": 8}, (3, 32, 32), 10)().state_dict(), tmp_path / "w.pth")
    with pytest.raises(UserError, match=r"conv1\.weight has shape \(8, 3, 7, 7\), the network's is \(64, 3, 7, 7\)"):
        load()
    (tmp_path / "w.pth").write_bytes(b"")
    with pytest.raises(UserError, match="not a state dict that can be opened safely"):
        load()
    torch.save({1: torch.zeros(2)}, tmp_path / "w.pth")
    with pytest.raises(UserError, match="holds no state dict"):
        load()
    torch.save([1, 2], tmp_path / "w.pth")
    with pytest.raises(UserError, match="holds no state dict"):
        load()


def test_efficientnet_lite0_loads_a_file_of_its_keys_and_counts_right(tmp_path):
    model = maker("efficientnet-lite0", {"pretrained": False}, (3, 64, 64), 1000)()
    assert sum(p.numel() for p in model.parameters()) == 4_652_008  # as published
    torch.save(model.state_dict(), tmp_path / "w.pth")
    again = maker("efficientnet-lite0", {"weights": str(tmp_path / "w.pth")}, (3, 64, 64), 1000)().eval()
    x = torch.rand(2, 3, 64, 64)
    torch.testing.assert_close(again(x), model.eval()(x))
    with pytest.raises(UserError, match="one or three channels, got 2"):
        maker("efficientnet-lite0", {"pretrained": False}, (2, 64, 64), 10)


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


def test_a_finished_run_does_not_need_the_file_of_its_first_weights(tmp_path):
    torch.save(maker("resnet", {"width": 4}, (3, 28, 28), 10)().state_dict(), tmp_path / "w.pth")
    settings = {"model.width": 4, "model.weights": str(tmp_path / "w.pth"), "train.steps": 2, "train.batch": 16}
    run = package.train("colored-mnist:base=digits", model="resnet", out=tmp_path / "run", settings=settings)
    first = package.evaluate(run).metrics["plain"]
    (tmp_path / "w.pth").unlink()
    assert package.evaluate(run).metrics["plain"] == first  # scaled as in training, though the weights' file is gone


def test_the_one_by_one_network_sees_single_pixels_only():
    model = maker("rebias-conv", {"kernel": 1}, (3, 28, 28), 10)().eval()
    x = torch.rand(2, 3, 28, 28)
    shuffled = x.flatten(2)[:, :, torch.randperm(784)].view_as(x)
    torch.testing.assert_close(model(x), model(shuffled))


def test_lnl_map_is_14_by_14():
    model = maker("lnl-net", {}, (3, 28, 28), 10)()
    assert model.features(torch.rand(2, 3, 28, 28), "f").shape == (2, 32, 14, 14)


def test_any_module_becomes_a_model():
    network = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    model = Adapter(network)
    x = torch.randn(5, 4)
    torch.testing.assert_close(model(x), network(x))
    torch.testing.assert_close(model.features(x, "0"), network[0](x))
    torch.testing.assert_close(model.features(x), network[1](network[0](x)))
    with pytest.raises(UserError, match="no layer 'nosuch'"):
        Adapter(network, ["nosuch"])


def test_strided_pointwise_convolutions_are_the_same_and_do_not_write_beyond_their_memory():
    plain = nn.Conv2d(4, 8, 1, 2)
    guarded = guard_convolutions(nn.Sequential(nn.Conv2d(4, 8, 1, 2)))
    guarded[0].load_state_dict(plain.state_dict())
    x = torch.rand(3, 4, 9, 7)
    torch.testing.assert_close(guarded(x), plain(x))
    other = guard_convolutions(nn.Sequential(nn.Conv2d(4, 8, 3, 2, 1), nn.Conv2d(4, 8, 1)))
    assert [type(c) for c in other] == [nn.Conv2d, nn.Conv2d]
    # In a process of its own: the plain one kills it.
    code = (
        "import torch; from unskew.models._contract import maker; torch.manual_seed(0); "
        "m = maker('resnet', {'width': 4}, (3, 32, 32), 8)(); x = torch.rand(64, 3, 32, 32).contiguous(memory_format=torch.channels_last);"
        "[m(x).square().mean().backward() for _ in range(6)]; print('whole')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "whole", done.stderr


def test_timm_says_what_it_needs():
    with pytest.raises(UserError, match=r"model timm needs timm and torchvision|say which, with model\.name"):
        maker("timm", {}, (3, 64, 64), 5)()
