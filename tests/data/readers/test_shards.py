"""Shards of pictures: the rows are those that were written, wherever they lie, and every kind of damage is one line."""

import io
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch

import unskew as package
from tests.support.runs import same
from tests.support.shards import encoded, pixels, tar_rows, write_parquet, write_tar
from unskew.core.errors import UserError
from unskew.data import load
from unskew.data.loader import Loader
from unskew.data.readers import parquet, shards, tar
from unskew.data.samplers import Sampler
from unskew.data.union import union

pytestmark = pytest.mark.usefixtures("own_cache")


def tars(root: Path) -> Path:
    write_tar(root / "train-000.tar", tar_rows(range(20)))
    write_tar(root / "train-001.tar", tar_rows(range(20, 30)))
    write_tar(root / "val-000.tar", tar_rows(range(30, 36)))
    write_tar(root / "test-000.tar", tar_rows(range(36, 44)))
    return root


def parquets(root: Path, layout: str = "struct") -> Path:
    pytest.importorskip("pyarrow")
    write_parquet(root / "data" / "train-00000-of-00002.parquet", range(20), layout=layout)
    write_parquet(root / "data" / "train-00001-of-00002.parquet", range(20, 30), layout=layout)
    write_parquet(root / "data" / "validation-00000-of-00001.parquet", range(30, 36), layout=layout)
    write_parquet(root / "data" / "test-00000-of-00001.parquet", range(36, 44), layout=layout)
    return root


@pytest.mark.parametrize("mode", ["memory", "stream"])
@pytest.mark.parametrize("make", [tars, parquets, lambda root: parquets(root, "binary")])
def test_the_rows_are_those_that_were_written(tmp_path, make, mode):
    data = load(make(tmp_path / "set"), mode=mode, bias="site")
    assert [len(data.rows(s)) for s in ("train", "val", "test")] == [30, 6, 8]
    order = [*range(36, 44), *range(30), *range(30, 36)]  # shards come by name: test, train, val
    x, fine = data.inputs.rows(torch.arange(len(data)))
    assert bool(fine.all())
    assert torch.equal(x, torch.from_numpy(np.stack([pixels(encoded(k)) for k in order])))
    assert data.y.tolist() == [k % 2 for k in order]
    assert [data.bias_values[0][c] for c in data.bias[:, 0].tolist()] == ["xyz"[k % 3] for k in order]
    assert data.classes == (("0", "1") if make is tars else ("no", "yes"))
    assert data.columns["site"].to_list() == ["xyz"[k % 3] for k in order]


@pytest.mark.parametrize("make", [tars, parquets])
def test_mode_changes_nothing_but_where_pictures_are(tmp_path, make):
    memory, stream = (load(make(tmp_path / "set"), mode=mode) for mode in ("memory", "stream"))
    assert memory.fingerprint == stream.fingerprint
    assert torch.equal(memory.split, stream.split)
    assert torch.equal(memory.blocks, stream.blocks)


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("make", [tars, parquets])
def test_the_same_rows_for_the_same_seed_whatever_the_workers_and_wherever_it_starts(tmp_path, make, monkeypatch):
    monkeypatch.setattr(shards, "TAR_BLOCK", 4)
    data = load(make(tmp_path / "set"), mode="stream")
    steps = 9  # three epochs of 30 rows
    batches = {}
    for workers in (0, 1, 3):
        loader = Loader(data, Sampler(data.rows("train"), 10, 3, blocks=data.blocks), workers=workers)
        stream = loader.batches()
        batches[workers] = [next(stream)[0] for _ in range(steps)]
        stream.close()
    for other in (1, 3):
        for a, b in zip(batches[0], batches[other], strict=True):
            assert torch.equal(a.index, b.index)
            assert torch.equal(a.x, b.x)
    for start in range(0, steps, 3):
        epoch = torch.cat([b.index for b in batches[0][start : start + 3]])
        assert sorted(epoch.tolist()) == data.rows("train").tolist()
    late = Loader(data, Sampler(data.rows("train"), 10, 3, blocks=data.blocks), workers=2).batches(5)
    for expected in batches[0][5:]:
        assert torch.equal(next(late)[0].x, expected.x)


def test_a_training_that_was_interrupted_ends_with_the_same_bits(tmp_path, monkeypatch):
    source = write_tar(tmp_path / "set" / "train-0.tar", tar_rows(range(60))).parent
    settings = {"train.steps": "8", "train.batch": "8", "data.mode": "stream", "train.checkpoint": "1 steps"}
    monkeypatch.setattr(shards, "TAR_BLOCK", 3)
    package.train(source, model="mlp", out=tmp_path / "whole", settings=settings | {"data.workers": "0"})
    real = Loader.batches

    def five(self, start=0):
        for number, batch in enumerate(real(self, start)):
            if number == 5:
                raise KeyboardInterrupt
            yield batch

    monkeypatch.setattr(Loader, "batches", five)
    with pytest.raises(KeyboardInterrupt):
        package.train(source, model="mlp", out=tmp_path / "cut", settings=settings)
    monkeypatch.setattr(Loader, "batches", real)
    package.train(source, model="mlp", out=tmp_path / "cut", settings=settings)
    same(tmp_path / "whole", tmp_path / "cut")


