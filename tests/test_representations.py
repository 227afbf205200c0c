"""Each representation on pictures where its numbers are known; and the cache behind them all."""

import math

import numpy as np
import polars as pl
import pytest
import torch
from PIL import Image

from tests.conftest import write_image
from unskew import features as _base
from unskew.core import registry
from unskew.core.errors import UserError
from unskew.data import load
from unskew.data.dataset import DataSet, Memory
from unskew.features import compute, spec, standard
from unskew.models._contract import maker
from unskew.representations.file import facts
from unskew.representations.texture import filters


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("UNSKEW_DATA", str(tmp_path / "cache"))


def pictures(x):
    n = len(x)
    return DataSet(name="p", inputs=Memory(x), y=torch.arange(n) % 2, classes=("a", "b"), split=torch.zeros(n, dtype=torch.long))


def features(data, text):
    index, found = compute(data, [spec(text)], torch.arange(len(data)))
    assert index.tolist() == list(range(len(data)))
    return found[text]


def test_color_by_hand():
    x = torch.zeros(2, 3, 4, 4, dtype=torch.uint8)
    x[0, 0, 0, 0] = 255  # one red pixel on black
    x[1] = 102  # grey everywhere
    data = pictures(x)
    assert features(data, "color:kind=max").tolist() == [[1, 0, 0], pytest.approx([0.4] * 3)]
    mean = features(data, "color:kind=mean")
    assert mean[0, :3].tolist() == pytest.approx([1 / 16, 0, 0])
    assert mean[1, 3:].tolist() == pytest.approx([0, 0, 0], abs=1e-6)
    histogram = features(data, "color:kind=histogram").square()
    assert histogram.sum(1).tolist() == pytest.approx([1, 1])
    assert histogram[0, 0] == pytest.approx(15 / 16)  # black
    assert histogram[0, 3 * 16] == pytest.approx(1 / 16)  # the red box: first channel in its last bin
    assert histogram[1, 1 * 16 + 1 * 4 + 1] == pytest.approx(1)  # 0.4 lies in the second of four bins


def test_border_and_center_see_what_they_should():
    x = torch.zeros(3, 3, 32, 32, dtype=torch.uint8)
    x[1, :, 12:20, 12:20] = 255  # only the centre differs from the first
    x[2, :, :2, :] = 255  # only the border differs
    border, center = features(pictures(x), "crop:where=border"), features(pictures(x), "crop:where=center")
    assert torch.equal(border[0], border[1])
    assert not torch.equal(border[0], border[2])
    assert torch.equal(center[0], center[2])
    assert not torch.equal(center[0], center[1])


def test_low_resolution_is_an_area_average():
    x = torch.randint(0, 256, (2, 3, 16, 16), dtype=torch.uint8)
    expected = x.view(2, 3, 8, 2, 8, 2).float().mean((3, 5)) / 255
    torch.testing.assert_close(features(pictures(x), "low_resolution"), expected.flatten(1))


