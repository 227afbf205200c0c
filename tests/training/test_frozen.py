"""A frozen network learns only its last layer, from features computed once; the run predicts from pixels all the same."""

import torch

import unskew as package
from unskew.data.loader import normalise
from unskew.models._contract import maker
from unskew.training.finished import open_run
from unskew.training.frozen import Computed, representation_of, with_features
from unskew.training.predict import predict
from unskew.training.simple import part_features

SOURCE = "colored-mnist:base=digits,digits=3,5,8,ratio=0.9"
FROZEN = {"model.backbone": "small-resnet", "model.size": 28, "train.steps": 30, "train.batch": 64}


def test_only_the_last_layer_learns_and_features_equal_pixels(tmp_path, own_cache):
    run = package.train(SOURCE, model="frozen", out=tmp_path / "r", settings=FROZEN)
    method, data = open_run(run)
    torch.manual_seed(0)
    rows = data.rows("test")[:20]
    index, logits = predict(method, data, rows)
    with torch.no_grad():
        from_pixels = method.predict(data.inputs.rows(rows)[0].float() / 255)
    torch.testing.assert_close(logits, from_pixels, atol=1e-4, rtol=1e-4)
    assert torch.equal(index, rows)
    learns = [name for name, p in method.named_parameters() if p.requires_grad]
    assert learns == ["model.head.weight", "model.head.bias"]
    # Standardised by the training rows: mean 0 and deviation 1 of what the last layer reads.
    seen = with_features(data, method.model, data.rows("train"))
    assert isinstance(seen.inputs, Computed)
    with torch.no_grad():
        h = method.model.features(seen.inputs.rows(data.rows("train"))[0])
    torch.testing.assert_close(h.mean(0), torch.zeros(h.shape[1]), atol=1e-3, rtol=0)


def test_statistics_of_the_backbone_stay():
    network = maker("frozen", {"backbone": "small-resnet", "size": 16}, (3, 16, 16), 2)()
    before = {k: v.clone() for k, v in network.state_dict().items()}
    network.train()
    network(torch.rand(8, 3, 16, 16))
    assert all(torch.equal(before[k], v) for k, v in network.state_dict().items())


def test_clips_are_averaged_over_their_frames():
    network = maker("frozen", {"backbone": "small-resnet", "size": 16}, (4, 3, 16, 16), 2)().eval()
    clip = torch.rand(2, 4, 3, 16, 16)
    with torch.no_grad():
        one_by_one = torch.stack([network.features(clip[:, t : t + 1]) for t in range(4)]).mean(0)
        torch.testing.assert_close(network.features(clip), one_by_one, atol=1e-5, rtol=1e-5)


def test_every_method_that_needs_no_pixels_trains_on_features(tmp_path, own_cache):
    for name in ("lff", "group_dro", "pgd"):
        run = package.train(SOURCE, name, model="frozen", out=tmp_path / name, settings=FROZEN, force=True)
        assert run.finished


def test_the_cache_does_not_depend_on_the_unused_last_module():
    first, second = (maker("frozen", {"backbone": "small-resnet"}, (3, 32, 32), 2)() for _ in range(2))
    second.backbone.load_state_dict(first.backbone.state_dict())
    with torch.no_grad():
        second.backbone.output.weight.add_(1)
    assert representation_of(first).key == representation_of(second).key
    with torch.no_grad():
        next(second.backbone.parameters()).add_(1)
    assert representation_of(first).key != representation_of(second).key


def test_a_box_is_what_the_network_sees_of_the_picture():
    data = package.load(SOURCE)
    network = maker("frozen", {"backbone": "small-resnet", "size": 28}, data.shape, 3)().eval()
    box, rows = (0.5, 0.0, 1.0, 0.5), torch.arange(6)
    one = representation_of(network, box)
    assert one.key != representation_of(network).key
    x = data.inputs.rows(rows)[0].float() / 255
    with torch.no_grad():
        by_hand = network.pooled(normalise(x, data)[:, :, :14, 14:])
        torch.testing.assert_close(one.kind.features(data, rows, x, one.cfg), by_hand)


def test_features_of_a_part_without_weights_are_its_pixels(own_cache):
    data = package.load(SOURCE)
    rows = torch.arange(5)
    found = part_features(data, rows, (0.0, 0.0, 4 / 7, 4 / 7), 0)  # 16 x 16 pixels: means of 2 x 2
    x = normalise(data.inputs.rows(rows)[0].float() / 255, data)[:, :, :16, :16]
    by_hand = x.reshape(5, 3, 8, 2, 8, 2).mean((3, 5)).flatten(1)
    torch.testing.assert_close(found, by_hand)
