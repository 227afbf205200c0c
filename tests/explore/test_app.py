"""The explorer through its application: filters against plain counting, tags against the truth, figures against the command line."""

import json
import threading

import numpy as np
import polars as pl
import pytest
from PIL import Image
from sklearn.metrics import roc_auc_score

import unskew
from unskew.data.sources import load
from unskew.data.tags import tags_path
from unskew.explore.explorer import Explorer
from unskew.explore.opened import open_place
from unskew.records import Table


def ready(client):
    client.explorer.looks.start()
    client.explorer.looks.wait(300)
    client.explorer.looks._thread.join(300)
    return client


def test_thirty_marks_and_ten_answers_find_the_watermark_and_measure_it_as_the_command_line_does(
    photos, explore, unskew, tmp_path
):
    root, truth = photos
    client = ready(explore(root))
    data = client.explorer.opened.data
    has = np.array([truth[name] for name in data.file_names])
    rng, clicks = np.random.default_rng(1), 30
    client.post("tag", {"tag": "watermark", "rows": rng.choice(np.flatnonzero(has), 30, replace=False).tolist(), "value": True})
    asked = client.post("spread", {"tag": "watermark"})["ask"]
    while clicks < 40:
        for row in asked:
            client.post("tag", {"tag": "watermark", "rows": [row["id"]], "value": bool(has[row["id"]])})
        clicks += len(asked)
        spread = client.post("spread", {"tag": "watermark"})
        asked = spread["ask"]
    assert clicks == 40
    assert spread["marked"] == 40
    table = pl.read_parquet(tags_path(str(root)))
    sure = table["watermark certainty"].to_numpy()
    p = np.where(table["watermark"].to_numpy() == "yes", sure, 1 - sure)
    hand = table["watermark by hand"].is_not_null().to_numpy()
    assert int(hand.sum()) == 40
    assert roc_auc_score(has, p) >= 0.95
    assert roc_auc_score(has[~hand], p[~hand]) >= 0.95  # on the rows that nobody marked, too
    assert "fine detail" in spread["read_from"][0]["what"]
    found = client.get("measure/watermark").json()
    said = json.loads(
        unskew(
            "audit",
            root,
            "--bias",
            "watermark",
            "--representation",
            "color",
            "--no-trial",
            "--slices",
            "0",
            "--json",
            "--out",
            "audit",
        ).stdout
    )["columns"][0]
    assert found["leakage"] == said["leakage"]
    assert found["association"] == said["association"]
    assert found["leakage"]["dataset"] > 0.7
    simple = found["models"][0]
    assert sum(cell["n"] for cell in simple["groups"]) == len(data)


def test_a_filter_counts_what_passes_the_others(photos, explore):
    root, _ = photos
    client = explore(root)
    data = client.explorer.opened.data
    label = np.array([data.classes[c] for c in data.y.tolist()])
    split = np.array([data.splits[c] for c in data.split.tolist()])
    where = {"label": {"in": ["temple"]}, "split": {"in": ["train", "val"]}}
    found = client.post("view", {"where": where})
    assert found["rows"] == int(((label == "temple") & np.isin(split, ["train", "val"])).sum())
    columns = {one["name"]: one["values"] for one in found["columns"]}
    by_label = dict(zip(columns["label"], found["counts"]["label"], strict=True))  # the filter on the label itself does not count
    assert by_label == {name: int(((label == name) & np.isin(split, ["train", "val"])).sum()) for name in ("flower", "temple")}
    by_split = dict(zip(columns["split"], found["counts"]["split"], strict=True))
    assert by_split == {name: int(((label == "temple") & (split == name)).sum()) for name in ("test", "train", "val")}
    rows = client.get(f"rows?view={found['view']}&from=2&count=3").json()["rows"]
    passing = np.flatnonzero((label == "temple") & np.isin(split, ["train", "val"]))
    assert [row["id"] for row in rows] == passing[2:5].tolist()
    one = client.post("view", {"where": {"path": {"contains": "LE/0001"}}})
    assert one["rows"] == sum("le/0001" in name for name in data.file_names)


