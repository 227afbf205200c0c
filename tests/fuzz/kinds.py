"""The kinds of cases: what hypothesis draws for each, and how it becomes files and the words of a command."""

import json
import os
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.fuzz import templates
from tests.fuzz.damage import HOSTILE_TEXT, byte_damage, hostile_values, hurt_bytes, hurt_json, json_damage

Plan = dict[str, Any]
Build = Callable[[Plan, Path, Path], list[str]]  # plan, folder of the case, templates -> words
KINDS: dict[str, tuple[st.SearchStrategy[Plan], Build]] = {}

words = st.one_of(st.sampled_from(HOSTILE_TEXT), st.text(max_size=12))
labels = st.lists(
    st.one_of(words, st.none(), st.sampled_from(["a", "b"]), st.floats(), st.integers(-3, 10**19)), min_size=0, max_size=4
)
TRAIN = ("--model", "mlp", "train.steps=1", "train.batch=8")
LOOK = ("--no-trial", "--representation", "color:kind=mean")


def kind(**parts: st.SearchStrategy[Any]) -> Callable[[Build], Build]:
    def keep(build: Build) -> Build:
        KINDS[build.__name__] = (st.fixed_dictionaries(parts), build)
        return build

    return keep


def verb_of(plan: Plan, source: str, *more: str) -> list[str]:
    if plan.get("verb") == "train":
        return ["train", source, *TRAIN, *more, "--out", "out"]
    if plan.get("verb") == "repair":
        return ["repair", source, "--with", "inverse_frequency", *more, "--out", "w.csv", "--as", "csv"]
    if plan.get("verb") == "auto":
        return ["auto", source, *more, "train.steps=1", "--budget", "60s", "--workers", "1", "--out", "out"]
    return ["audit", source, *more, "--no-trial", "--out", "out"]


verbs = st.sampled_from(["train"] * 8 + ["audit", "repair", "auto"])  # pages take most of the time, and none of the input


def picture_file(path: Path, seed: int, side: int = 8) -> None:
    import numpy as np
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(seed).integers(0, 255, (side, side, 3), dtype=np.uint8)).save(path)


@kind(
    verb=verbs, ending=st.sampled_from(["csv", "tsv", "jsonl", "parquet"]), label=labels, site=labels, damage=st.none() | byte_damage,
    split=st.sampled_from(["", "train", "test", "test/../../esc", "test_biased", "9", "validation"]),
    path=st.sampled_from(["", "", "i.png", "\0", "a" * 400, "../i.png", "/dev/zero", "=x"]),
    named=st.sampled_from(["", "label", "label,label", "site,label"]),
)  # fmt: skip
def table(plan: Plan, root: Path, made: Path) -> list[str]:
    """A table of every format, with hostile values, splits and paths, and damaged bytes."""
    rows = 24

    def column(values: list[Any], usual: list[str]) -> list[Any]:
        return [values[k] if k < len(values) else usual[k % len(usual)] for k in range(rows)]

    picture_file(root / "i.png", 0)
    content = {"label": column(plan["label"], ["a", "b"]), "site": column(plan["site"], ["x", "y", "z"])}
    if plan["split"]:
        content["split"] = column([plan["split"]], ["train", "train", "val", "test"])
    if plan["path"]:
        content["path"] = column([plan["path"]], ["i.png"])
    name = root / f"t.{plan['ending']}"
    if plan["ending"] == "jsonl":
        lines = [{key: values[k] for key, values in content.items()} for k in range(rows)]
        name.write_text("\n".join(json.dumps(line) for line in lines))
    elif plan["ending"] == "parquet":
        import polars as pl

        texts = {key: [None if v is None else str(v) for v in values] for key, values in content.items()}
        pl.DataFrame(texts).write_parquet(name)
    else:
        import csv

        with open(name, "w", newline="", encoding="utf-8", errors="surrogatepass") as file:
            out = csv.writer(file, delimiter="\t" if plan["ending"] == "tsv" else ",")
            out.writerow(content)
            out.writerows(zip(*content.values(), strict=True))
    if plan["damage"]:
        hurt_bytes(name, plan["damage"])
    more = ["--bias", "site"] + (["--label", plan["named"]] if plan["named"] else [])
    return verb_of(plan, name.name, *more)


