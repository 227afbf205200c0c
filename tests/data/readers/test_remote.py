"""Sources in a bucket, against a server on loopback: the rows are those of the same files on disk, and what a store refuses is one line."""

import socket
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import torch

from tests.conftest import write_image
from tests.support.shards import tar_rows, write_parquet, write_tar
from unskew.core.errors import UserError
from unskew.data import load
from unskew.data.loader import Loader
from unskew.data.readers.stores import plain_path
from unskew.data.samplers import Sampler

s3fs = pytest.importorskip("s3fs")
moto = pytest.importorskip("moto.server")
pytestmark = [pytest.mark.usefixtures("own_cache"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture
def credentials(monkeypatch):
    s3fs.S3FileSystem.clear_instance_cache()
    for name, value in (("ACCESS_KEY_ID", "x"), ("SECRET_ACCESS_KEY", "x"), ("DEFAULT_REGION", "us-east-1")):
        monkeypatch.setenv(f"AWS_{name}", value)
    yield
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def bucket(credentials, monkeypatch):
    """A bucket on loopback: a function that copies a folder into it, and returns its address."""
    import boto3

    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    address = "http://{}:{}".format(*server.get_host_and_port())
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    urllib.request.urlopen(f"{address}/moto-api/reset", data=b"")  # its buckets outlive a server
    client = boto3.client("s3", endpoint_url=address)
    client.create_bucket(Bucket="photos")

    def copy(folder: Path, name: str = "set") -> str:
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            client.put_object(Bucket="photos", Key=f"{name}/{path.relative_to(folder).as_posix()}", Body=path.read_bytes())
        return f"s3://photos/{name}"

    copy.client = client
    yield copy
    server.stop()


def same_rows(near, far):
    assert len(near) == len(far)
    assert torch.equal(near.y, far.y)
    assert torch.equal(near.split, far.split)
    assert near.classes == far.classes
    for rows in torch.arange(len(near)).split(7):
        for a, b in zip(near.inputs.rows(rows), far.inputs.rows(rows), strict=True):
            assert torch.equal(a, b)


def shards(root: Path) -> Path:
    write_tar(root / "train-0.tar", tar_rows(range(20)))
    write_tar(root / "test-0.tar", tar_rows(range(20, 30)))
    return root


def tables(root: Path) -> Path:
    pytest.importorskip("pyarrow")
    write_parquet(root / "data" / "train-0.parquet", range(20))
    write_parquet(root / "data" / "test-0.parquet", range(20, 30))
    return root


def folders(root: Path) -> Path:
    for k in range(24):
        write_image(root / ("train" if k < 16 else "test") / ("cat" if k % 2 else "dog") / f"{k}.png", (k, 60, 60), seed=k)
    return root


def listed(root: Path) -> Path:
    folders(root)
    names = sorted(p.relative_to(root).as_posix() for p in root.rglob("*.png"))
    lines = [f"{name},{k % 2},{'xyz'[k % 3]}" for k, name in enumerate(names)]
    (root / "metadata.csv").write_text("\n".join(["file_name,label,site", *lines]))
    return root


@pytest.mark.parametrize("mode", ["memory", "stream"])
@pytest.mark.parametrize("make", [shards, tables, folders, listed])
def test_a_bucket_has_the_rows_of_the_same_files_on_disk(tmp_path, bucket, make, mode):
    bias = () if make is folders else ("site",)
    near = load(make(tmp_path / "set"), mode=mode, bias=bias)
    far = load(bucket(tmp_path / "set"), mode=mode, bias=bias)
    same_rows(near, far)
    assert far.source == "s3://photos/set"
    assert far.fingerprint == near.fingerprint
    assert far.paths[0] == near.paths[0].replace(str(tmp_path / "set"), "s3://photos/set")


@pytest.mark.parametrize("make", [shards, tables, folders])
def test_workers_fetch_what_they_decode(tmp_path, bucket, make):
    near, far = load(make(tmp_path / "set"), mode="stream"), load(bucket(tmp_path / "set"), mode="stream")
    far.inputs.rows(torch.arange(3))  # this process has used the store before its workers are forked
    batches = []
    for data, workers in ((near, 0), (far, 2)):
        stream = Loader(data, Sampler(data.rows("train"), 8, 0, blocks=data.blocks), workers=workers).batches()
        batches.append([next(stream)[0] for _ in range(3)])
        stream.close()
    for a, b in zip(*batches, strict=True):
        assert torch.equal(a.x, b.x)


def test_a_saved_hugging_face_data_set_is_copied_and_mapped(tmp_path, bucket):
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    from tests.support.shards import encoded

    kinds = datasets.Features({"image": datasets.Image(), "label": datasets.Value("string")})
    rows = {"image": [{"bytes": encoded(k), "path": None} for k in range(20)], "label": ["a", "b"] * 10}
    datasets.Dataset.from_dict(rows, features=kinds).save_to_disk(str(tmp_path / "set"))
    near, far = load(tmp_path / "set"), load(bucket(tmp_path / "set"))
    same_rows(near, far)
    assert far.name == "set"
    assert far.source == "s3://photos/set"


def test_a_changed_object_is_noticed(tmp_path, bucket):
    address = bucket(shards(tmp_path / "set"))
    first = load(address)
    write_tar(tmp_path / "set" / "test-0.tar", tar_rows(range(40, 50)))
    bucket(tmp_path / "set")
    assert load(address).fingerprint != first.fingerprint


def test_what_is_not_there_is_one_line(tmp_path, bucket):
    with pytest.raises(UserError, match=r"s3://nothing/set: there is (nothing|no such bucket)"):
        load("s3://nothing/set")
    with pytest.raises(UserError, match=r"s3://photos/none: there is nothing"):
        load("s3://photos/none")
    write_tar(tmp_path / "cut" / "train.tar", tar_rows(range(20)))
    path = tmp_path / "cut" / "train.tar"
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(UserError, match=r"s3://photos/cut/train\.tar .*cut"):
        load(bucket(tmp_path / "cut", "cut"))
    data = load(bucket(shards(tmp_path / "set")), mode="stream")
    bucket.client.delete_object(Bucket="photos", Key="set/train-0.tar")
    with pytest.raises(UserError, match="there is no such bucket or object"):  # never a picture that cannot be decoded
        data.inputs.rows(torch.arange(20))


class Refusing(BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
        self.send_response(403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *words):
        pass


def test_a_bucket_that_refuses_is_one_line_and_nothing_is_left(tmp_path, credentials, unskew):
    server = HTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environment = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}"}
    done = unskew("train", "s3://photos/set", "--model", "mlp", "--out", "out", expect=2, env=environment)
    server.shutdown()
    server.server_close()
    assert done.stderr.startswith("unskew: s3://photos/set: the store refuses")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_an_endpoint_that_nobody_answers_is_one_line(tmp_path, credentials, unskew):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done = unskew("audit", "s3://photos/set", "--out", "out", expect=2, env={"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"})
    assert done.stderr.startswith("unskew: s3://photos/set: the store does not answer")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_addresses_of_this_machine(tmp_path):
    folder = folders(tmp_path / "my set")
    assert load(f"file://{str(folder).replace(' ', '%20')}").fingerprint == load(folder).fingerprint
    for address, match in (
        ("http://x/y", "cannot read http://"),
        ("github://a/b", "cannot read github"),
        ("file://host/x", "three slashes"),
    ):
        with pytest.raises(UserError, match=match):
            plain_path(address)


def test_verbs_on_a_bucket(tmp_path, bucket, unskew):
    address = bucket(shards(tmp_path / "set"))
    unskew("train", address, "--model", "mlp", "train.steps=2", "train.batch=8", "data.mode=stream", "--out", "run")
    assert "of 10 predictions" in unskew("evaluate", "run").stdout  # the rows of test-0.tar
    unskew("audit", address, "--representation", "file", "--no-trial", "--slices", "0", "--out", "audit")
    assert (tmp_path / "audit" / "audit.json").is_file()
