"""Shards that unskew writes: read back, they are the rows of the source; other readers read them too."""

import tarfile
from pathlib import Path

import pytest
import torch

from tests.conftest import write_image
from unskew.core.errors import UserError
from unskew.data import load, write_shards
from unskew.data.write import write

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def table(tmp_path):
    """Twenty-four files with a label, a bias column with gaps, a number, and splits; one of them a second test split."""
    lines = ["file_name,label,site,age,split"]
    for k in range(24):
        write_image(tmp_path / "photos" / f"{k}.png", (k * 9, 60, 60), seed=k)
        split = "train" if k < 14 else "val" if k < 18 else "test" if k < 21 else "test_hard"
        lines.append(f"{k}.png,{'cat' if k % 2 else 'dog'},{'' if k % 5 == 0 else 'xyz'[k % 3]},{k / 4},{split}")
    (tmp_path / "photos" / "metadata.csv").write_text("\n".join(lines))
    return tmp_path / "photos"


def rows_of(data):
    """What a row is, without its id: pictures, class, split, bias value, age."""
    x, fine = data.inputs.rows(torch.arange(len(data)))
    assert bool(fine.all())
    bias = [data.bias_values[0][c] if c >= 0 else None for c in data.bias[:, 0].tolist()]
    labels = [data.classes[c] for c in data.y.tolist()]
    splits = [data.splits[c] for c in data.split.tolist()]
    return sorted(zip(map(bytes, x.numpy()), labels, splits, map(str, bias), map(float, data.columns["age"]), strict=True))


@pytest.mark.parametrize("how", ["shards", "tar"])
def test_what_is_written_is_read_back(tmp_path, table, how, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(write_shards, "GROUP", 4)
    monkeypatch.setattr(write_shards, "SHARD", 20_000)
    source = load(table, bias="site")
    out = write(source, tmp_path / "out", how)
    assert len(list(out.glob("train-*"))) > 1
    back = load(out, bias="site", mode="stream")
    assert rows_of(back) == rows_of(source)
    assert back.classes == source.classes
    assert back.carved == ()  # it has the splits it was written with
    again = write(back, tmp_path / "again", how)  # shards from shards, without decoding
    assert rows_of(load(again, bias="site")) == rows_of(source)


def test_pictures_are_copied_to_the_byte(tmp_path, table):
    out = write(load(table), tmp_path / "out", "tar")
    originals = {path.read_bytes() for path in table.glob("*.png")}
    with tarfile.open(out / "train-00000.tar") as archive:
        for member in archive.getmembers():
            if member.name.endswith(".png"):
                assert archive.extractfile(member).read() in originals


def test_hugging_face_reads_them(tmp_path, table):
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    out = write(load(table, bias="site"), tmp_path / "out", "shards")
    files = [str(p) for p in sorted(out.glob("train-*.parquet"))]
    rows = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=str(tmp_path / "hf"))
    assert len(rows) == 14
    assert rows.features["label"].names == ["cat", "dog"]
    assert rows[0]["image"].size == (32, 32)


def test_arrays_and_several_labels(tmp_path):
    pytest.importorskip("pyarrow")
    source = load("colored-mnist:base=digits,ratio=0.95")
    small = write(source, tmp_path / "a", "shards")
    back = load(small, bias=source.bias_names, mode="memory")
    assert [len(back.rows(s)) for s in ("train", "test")] == [len(source.rows(s)) for s in ("train", "test")]
    names = sorted(Path(p).name for p in back.paths)
    assert len(set(names)) == len(back)
    several = load("tiles:base=digits,rows=100")
    many = load(write(several, tmp_path / "b", "tar"))
    assert many.multi_label
    assert many.y.sum() == several.y.sum()


def test_hidden_boxes_stay_hidden(tmp_path, table):
    text = (table / "metadata.csv").read_text().splitlines()
    boxed = [f"{text[0]},x0,y0,x1,y1", *(f"{line},0,0,16,32" for line in text[1:])]
    (table / "metadata.csv").write_text("\n".join(boxed))
    out = write(load(table, hide="black"), tmp_path / "out", "tar")
    x, _ = load(out).inputs.rows(torch.arange(24))
    assert not x[:, :, :, :16].any()


def test_what_is_not_a_picture_is_refused(tmp_path):
    with pytest.raises(UserError, match="its rows are not images"):
        write(load("toy:rows=60"), tmp_path / "out", "shards")
    with pytest.raises(UserError, match="must be npz, images, shards or tar"):
        write(load("toy:rows=60"), tmp_path / "out", "zip")
    assert not (tmp_path / "out").exists()


def test_the_command(tmp_path, table, unskew):
    done = unskew("data", "photos", "--as", "tar", "--out", "out")
    assert "as a source: " in done.stdout
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "card.json", "test-00000.tar", "test_hard-00000.tar", "train-00000.tar", "val-00000.tar",
    ]  # fmt: skip