@kind(
    verb=verbs, x=st.sampled_from(["f4", "f8", "f2", "g", "c8", "u1", ">f4", "U3", "M8[s]", "?", "i8", "S4"]),
    damage=st.none() | byte_damage,
    y=st.sampled_from(["i8", "U2", "f8", "g", "c16", "O2", "M8[D]", "S2", "?", ">i4", "inf", "big"]), rows=st.sampled_from([0, 1, 2, 30]),
    shape=st.sampled_from([(3,), (), (0,), (2, 4, 4), (3, 8, 8), (8, 8, 3), (2, 3, 4, 4), (1, 1, 1, 1, 1)]),
    extra=st.sampled_from(["", "mean", "classes", "values_site", "aligned_site", "split", "header", "npy"]),
)  # fmt: skip
def npz(plan: Plan, root: Path, made: Path) -> list[str]:
    """An .npz of odd types and shapes, a .npy renamed, headers that promise too much, and damaged bytes."""
    import numpy as np

    rows, rng = plan["rows"], np.random.default_rng(0)
    x = (rng.random((rows, *plan["shape"])) * 5).astype(plan["x"])
    codes = np.arange(rows) % 2
    y = {"inf": codes + np.inf, "big": codes * 1e300, "O2": None}.get(plan["y"], codes)
    y = codes.astype("U1") if y is None else y.astype(plan["y"]) if plan["y"] not in ("inf", "big") else y
    arrays: dict[str, Any] = {"x": x, "y": y, "site": codes.astype("U2")}
    if plan["extra"] in ("mean", "classes", "values_site", "aligned_site"):
        arrays[plan["extra"]] = rng.random(3)
    if plan["extra"] == "split":
        arrays["split"] = np.array(["test/../../esc"] * rows)
    if plan["extra"] == "npy":
        np.save(root / "a.npy", x)
        (root / "a.npy").rename(root / "a.npz")
    else:
        np.savez(root / "a.npz", **arrays)
    if plan["extra"] == "header":
        raw = (
            (root / "a.npz")
            .read_bytes()
            .replace(f"({rows},".encode(), b"(10" + b"0" * (len(str(rows)) - 2) + b"0,"[: 2 if rows > 9 else 1])
        )
        (root / "a.npz").write_bytes(raw)
    if plan["damage"]:
        hurt_bytes(root / "a.npz", plan["damage"])
    return verb_of(plan, "a.npz", "--bias", "site")


@kind(
    verb=verbs, which=st.sampled_from(["pictures", "vectors"]), file=st.floats(0, 1), damage=byte_damage, edits=json_damage,
    how=st.sampled_from(["bytes", "bytes", "json", "missing", "empty", "ragged", "broken image", "none"]),
)  # fmt: skip
def hugging_face(plan: Plan, root: Path, made: Path) -> list[str]:
    """A saved Hugging Face data set with damaged, missing, empty or contradictory files, ragged vectors, a broken image."""
    shutil.copytree(made / plan["which"], root / "set")
    files = sorted(p for p in (root / "set").rglob("*") if p.is_file())
    chosen = files[min(int(plan["file"] * len(files)), len(files) - 1)]
    if plan["how"] == "bytes":
        hurt_bytes(chosen, plan["damage"])
    elif plan["how"] == "missing":
        shutil.rmtree(chosen.parent) if plan["file"] > 0.5 and chosen.parent != root / "set" else chosen.unlink()
    elif plan["how"] == "empty":
        chosen.write_bytes(b"")
    elif plan["how"] == "json":
        chosen = next((p for p in [chosen, *files] if p.suffix == ".json"), files[0])
        hurt_json(chosen, plan["edits"])
    elif plan["how"] in ("ragged", "broken image"):
        import datasets

        shutil.rmtree(root / "set")
        rows: dict[str, Any] = {"label": ["a", "b"] * 15}
        if plan["how"] == "ragged":
            rows["x"] = [[0.5] * (3 + k % 2) for k in range(30)]
            saved = datasets.Dataset.from_dict(rows)
        else:
            rows["image"] = [{"bytes": b"no picture", "path": None}] * 30
            saved = datasets.Dataset.from_dict(
                rows, features=datasets.Features({"image": datasets.Image(), "label": datasets.Value("string")})
            )
        datasets.disable_progress_bars()
        saved.save_to_disk(str(root / "set"))
    return verb_of(plan, "set")