def test_a_shard_is_indexed_once_and_again_when_it_changes(tmp_path, monkeypatch):
    root = tars(tmp_path / "set")
    for path in root.iterdir():
        os.utime(path, (1e9, 1e9))
    indexed = []
    real = shards._index
    monkeypatch.setattr(shards, "_index", lambda item, *more: (indexed.append(Path(item.address).name), real(item, *more))[1])
    first = load(root)
    assert sorted(indexed) == ["test-000.tar", "train-000.tar", "train-001.tar", "val-000.tar"]
    indexed.clear()
    assert load(root).fingerprint == first.fingerprint
    assert indexed == []
    write_tar(root / "val-000.tar", tar_rows(range(50, 56)))
    os.utime(root / "val-000.tar", (1e9 + 60, 1e9 + 60))
    assert load(root).fingerprint != first.fingerprint
    assert indexed == ["val-000.tar"]


def test_a_damaged_manifest_is_written_again(tmp_path):
    root = tars(tmp_path / "set")
    for path in root.iterdir():
        os.utime(path, (1e9, 1e9))
    first = load(root)
    for part in (tmp_path / "cache" / "manifests").rglob("*.parquet"):
        part.write_bytes(part.read_bytes()[:100])
    assert load(root).fingerprint == first.fingerprint


def test_a_single_shard_and_a_table_of_paths_are_told_apart(tmp_path):
    pytest.importorskip("pyarrow")
    one = load(write_parquet(tmp_path / "one.parquet", range(24)), holdout=0)
    assert len(one) == 24
    assert one.paths[3].endswith("one.parquet/3-3.png")
    tar_file = load(write_tar(tmp_path / "two.tar", tar_rows(range(24))), holdout=0)
    assert tar_file.paths[3].endswith("two.tar/000003.png")
    (tmp_path / "a.png").write_bytes(encoded(0))
    both = write_parquet(tmp_path / "both.parquet", range(24), file_name=["a.png"] * 24)
    assert {Path(p).name for p in load(both, holdout=0, duplicates=False).paths} == {"a.png"}  # as before


def test_pictures_that_cannot_be_decoded_count(tmp_path):
    rows = tar_rows(range(20))
    rows[3] = (rows[3][0], b"no picture")
    root = write_tar(tmp_path / "set" / "train.tar", rows).parent
    with pytest.raises(UserError, match=r"1 of 20 images .*train\.tar/000001\.png: not an image"):
        load(root)
    data = load(root, max_bad=0.1, mode="stream")
    assert [k for k, _ in data.unreadable] == [1]
    with pytest.raises(UserError, match=r"more than data\.max_pixels=30 allows"):
        load(write_tar(tmp_path / "b" / "x.tar", tar_rows(range(20))).parent, size=4, max_pixels=30)


def alien(kind: str) -> tarfile.TarInfo:
    about = tarfile.TarInfo("000000.png")
    if kind == "link":
        about.type, about.linkname = tarfile.SYMTYPE, "/etc/passwd"
    elif kind == "hard":
        about.type, about.linkname = tarfile.LNKTYPE, "000001.png"
    elif kind == "device":
        about.type = tarfile.CHRTYPE
    else:
        about.name = {"up": "../../000000.png", "root": "/tmp/000000.png"}[kind]
    return about


@pytest.mark.parametrize(
    ("kind", "match"),
    [("link", "a link"), ("hard", "a link"), ("device", "no plain file"), ("up", "leads out"), ("root", "leads out")],
)
def test_an_alien_tar_is_refused_and_nothing_is_unpacked(tmp_path, kind, match):
    path = tmp_path / "set" / "train.tar"
    path.parent.mkdir()
    with tarfile.open(path, "w") as archive:
        archive.addfile(alien(kind), io.BytesIO(b""))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError, match=match):
        load(path.parent)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_cut_tar_is_refused_wherever_it_is_cut(tmp_path):
    whole = write_tar(tmp_path / "whole.tar", tar_rows(range(3))).read_bytes()
    content = len(list(tar.samples(io.BytesIO(whole), "t")))
    assert content == 3
    end = len(whole.rstrip(b"\0"))
    end += -end % 512
    for place in (*range(512, end + 1, 256), end + 100):
        with pytest.raises(UserError, match=r"was cut|has no picture"):
            list(tar.samples(io.BytesIO(whole[:place]), "t"))


@pytest.mark.parametrize(
    ("members", "match"),
    [
        ([("1.cls", b"0")], "has no picture"),
        ([("1.png", b"x"), ("2.png", b"x"), ("1.cls", b"0")], "do not follow one another"),
        ([("1.png", b"x"), ("1.json", b"[1]")], "not an object"),
        ([("1.png", b"x"), ("1.json", b"{")], "cannot be read"),
        ([("1.png", b"x"), ("1.json", b"[" * 100_000)], "cannot be read"),
        ([("1.png", b"x"), ("1.cls", b"a" * (2**20 + 1))], "bytes; labels and columns may have"),
    ],
)
def test_samples_that_are_not_whole(tmp_path, members, match):
    with pytest.raises(UserError, match=match):
        load(write_tar(tmp_path / "set" / "a.tar", members).parent)


