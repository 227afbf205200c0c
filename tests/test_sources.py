"""Every SOURCE: what is read, in which order, with which labels, biases and splits."""

import dataclasses

import numpy as np
import polars as pl
import pytest
import torch
from PIL import Image

from tests.conftest import write_image
from unskew.core.errors import UserError
from unskew.data import load
from unskew.data.loader import Loader, rows_in_order
from unskew.data.samplers import Sampler, draw, group_weights


def test_class_folder(folder):
    data = load(folder)
    assert data.classes == ("cat", "dog")
    assert data.y.bincount().tolist() == [12, 12]
    assert data.shape == (3, 32, 32)
    assert [len(data.rows(s)) for s in ("train", "val", "test")] == [20, 2, 2]
    assert data.inputs.x[data.y == 0].float().mean((0, 2, 3))[0] > 150  # cats are red: pixels belong to their rows


def test_class_folder_with_splits(folder, tmp_path):
    root = tmp_path / "split"
    for split in ("train", "val", "test"):
        for name in ("cat", "dog"):
            for k in range(4):
                write_image(root / split / name / f"{k}.png", (9, 9, 9), seed=k)
    data = load(root)
    assert [len(data.rows(s)) for s in ("train", "val", "test")] == [8, 8, 8]
    assert data.classes == ("cat", "dog")


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("path_name", ["file_name", "img_filename", "filename", "path"])
def test_tables(folder, ending, path_name):
    frame = pl.DataFrame(
        {
            path_name: [f"{c}/{k}.png" for c in ("cat", "dog") for k in range(12)],
            "label": ["cat"] * 12 + ["dog"] * 12,
            "place": ["home", "street", None] * 8,
            "split": ["train"] * 8 + ["val"] * 2 + ["test"] * 2 + ["train"] * 8 + ["valid"] * 2 + ["test"] * 2,
        }
    )
    path = folder / f"table.{ending}"
    {"csv": frame.write_csv, "jsonl": frame.write_ndjson, "parquet": frame.write_parquet}[ending](path)
    data = load(path, bias="place")
    assert data.bias_values == (("home", "street"),)
    assert data.bias[:3, 0].tolist() == [0, 1, -1]
    assert [len(data.rows(s)) for s in ("train", "val", "test")] == [16, 4, 4]
    assert len(data.aligned()[0][0]) == 2


def test_multi_label_from_columns_and_from_a_list(folder):
    paths = [f"{c}/{k}.png" for c in ("cat", "dog") for k in range(12)]
    pl.DataFrame({"path": paths, "furry": [1, 0] * 12, "red": [0, 1] * 12}).write_csv(folder / "t.csv")
    data = load(folder / "t.csv", label="furry,red")
    assert data.multi_label
    assert data.classes == ("furry", "red")
    assert data.y[:2].tolist() == [[1, 0], [0, 1]]
    pl.DataFrame({"path": paths, "label": [["a", "b"], []] * 12}).write_parquet(folder / "t.parquet")
    data = load(folder / "t.parquet")
    assert data.classes == ("a", "b")
    assert data.y[:2].tolist() == [[1, 1], [0, 0]]


def test_npz_of_features_images_and_clips(tmp_path):
    y = np.array([0, 1] * 10)
    for name, shape, expected in [
        ("vectors", (20, 5), (5,)), ("grey", (20, 8, 8), (1, 8, 8)), ("last", (20, 8, 8, 3), (3, 8, 8)),
        ("clips", (20, 4, 3, 8, 8), (4, 3, 8, 8)),
    ]:  # fmt: skip
        np.savez(tmp_path / f"{name}.npz", features=np.random.rand(*shape), y=y, site=np.array(["a", "b"] * 10))
        data = load(tmp_path / f"{name}.npz", bias="site")
        assert data.shape == expected
        assert data.bias_values == (("a", "b"),)


def test_hugging_face_on_disk(tmp_path):
    datasets = pytest.importorskip("datasets")
    rows = {
        "image": [Image.fromarray(np.full((8, 8, 3), 10 * k, np.uint8)) for k in range(20)],
        "label": [0, 1] * 10, "site": ["x", "y"] * 10,
    }  # fmt: skip
    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=["no", "yes"]), "site": datasets.Value("string")}
    )
    made = datasets.Dataset.from_dict(rows, features=features)
    made.save_to_disk(str(tmp_path / "one"))
    data = load(tmp_path / "one", bias="site")
    assert data.classes == ("no", "yes")
    assert data.shape == (3, 8, 8)
    assert data.inputs.x[:, 0, 0, 0].tolist() == [10 * k for k in range(20)]
    datasets.DatasetDict({"train": made, "test": made}).save_to_disk(str(tmp_path / "two"))
    assert len(load(tmp_path / "two").rows("test")) == 20