def test_texture_ignores_place_and_brightness_and_tells_directions():
    bank = filters()
    assert bank.sum((1, 2, 3)).abs().max() < 1e-5
    assert bank.flatten(1).norm(dim=1).tolist() == pytest.approx([1] * 10)
    stripes = ((torch.arange(32)[None] // 2 % 2) * 200).expand(32, -1).to(torch.uint8)
    x = torch.stack([stripes, stripes.roll(4, 1), stripes + 30, stripes.T])[:, None].expand(-1, 3, -1, -1).contiguous()
    f = features(pictures(x), "texture")
    torch.testing.assert_close(f[0], f[1], atol=0.03, rtol=0)
    torch.testing.assert_close(f[0], f[2], atol=1e-3, rtol=0)
    assert (f[0] - f[3]).abs().max() > 0.3


def test_spectrum_finds_the_frequency():
    t = torch.arange(32)
    slow, fast = (127 + 100 * torch.cos(2 * math.pi * t * k / 32) for k in (2, 14))
    x = torch.stack([slow, fast])[:, None, None].expand(-1, 3, 32, -1).round().to(torch.uint8).contiguous()
    f = features(pictures(x), "spectrum")[:, :12]
    # Frequencies 2/32 and 14/32, as shares of the largest radius sqrt(1/2), in twelve bands.
    assert f.argmax(1).tolist() == [int(2 / 32 / math.sqrt(0.5) * 12), int(14 / 32 / math.sqrt(0.5) * 12)]


@pytest.mark.parametrize("quality", [20, 50, 75, 95])
def test_file_facts(quality, tmp_path):
    noise = np.random.default_rng(0).integers(0, 255, (40, 60, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "a.jpg", quality=quality)
    width, height, aspect, log_bytes, _, found, exif, jpeg, png, *_ = facts(str(tmp_path / "a.jpg"))
    assert (width, height, aspect) == (60, 40, 1.5)
    assert log_bytes == pytest.approx(math.log((tmp_path / "a.jpg").stat().st_size))
    assert found == pytest.approx(quality, abs=2)
    assert (exif, jpeg, png) == (0, 1, 0)
    tagged = Image.Exif()
    tagged[0x0110] = "camera"
    Image.fromarray(noise).save(tmp_path / "b.jpg", exif=tagged)
    assert facts(str(tmp_path / "b.jpg"))[6] == 1


def test_columns_are_codes_or_numbers(folder):
    frame = pl.DataFrame(
        {"path": [f"{c}/{k}.png" for c in ("cat", "dog") for k in range(12)], "label": ["cat"] * 12 + ["dog"] * 12}
    )
    frame = frame.with_columns(pl.Series("site", ["x", "y", None] * 8), pl.Series("age", [float(k) / 3 for k in range(24)]))
    frame.write_csv(folder / "t.csv")
    data = load(folder / "t.csv", bias="site")
    assert features(data, "column:name=site")[:3].tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    assert features(data, "column:name=age").shape[1] == 24
    with pytest.raises(UserError, match="no column 'nosuch'"):
        features(data, "column:name=nosuch")
    assert {"column:name=site", "column:name=age", "file"} <= {s.name for s in standard(data)[0]}


def test_frames_of_clips():
    x = torch.rand(3, 5, 3, 16, 16)
    data = pictures(x)
    torch.testing.assert_close(
        features(data, "frame:which=middle"), torch.nn.functional.adaptive_avg_pool2d(x[:, 2], 8).flatten(1)
    )
    assert [s.name for s in standard(data)[0]] == ["frame:which=middle", "frame:which=mean"]


def test_layer_of_a_run_is_the_layer(tmp_path):
    import unskew as package

    data = package.load("colored-mnist:base=digits,ratio=0.9")
    run = package.train(data, out=tmp_path / "r", settings={"train.epochs": 1})
    method, _ = package.evaluate.run.open_run(run)
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
    with pytest.raises(UserError, match="are no clips"):
        features(pictures(clips[:, 0]), "layer:model=resnet,net.width=4,frames=true")
    with pytest.raises(UserError, match=r"unknown setting 'model\.wide'"):
        features(pictures(clips[:, 0]), "layer:model=resnet,net.wide=4")
    with pytest.raises(UserError, match="a run has its own"):
        spec("layer:run=r,net.width=4")


def test_features_are_computed_once(monkeypatch):
    data = pictures(torch.randint(0, 256, (50, 3, 16, 16), dtype=torch.uint8))
    specs = [spec("color"), spec("texture")]
    first = compute(data, specs, torch.arange(50))[1]
    monkeypatch.setattr(_base, "_chunk", None)  # would fail if called
    again = compute(data, specs, torch.arange(50))[1]
    for name in first:
        torch.testing.assert_close(first[name], again[name], rtol=0, atol=0)


def test_an_interrupted_computation_keeps_its_chunks(monkeypatch):
    data = pictures(torch.randint(0, 256, (50, 3, 16, 16), dtype=torch.uint8))
    monkeypatch.setattr(_base, "CHUNK", 10)
    real, calls = _base._chunk, []

    def breaks(*words):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(*words)

    monkeypatch.setattr(_base, "_chunk", breaks)
    with pytest.raises(KeyboardInterrupt):
        compute(data, [spec("color")], torch.arange(50))
    found = compute(data, [spec("color")], torch.arange(50))[1]["color"]
    assert len(calls) == 4 + 2  # three chunks were kept; the fourth and fifth were computed now
    torch.testing.assert_close(found, data.inputs.x.float().flatten(2).amax(2) / 255)


@pytest.mark.parametrize("name", registry.names("representations"))
def test_every_file_fulfils_the_contract(name):
    module = registry.module("representations", name)
    for part in (".. math::", "Source: ", "Differs: "):
        assert part in module.__doc__
    assert hasattr(module, "VARIANTS") or hasattr(module, "variants")
    for needed in ("Config", "PIXELS", "CONTENT", "phrase", "applies", "features"):
        assert hasattr(module, needed), needed


def test_a_users_own_representation_by_dotted_name():
    data = pictures(torch.randint(0, 256, (20, 3, 8, 8), dtype=torch.uint8))
    assert features(data, "tests.own_representation").flatten().tolist() == data.inputs.x[:, 0, 0, 0].div(255).tolist()


def test_sixteen_bit_and_transparent_pictures_keep_their_greys(tmp_path):
    ramp = np.linspace(0, 65535, 32 * 32, dtype=np.uint16).reshape(32, 32)
    for name in ("a", "b"):
        (tmp_path / "p" / name).mkdir(parents=True)
        for k in range(6):
            Image.fromarray(ramp).save(tmp_path / "p" / name / f"{k}.png")
    x = load(tmp_path / "p").inputs.x
    assert (x[0, 0].double() - torch.from_numpy(ramp / 257)).abs().max() <= 1
    clear = np.zeros((32, 32, 4), np.uint8)
    clear[..., 0] = 255  # red, fully transparent
    Image.fromarray(clear).save(tmp_path / "p" / "a" / "0.png")
    assert (load(tmp_path / "p").inputs.x[0] == 255).all()


def test_split_folders_must_all_be_splits(tmp_path):
    for name in ("train/a", "train/b", "masks/a"):
        write_image(tmp_path / "p" / name / "1.png", (1, 1, 1))
    with pytest.raises(UserError, match="'masks' stands beside split folders"):
        load(tmp_path / "p")