def test_a_brush_on_the_map_filters_the_grid_and_other_filters_dim_its_points(photos, explore):
    root, _ = photos
    client = ready(explore(root))
    raw = client.get("map").content
    n = len(raw) // 12
    ids, xy = np.frombuffer(raw, "<u4", n), np.frombuffer(raw, "<f4", 2 * n, 4 * n).reshape(n, 2)
    assert sorted(ids.tolist()) == list(range(len(client.explorer.opened.data)))
    assert float(xy.min()) == 0.0
    assert float(xy.max()) == 1.0
    where = {"map x": {"between": [0.2, 0.6]}, "map y": {"between": [0.1, 0.7]}}
    inside = (xy[:, 0] >= 0.2) & (xy[:, 0] <= 0.6) & (xy[:, 1] >= 0.1) & (xy[:, 1] <= 0.7)
    assert client.post("view", {"where": where})["rows"] == int(inside.sum()) > 0
    import base64

    found = client.post("view", {"where": {**where, "label": {"in": ["temple"]}}})
    bits = np.unpackbits(np.frombuffer(base64.b64decode(found["bits"]), np.uint8))[:n]
    data = client.explorer.opened.data
    assert bits.tolist() == (data.y[ids.astype(np.int64)] == data.classes.index("temple")).long().tolist()


def test_without_write_nothing_is_written(photos, explore):
    root, _ = photos
    client = explore(root, write=False)
    for path, body in {"tag": {"tag": "t", "value": True}, "drop": {}, "relabel": {"label": "temple"}}.items():
        assert "--write" in client.post(path, {**body, "rows": [0]}, expect=403)["error"]
    assert not tags_path(str(root)).exists()
    assert sorted(p.name for p in root.parent.iterdir()) == ["photos"]


def test_writing_touches_one_table_and_leaves_no_trace_beside_it(photos, explore):
    root, _ = photos
    client = ready(explore(root))
    before = {p: p.stat().st_mtime_ns for p in root.rglob("*")}
    client.post("tag", {"tag": "t", "rows": [0, 1, 2], "value": True})
    client.post("spread", {"tag": "t"})
    client.post("drop", {"rows": [5]})
    client.post("relabel", {"rows": [6], "label": "temple"})
    client.get("measure/t")
    assert {p: p.stat().st_mtime_ns for p in root.rglob("*")} == before
    assert sorted(p.name for p in root.parent.iterdir()) == ["cache", "photos", "photos.tags.parquet"]


def test_two_explorers_and_many_threads_lose_no_mark(photos, explore):
    root, _ = photos
    clients = [explore(root), explore(root)]  # two processes would hold two of these
    errors = []

    def work(client, first):
        try:
            for k in range(first, 40, 4):
                client.post("tag", {"tag": f"tag{first % 2}", "rows": [k], "value": k % 3 == 0})
        except AssertionError as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(clients[k % 2], k)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for client in clients:
        seen = {tag["name"]: (tag["yes"], tag["no"]) for tag in client.get("about").json()["tags"]}
        expected = {f"tag{b}": [k % 3 == 0 for k in range(40) if k % 2 == b] for b in (0, 1)}
        assert seen == {name: (sum(v), len(v) - sum(v)) for name, v in expected.items()}


def test_a_mark_made_while_a_tag_is_spread_is_kept(photos, explore):
    root, _ = photos
    client = ready(explore(root))
    client.post("tag", {"tag": "t", "rows": [0, 1, 2], "value": True})
    client.explorer.tags.mark("t", [10], False)
    client.explorer.tags.spread("t", np.arange(20), np.full(20, 0.9))
    said = client.explorer.tags.frame()["t"].to_list()
    assert said[:12] == ["yes"] * 10 + ["no", "yes"]
    assert said[20] is None


def test_dropped_and_relabelled_rows_are_what_train_takes(photos, explore, tmp_path):
    root, _ = photos
    client = explore(root)
    data = load(str(root))
    train = data.rows("train").tolist()
    gone, changed = train[:4], [k for k in train if data.classes[int(data.y[k])] == "flower"][5:8]
    client.post("drop", {"rows": gone})
    client.post("relabel", {"rows": changed, "label": "temple"})
    path = tags_path(str(root))
    run = unskew.train(
        str(root),
        "erm",
        model="linear",
        out=tmp_path / "run",
        weights=path,
        settings={"train.steps": 2, "train.batch": 8, "data.size": 32},
    )
    assert "3 labels changed by hand" in run.config["data"]["notes"]
    used = Table.read(tmp_path / "run" / "trained.parquet").index.tolist()
    assert not set(used) & set(gone)
    assert set(used) | set(gone) == set(train)
    again = load(str(root), relabel=str(path))
    assert (again.y != data.y).nonzero().flatten().tolist() == changed
    client.post("relabel", {"rows": changed, "label": None})
    client.post("drop", {"rows": gone, "value": False})
    assert "relabelled" not in Table.read(path).made_by
    assert Table.read(path).column("weight").min() == 1