def test_the_picture_of_a_sample_is_the_plain_one():
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, content in (("a/1.seg.png", encoded(1)), ("a/1.jpg", encoded(2)), ("__x__", b""), ("._1.jpg", b"")):
            about = tarfile.TarInfo(name)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    assert [s.member for s in tar.samples(raw, "t")] == ["a/1.jpg"]


def test_compressed_shards_cut_tables_and_mixed_names_are_refused(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "gz").mkdir()
    with tarfile.open(tmp_path / "gz" / "a.tar.gz", "w:gz"):
        pass
    with pytest.raises(UserError, match="is compressed"):
        load(tmp_path / "gz")
    cut = write_parquet(tmp_path / "cut" / "train-0.parquet", range(20))
    cut.write_bytes(cut.read_bytes()[:-50])
    with pytest.raises(UserError, match=r"train-0\.parquet is no Parquet file, or was cut"):
        load(cut.parent)
    write_tar(tmp_path / "mixed" / "train-0.tar", tar_rows(range(20)))
    write_tar(tmp_path / "mixed" / "other.tar", tar_rows(range(20)))
    with pytest.raises(UserError, match=r"'other\.tar' has no split"):
        load(tmp_path / "mixed")


def test_row_groups_that_do_not_fit_are_refused_and_few_are_held(tmp_path, monkeypatch):
    root = parquets(tmp_path / "set")
    monkeypatch.setattr(parquet, "HELD", 1)
    parquet._forget()
    data = load(root, mode="stream")
    data.inputs.rows(torch.arange(len(data)))
    assert len(parquet._groups.kept) == 1
    monkeypatch.setattr(parquet, "LARGEST_GROUP", 100)
    with pytest.raises(UserError, match="row group 0 holds"):
        load(parquets(tmp_path / "other"))


def test_a_path_without_bytes_is_not_followed(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    (tmp_path / "secret.png").write_bytes(encoded(0))
    pictures = [{"bytes": None, "path": str(tmp_path / "secret.png")}] * 10
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    pq.write_table(pa.table({"image": pa.array(pictures, kind), "label": ["a", "b"] * 5}), tmp_path / "x.parquet")
    with pytest.raises(UserError, match="there is no image"):
        load(tmp_path / "x.parquet")


def test_an_audit_of_shards_sees_their_headers_and_names(tmp_path, unskew):
    rows = [(n, encoded(int(n[:6]), 40, "JPEG") if n.endswith("png") else raw) for n, raw in tar_rows(range(60))]
    write_tar(tmp_path / "set" / "train.tar", [(n.replace("png", "jpg"), raw) for n, raw in rows])
    done = unskew(
        "audit", "set", "--representation", "file", "--representation", "dimensions", "--no-trial", "--out", "out", "--json"
    )
    assert '"file"' in done.stdout
    import polars as pl

    table = pl.read_parquet(tmp_path / "out" / "scores.parquet")
    assert table["path"][0].endswith("set/train.tar/000000.jpg")


def test_rows_of_a_folder_can_be_added_to_those_of_shards(tmp_path):
    tars = load(write_tar(tmp_path / "set" / "train.tar", tar_rows(range(20))).parent, mode="stream", holdout=0)
    for k in range(12):
        path = tmp_path / "photos" / str(k % 2) / f"{k:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded(100 + k))
    folder = load(tmp_path / "photos", mode="stream", holdout=0)
    both = union(tars, folder)
    x, fine = both.inputs.rows(torch.tensor([1, 20, 31, 2]))
    seeds = [1, 100, 111, 2]
    assert bool(fine.all())
    assert torch.equal(x, torch.from_numpy(np.stack([pixels(encoded(k)) for k in seeds])))
    raws = [Path(c).read_bytes() if isinstance(c, str) else c.read() for c in both.paths.contents([1, 20, 31, 2])]
    assert raws == [encoded(k) for k in seeds]
    assert both.paths[1] == tars.paths[1]
    assert not set(both.blocks[:20].tolist()) & set(both.blocks[20:].tolist())
    assert union(folder, load(folder)).blocks is None


def test_kept_pictures_of_shards_are_written_as_files(tmp_path, unskew):
    write_tar(tmp_path / "set" / "train.tar", tar_rows(range(40)))
    unskew("repair", "set", "--with", "inverse_frequency", "--bias", "site", "--as", "folder", "--out", "kept", "--force")
    files = sorted((tmp_path / "kept").rglob("*.png"))
    assert {p.read_bytes() for p in files} <= {encoded(k) for k in range(40)}
    assert len(files) >= 30
    assert not any(p.is_symlink() for p in files)