def bomb(path: Path, width: int, height: int, depth: int = 1) -> None:
    """A PNG whose header promises width x height pixels, with hardly any data."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, depth, 0, 0, 0, 0)
    data = zlib.compress(bytes(min((width * depth // 8 + 1) * height, 1 << 20)))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b""))


MODES = ("1", "L", "P", "RGB", "RGBA", "LA", "CMYK", "I", "F", "I;16", "YCbCr", "HSV", "PA")


@kind(
    verb=verbs, odd=st.sampled_from(["bytes", "mode", "bomb", "empty", "text", "folder", "loop", "fifo", "none", "huge side"]),
    damage=byte_damage,
    mode=st.sampled_from(MODES), ending=st.sampled_from(["png", "jpg", "gif", "bmp", "tiff", "webp", "ppm"]),
    bad=st.sampled_from(["", "data.max_bad=0.5"]),
    name=st.sampled_from(["cat", "=cmd", "-1", "../esc", "\udcff", "a" * 200, "con", ".hidden", "<b>", "a,b", "é"]),
    more=st.sampled_from(["", "data.mode=stream", "data.size=6", "data.max_pixels=30", "data.workers=0"]),
)  # fmt: skip
def images(plan: Plan, root: Path, made: Path) -> list[str]:
    """Class folders with odd names, and images of every mode, damaged, empty, endless, enormous or not images at all."""
    import numpy as np
    from PIL import Image

    names = [plan["name"].replace("/", "_"), "dog"]
    for k in range(16):
        picture_file(root / "photos" / names[k % 2] / f"{k}.png", k)
    odd = root / "photos" / "dog" / f"odd.{plan['ending']}"
    if plan["odd"] in ("mode", "bytes"):
        grey = Image.fromarray(np.random.default_rng(1).integers(0, 255, (8, 8), dtype=np.uint8))
        mode = plan["mode"]
        try:
            grey.convert("RGBA").convert("P").convert(mode) if mode == "PA" else (
                grey if mode == "I;16" else grey.convert(mode)
            ).save(odd)
        except (OSError, ValueError, KeyError):
            grey.save(odd)
        if not odd.exists():
            grey.save(odd)
        if plan["odd"] == "bytes":
            hurt_bytes(odd, plan["damage"])
    elif plan["odd"] in ("bomb", "huge side"):
        bomb(odd.with_suffix(".png"), *((40_000, 40_000) if plan["odd"] == "bomb" else (2**31 - 1, 1)))
    elif plan["odd"] == "loop":
        odd.symlink_to(odd.name)
    elif plan["odd"] == "folder":
        odd.mkdir()
    elif plan["odd"] == "fifo":
        os.mkfifo(odd)
    elif plan["odd"] != "none":
        odd.write_bytes(b"" if plan["odd"] == "empty" else b"not a picture")
    look = ["--representation", "color:kind=mean"] if plan["verb"] == "audit" else []
    repair = {
        "repair": [
            "repair",
            "photos",
            "--with",
            "repair",
            "phi=color:kind=mean",
            "epochs=2",
            "--force",
            "--out",
            "w.csv",
            "--as",
            "csv",
        ]
    }
    given = [word for word in (plan["bad"], plan["more"]) if word]
    return [*repair[plan["verb"]], *given] if plan["verb"] == "repair" else verb_of(plan, "photos", *look, *given)


@kind(
    verb=verbs, damage=st.none() | byte_damage, label=labels, more=st.sampled_from(["", "data.mode=stream", "data.workers=0"]),
    layout=st.sampled_from(["tar", "struct", "binary"]), name=st.sampled_from(["train.tar", "train-0.tar", "x.tar", "x.tar.gz"]),
    odd=st.sampled_from(["", "", "link", "hard", "device", "up", "root", "sparse", "apart", "no picture", "json", "deep", "path", "group"]),
    place=st.sampled_from(["folder", "folder", "file", "data", "address"]),
)  # fmt: skip
def shards(plan: Plan, root: Path, made: Path) -> list[str]:
    """Tar and Parquet shards, cut and damaged, with links, devices, names that lead elsewhere, labels of every type."""
    values = [plan["label"][k] if k < len(plan["label"]) else "ab"[k % 2] for k in range(24)]
    inside = root / "set" / ("data" if plan["place"] == "data" else "")
    inside.mkdir(parents=True)
    if plan["layout"] == "tar":
        path = inside / plan["name"]
        _tar_shard(path, plan["odd"], values)
    else:
        path = inside / "train-00000-of-00001.parquet"
        _parquet_shard(path, plan["odd"], plan["layout"], values)
    if plan["damage"]:
        hurt_bytes(path, plan["damage"])
    source = {"file": str(path.relative_to(root)), "address": f"file://{root}/set"}.get(plan["place"], "set")
    return verb_of(plan, source, *([plan["more"]] if plan["more"] else []))


def _tar_shard(path: Path, odd: str, values: list[Any]) -> None:
    import io
    import tarfile

    from tests.support.shards import encoded

    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as archive:

        def add(name: str, raw: bytes, **fields: Any) -> None:
            about = tarfile.TarInfo(name)
            about.size = 0 if fields else len(raw)
            for key, value in fields.items():
                setattr(about, key, value)
            archive.addfile(about, io.BytesIO(raw))

        for k, value in enumerate(values):
            add({"up": f"../../{k}.png", "root": f"/tmp/{k}.png"}.get(odd, f"{k}.png"), encoded(k))
            deep = {"label": [[value]], "n": "[" * 50} if odd == "deep" else {"label": value}
            add(f"{k}.json", b"[" * 9999 if odd == "json" and k == 3 else json.dumps(deep).encode())
        types = {"link": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE, "device": tarfile.CHRTYPE, "sparse": tarfile.GNUTYPE_SPARSE}
        if odd in types:
            add("99.png", b"", type=types[odd], linkname="/etc/passwd")
        elif odd == "apart":
            add("0.cls", b"a")
        elif odd == "no picture":
            add("99.cls", b"a")


def _parquet_shard(path: Path, odd: str, layout: str, values: list[Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from tests.support.shards import encoded

    raws = [None if odd == "no picture" and k == 3 else encoded(k) for k in range(len(values))]
    where = "/etc/passwd" if odd == "path" else "../x.png"
    pictures = [{"bytes": None if odd == "path" else raw, "path": where} for raw in raws] if layout == "struct" else raws
    names = {"up": {"names": "a"}, "json": 3, "deep": {"names": [[1]]}}.get(odd, {"names": ["a", "b"]})
    kind = {"_type": "ClassLabel", **names} if isinstance(names, dict) else names
    about = {"huggingface": json.dumps({"info": {"features": {"label": kind}}})}
    texts = [None if value is None else str(value).encode("utf-8", "replace").decode() for value in values]
    codes = [k % 3 for k in range(len(values))] if odd in ("up", "deep", "group") else texts
    table = pa.table({"image": pictures, "label": codes}).replace_schema_metadata(about)
    pq.write_table(table, path, row_group_size=1 if odd == "group" else 10)


@kind(
    verb=verbs, answer=st.sampled_from(["refuses", "nobody", "garbage", "cut", "fails", "empty", "nothing there", "not s3"]),
    address=st.sampled_from(["s3://bucket/set", "s3://bucket", "s3://", "s3:///x", "s3://bucket/x.tar", "gs://bucket/set", "http://x/y",
                             "s3://../..", "memory://x", "file://x/y", "simplecache::s3://b/x", "S3://bucket/set"]),
)  # fmt: skip
def bucket(plan: Plan, root: Path, made: Path) -> list[str]:
    """Buckets that refuse, break off, answer with something else or do not answer, and addresses of every kind."""
    import socket
    import threading
    from http.server import BaseHTTPRequestHandler, HTTPServer

    xml = {
        "empty": b"<ListBucketResult></ListBucketResult>",
        "garbage": b"\xff<<<",
        "nothing there": b"<Error><Code>NoSuchBucket</Code></Error>",
    }
    status = {"refuses": 403, "fails": 500, "nothing there": 404, "not s3": 418}.get(plan["answer"], 200)

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = xml.get(plan["answer"], b"<Error><Code>AccessDenied</Code></Error>")
            self.send_response(status)
            self.send_header("Content-Length", str(len(body) + (500 if plan["answer"] == "cut" else 0)))
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else body)

        do_HEAD = do_PUT = do_POST = do_GET  # noqa: N815

        def log_message(self, *given: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Answer)
    port = server.server_port
    if plan["answer"] == "nobody":
        server.server_close()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
    else:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    names = {
        "ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "ACCESS_KEY_ID": "x",
        "SECRET_ACCESS_KEY": "x",
        "DEFAULT_REGION": "us-east-1",
    }
    os.environ.update({f"AWS_{name}": value for name, value in names.items()})
    os.environ["GCE_METADATA_HOST"] = f"127.0.0.1:{port}"
    return verb_of(plan, plan["address"])


SETTINGS = (
    "train.epochs", "train.steps", "train.batch", "train.checkpoint", "train.precision", "train.accumulate", "train.clip", "train.start",
    "train.log_every", "train.sampler", "train.weights", "train.tune", "optim.name", "optim.lr", "optim.momentum", "optim.betas",
    "optim.weight_decay", "optim.schedule", "select.rule", "select.every", "select.patience", "model.width", "model.depth", "data.label",
    "data.bias", "data.size", "data.max_bad", "data.max_pixels", "data.holdout", "data.noise", "data.augment", "data.keep", "data.seed",
    "data.most", "data.memory", "data.frames", "data.hide", "data.group", "data.order", "q", "method.q",
    "train", ".", "=", "data.", "nope.x",
)  # fmt: skip
METHODS = (
    "erm",
    "erm",
    "erm",
    "gce",
    "lff",
    "rubi",
    "hex",
    "group_dro",
    "jtt",
    "reweight",
    "denoise+erm",
    "a+b",
    "os.path",
    "helper.mine",
    "",
)


@kind(
    settings=st.lists(st.tuples(st.sampled_from(SETTINGS), hostile_values), min_size=1, max_size=3), method=st.sampled_from(METHODS),
    source=st.sampled_from(["toy:rows=60"] * 8 + ["toy:rows=60,seed=2", "toy:rows=1e30", "toy:rows=-1", "toy:", "toy:rows", "toy:noise=2"]),
    seed=st.sampled_from(["0"] * 8 + ["-1", "99999999999999999999", "x"]),
)  # fmt: skip
def settings(plan: Plan, root: Path, made: Path) -> list[str]:
    """Settings of every part with values of every type, on a tiny training."""
    pairs = [f"{key}={value}" for key, value in plan["settings"] if "\0" not in str(value)]
    fixed = [
        word for word in ("train.steps=1", "train.batch=8") if word.partition("=")[0] not in {p.partition("=")[0] for p in pairs}
    ]
    long = ("train.steps", "train.epochs")
    pairs = [p for p in pairs if not (p.startswith(long) and _huge(p.partition("=")[2]))]  # asking for a year of work is allowed
    method = ["--method", plan["method"]] if plan["method"] else []
    return ["train", plan["source"], "--model", "mlp", *method, *fixed, *pairs, "--seed", plan["seed"], "--out", "out"]


def _huge(text: str) -> bool:
    try:
        return abs(float(text)) > 50
    except ValueError:
        return False


@kind(
    edits=json_damage,
    text=st.none() | byte_damage,
    lines=st.lists(st.tuples(st.floats(0, 1), words), max_size=2),
    recipe=st.booleans(),
)
def suite(plan: Plan, root: Path, made: Path) -> list[str]:
    """A suite or a recipe with entries replaced, lines inserted and bytes damaged."""
    from tests.support.suites import GOOD, TABLE

    (root / "table.csv").write_text(TABLE)
    text = '[run]\nsource = "toy:rows=60"\nmethod = "erm"\nmodel = "mlp"\n[train]\nsteps = 1\n' if plan["recipe"] else GOOD
    text = text.replace("steps = 10", "steps = 1").replace("rows = 300", "rows = 60")
    lines = text.splitlines()
    for at, word in plan["lines"]:
        place = min(int(at * len(lines)), len(lines) - 1)
        key = lines[place].partition("=")[0].strip() if "=" in lines[place] else "x"
        lines[place] = f"{key} = {json.dumps(word)}"
    (root / "s.toml").write_text("\n".join(lines), encoding="utf-8", errors="replace")
    if plan["text"]:
        hurt_bytes(root / "s.toml", plan["text"])
    return ["train", "--recipe", "s.toml" if plan["recipe"] else "s.toml/toy/erm@smoke", "--out", "out"]


OUTS = (
    "/dev/null",
    "/dev/full",
    "/proc/x",
    "/",
    ".",
    "..",
    "a" * 255,
    "a" * 300,
    "x/../y",
    "\udcff",
    "f",
    "f/x",
    "d",
    "a/b/c/d",
    "-x",
    "~nobody/x",
    "l",
)
COMMANDS = {
    "audit": templates.AUDIT, "train": templates.TRAIN, "repair": templates.REPAIR, "data": ("data", "planted:rows=60"),
    "dependency": (
        "dependency", "planted:rows=60", "--phi", "input", "--model", "mlp", "train.steps=1", "repair.epochs=1", "--rates", "0.9",
    ),
    "report": ("report", "run"), "export": ("export", "run", "--as", "safetensors"), "auto": (*templates.AUTO, "--budget", "60s"),
    "bench": ("bench", "toy", "--executor", "nothing"), "evaluate": ("evaluate",),
}  # fmt: skip


@kind(
    verb=st.sampled_from(sorted(COMMANDS)), out=st.sampled_from(OUTS), ending=st.sampled_from(["", ".parquet", ".html", ".csv"])
)
def places(plan: Plan, root: Path, made: Path) -> list[str]:
    """Odd places to write to, for every verb."""
    shutil.copytree(made / "run", root / "run")
    (root / "f").write_text("a file")
    (root / "d").mkdir()
    (root / "d" / "thesis.txt").write_text("years of work")
    (root / "l").symlink_to("l")
    ending = {"repair": ".parquet", "report": ".html"}.get(plan["verb"], "") if plan["ending"] != ".csv" else plan["ending"]
    if plan["verb"] == "evaluate":
        return ["evaluate", plan["out"]]
    return [*COMMANDS[plan["verb"]], "--out", plan["out"] + ending]


@kind(given=st.lists(st.one_of(words, st.sampled_from([
    "train", "audit", "toy", "--out", "--seed", "--json", "--method", "--trust", "--bias", "explain", "list", "data", "new", "method",
    "repair", "evaluate", "report", "--split", "--as", "bench", "--seeds", "999999999999", "1..9999999999", "smoke", "pgd-table1",
    "--help", "--device", "cuda:99", "auto", "--budget", "export", "onnx",
])), min_size=1, max_size=6))  # fmt: skip
def command_line(plan: Plan, root: Path, made: Path) -> list[str]:
    """Words in any order."""
    given = [w for w in plan["given"] if "\0" not in w]
    if given[:1] in (["bench"], ["demo"]) and "--seeds" not in given:  # a bench or a demo takes minutes
        given = ["explain", *given[1:]]
    return given