def test_a_tag_is_a_bias_column_of_every_verb_by_its_plain_name(photos, explore, tmp_path):
    root, truth = photos
    client = explore(root)
    data = client.explorer.opened.data
    for value in (True, False):
        client.post(
            "tag", {"tag": "mark", "rows": [k for k, n in enumerate(data.file_names) if truth[n] is value], "value": value}
        )
    found = load(str(root), bias="mark")
    assert found.bias_names == ("mark",)
    assert [found.bias_values[0][c] == "yes" for c in found.bias[:, 0].tolist()] == [truth[n] for n in found.file_names]
    assert load(str(root), bias="mark", size=32).bias.equal(found.bias)  # the same rows, read in another way
    settings = {"train.steps": 2, "train.batch": 8, "data.bias": "mark", "data.size": 32}
    run = unskew.train(str(root), "erm", model="linear", out=tmp_path / "run", settings=settings)
    assert unskew.evaluate(run).groups.bias_names == ("mark",)
    plain = unskew.train(str(root), "erm", model="linear", out=tmp_path / "plain", settings={**settings, "data.bias": ""})
    by_tag = unskew.evaluate(plain, bias=["mark"])
    assert by_tag.groups.bias_names == ("mark",)
    assert unskew.evaluate(plain).groups.bias_names == ()
    other = explore(tmp_path / "plain")  # the run's folder shows the same rows and tags
    assert [tag["name"] for tag in other.get("about").json()["tags"]] == ["mark"]
    groups = other.get("measure/mark").json()["models"][0]["groups"]
    judged = {i for path in (tmp_path / "plain" / "predictions").glob("*.parquet") for i in Table.read(path).index.tolist()}
    pairs = [(data.classes[int(data.y[k])], "yes" if truth[data.file_names[k]] else "no") for k in judged]
    assert {(g["y"], g["bias"]): g["n"] for g in groups if g["n"]} == {pair: pairs.count(pair) for pair in set(pairs)}


@pytest.mark.parametrize(
    "name", ["", "a b", "a,b", "x:y", "../x", "weight", "relabel", "label", "temple", "t" * 41, "a/b", 7, None]
)
def test_a_tag_needs_a_name_that_can_follow_bias(photos, explore, name):
    root, _ = photos
    assert explore(root).post("tag", {"tag": name, "rows": [0], "value": True}, expect=400)["error"]


@pytest.mark.parametrize("rows", [[], [-1], [10**6], ["0"], [0.5], None, [True], {"a": 1}])
def test_rows_must_be_sample_ids(photos, explore, rows):
    root, _ = photos
    assert explore(root).post("tag", {"tag": "t", "rows": rows, "value": True}, expect=400)["error"]


@pytest.mark.parametrize(
    "where",
    [
        {"nothing": {"in": ["a"]}},
        {"label": {"between": [0, 1]}},
        {"label": 3},
        {"label": {}},
        {"path": {"between": [1, 2]}},
        {"label": {"like": "x"}},
    ],
)
def test_a_condition_that_makes_no_sense_is_one_line(photos, explore, where):
    root, _ = photos
    error = explore(root).post("view", {"where": where}, expect=400)["error"]
    assert error
    assert "\n" not in error


def test_a_file_outside_the_source_is_not_opened(tmp_path, own_cache, explore):
    (tmp_path / "set").mkdir()
    for k in range(12):
        Image.new("RGB", (16, 16), (k * 20, 0, 0)).save(tmp_path / f"{k}.png")
    rows = "".join(f"../{k}.png,{'ab'[k % 2]}\n" for k in range(12))
    (tmp_path / "set" / "rows.csv").write_text("path,label\n" + rows)
    client = explore(tmp_path / "set" / "rows.csv")
    assert "outside" in client.get("large/0", expect=403).json()["error"]
    assert client.get("small/0").headers["content-type"] == "image/png"


def test_hostile_names_are_text(tmp_path, own_cache, explore):
    name = "<img src=x onerror=alert(1)>"
    for k in range(6):
        for c in (name, "b"):
            (tmp_path / "set" / c).mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (16, 16), (k * 20, 0, 0)).save(tmp_path / "set" / c / f"{k}.png")
    client = explore(tmp_path / "set")
    assert client.get("about").headers["content-type"] == "application/json"
    assert name in client.get("about").json()["classes"]


def test_explorer_has_no_place_for_tags_of_data_without_one(tmp_path, own_cache):
    from unskew.core.errors import UserError

    opened = open_place("toy")
    assert Explorer.of(opened).tags.path.parent == tmp_path / "cache" / "tags"
    with pytest.raises(UserError, match="unknown source"):
        open_place("nothing-here")
