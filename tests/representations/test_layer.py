"""Layers of a run and of a network with weights from a file are those of the network itself."""

import pytest
import torch

import unskew as package
from tests.support.pictures import features, pictures
from unskew.core.errors import UserError
from unskew.features import compute, spec
from unskew.models._contract import maker
from unskew.training.finished import open_run

pytestmark = pytest.mark.usefixtures("own_cache")


def test_layer_of_a_run_is_the_layer(tmp_path):
    data = package.load("colored-mnist:base=digits,ratio=0.9")
    run = package.train(data, model="convnet1", out=tmp_path / "r", settings={"train.epochs": 1})
    method, _ = open_run(run)
    rows = torch.arange(40)
    x = data.inputs.x[rows].float() / 255
    _, found = compute(data, [spec(f"layer:run={tmp_path / 'r'},at=conv2")], rows)
    with torch.no_grad():
        expected = method.model.features(x, "conv2").flatten(2).mean(2)
    torch.testing.assert_close(next(iter(found.values())), expected)
    _, gram = compute(data, [spec("layer:model=convnet1,at=conv1,gram=true")], rows)
    assert next(iter(gram.values())).shape == (40, 36)  # upper half of 8 x 8


def test_layer_of_a_network_with_settings_and_weights_from_a_file(tmp_path):
    network = maker("resnet", {"width": 4}, (3, 16, 16), 10)().eval()
    torch.save(network.state_dict(), tmp_path / "r.pth")
    clips = torch.randint(0, 256, (6, 5, 3, 16, 16), dtype=torch.uint8)
    mean, deviation = (torch.tensor(v).view(3, 1, 1) for v in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    with torch.no_grad():  # of every frame, averaged over time
        expected = torch.stack([network.features((c.float() / 255 - mean) / deviation) for c in clips]).mean(1)
    found = features(pictures(clips), f"layer:model=resnet,net.width=4,net.weights={tmp_path / 'r.pth'},frames=true")
    torch.testing.assert_close(found, expected)
    with pytest.raises(UserError, match="are not clips"):
        features(pictures(clips[:, 0]), "layer:model=resnet,net.width=4,frames=true")
    with pytest.raises(UserError, match=r"unknown setting 'model\.wide'"):
        features(pictures(clips[:, 0]), "layer:model=resnet,net.wide=4")
    with pytest.raises(UserError, match="cannot be combined with run"):
        spec("layer:run=r,net.width=4")