class Rows(torch.utils.data.Dataset):
    def __init__(self, form):
        self.form = form

    def __len__(self):
        return 30

    def __getitem__(self, k):
        x, y, b = torch.full((3, 4, 4), k / 30), k % 3, k % 2
        return {"pair": (x, y), "triple": (x, y, b), "dict": {"x": x, "label": y, "site": b}}[self.form]


@pytest.mark.parametrize(("form", "bias"), [("pair", ()), ("triple", ("bias",)), ("dict", ("site",))])
def test_any_torch_dataset(form, bias):
    data = load(Rows(form), bias=bias)
    assert data.bias_names == bias
    assert data.y.tolist() == [k % 3 for k in range(30)]
    if bias:
        assert data.bias[:, 0].tolist() == [k % 2 for k in range(30)]
    both = load({"train": Rows(form), "test": Rows(form)}, bias=bias)
    assert len(both.rows("train")) == len(both.rows("test")) == 30


def test_memory_and_stream_give_the_same_batches(folder):
    memory, stream = load(folder), load(folder, mode="stream")
    assert memory.fingerprint == stream.fingerprint
    assert not stream.inputs.in_memory
    for workers in (0, 2):
        batches = []
        for data in (memory, stream):
            loader = Loader(data, Sampler(data.rows("train"), 8, 3), workers=workers)
            batches.append([next(b) for b in [loader.batches(1)] for _ in range(5)])
        for (a, n), (b, m) in zip(*batches, strict=True):
            assert n == m
            assert torch.equal(a.index, b.index)
            assert torch.equal(a.x, b.x)


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


def test_same_seed_same_split_other_seed_other_split(folder):
    assert torch.equal(load(folder).split, load(folder).split)
    assert not torch.equal(load(folder).split, load(folder, seed=1).split)


def test_a_batch_holds_only_what_is_asked_for():
    data = load("toy")
    for sees in (frozenset(), frozenset({"bias"})):
        batch, _ = next(Loader(data, Sampler(data.rows("train"), 8, 0), sees).batches())
        assert set(batch.columns()) == {"index", "x", "y"} | ({"bias", "group"} if sees else set())
    with pytest.raises(LookupError, match="declare sees"):
        next(Loader(data, Sampler(data.rows("train"), 8, 0)).batches())[0].need("bias")


def test_uniform_sampler_visits_every_row_once_an_epoch():
    sampler = Sampler(torch.arange(100, 200), 16, 0)
    first = torch.cat([sampler.at(s) for s in range(sampler.steps_per_epoch)])
    # 100 rows in batches of 16: six full ones, and a last one of four that is too small to keep.
    assert sampler.steps_per_epoch == 6
    assert len(set(first.tolist())) == 96
    assert not torch.equal(sampler.at(0), sampler.at(6))
    assert torch.equal(sampler.at(0), Sampler(torch.arange(100, 200), 16, 0).at(0))


def test_weighted_draws_follow_the_weights():
    weights = torch.tensor([0.0, 1.0, 3.0, 0.0, 6.0])
    got = draw(weights, 100_000, torch.Generator().manual_seed(0)).bincount(minlength=5) / 100_000
    torch.testing.assert_close(got, weights / 10, atol=0.01, rtol=0)
    assert got[0] == got[3] == 0


def test_group_balanced_sampler_gives_every_group_the_same_share():
    group = torch.tensor([0] * 900 + [1] * 90 + [2] * 10 + [-1] * 50)
    sampler = Sampler(torch.arange(1050), 350, 0, group_weights(group))
    seen = torch.cat([group[sampler.at(s)] for s in range(60)])
    assert (seen >= 0).all()
    share = seen.bincount() / len(seen)
    torch.testing.assert_close(share, torch.full((3,), 1 / 3), atol=0.02, rtol=0)


def test_noise_is_a_setting_of_any_source(folder):
    clean, noisy = load(folder), load(folder, noise=0.5)
    assert int((clean.y != noisy.y).sum()) == 10 + 1  # of 20 train and 2 val rows
    assert clean.fingerprint != noisy.fingerprint


def test_only_the_named_bias_columns_are_kept():
    data = dataclasses.replace(load("toy"), bias_names=("B",))
    with pytest.raises(UserError, match="no bias column 'b'"):
        data.only_bias(["b"])
