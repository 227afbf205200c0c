"""REPAIR against a dense autograd game; selection; the verb, its files and its complaints."""

import json

import numpy as np
import polars as pl
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

import unskew as package
from unskew.core.errors import UserError
from unskew.core.rng import stream
from unskew.data.table_sampler import reject
from unskew.measure import representation_bias
from unskew.records import Table
from unskew.repairs import balance, inverse_frequency, repair_weights, sampler, select
from unskew.repairs.repair import Game


def dense_game(z, y, theta, steps, batch, lr_estimator, momentum, lr_weights, seed):
    """The released code's step, written out with autograd over all rows."""
    classes = int(y.max()) + 1
    estimator = torch.nn.Linear(z.shape[1], classes).to(z.dtype)
    with torch.no_grad():
        estimator.weight.copy_(theta[:-1].T)
        estimator.bias.copy_(theta[-1])
    omega = torch.zeros(len(y), dtype=z.dtype, requires_grad=True)
    first = torch.optim.SGD(estimator.parameters(), lr=lr_estimator, momentum=momentum)
    second = torch.optim.SGD([omega], lr=lr_weights)
    onehot = F.one_hot(y, classes).T.to(z.dtype)
    done, epoch = 0, 0
    while True:
        order = torch.randperm(len(y), generator=stream(seed, "repair", epoch))
        epoch += 1
        for rows in torch.split(order, batch):
            w = omega.sigmoid()
            share = w / w.mean()
            prior = onehot @ w / w.sum()
            risk = (share[rows] * F.cross_entropy(estimator(z[rows]), y[rows], reduction="none")).mean()
            entropy = -(share[rows] * prior[y[rows]].log()).mean()
            first.zero_grad()
            second.zero_grad()
            risk.backward(retain_graph=True)
            (omega.grad,) = torch.autograd.grad(1 - risk / entropy, [omega])
            first.step()
            second.step()
            done += 1
            if done == steps:
                return omega.sigmoid().detach(), estimator


@pytest.mark.parametrize("skewed", [False, True])
def test_a_step_equals_the_dense_game(skewed):
    generator = torch.Generator().manual_seed(3)
    z = torch.rand(701, 3, generator=generator, dtype=torch.float64)
    y = torch.randint(0, 5, (701,), generator=generator)
    if skewed:
        y[:500] = 2  # one class takes several lines of the weight matrix
    game = Game(z, y, 0.1, 0.9, 30.0, seed=0)
    expected, estimator = dense_game(z, y, game.theta.clone(), 50, 64, 0.1, 0.9, 30.0, seed=0)
    done = 0
    for epoch in range(9):
        order = torch.randperm(len(y), generator=stream(0, "repair", epoch))
        for rows in torch.split(order, 64):
            if done < 50:
                game.step(game.z1[rows], y[rows], game.place[rows])
                done += 1
    assert float((expected - 0.5).abs().max()) > 0.05  # the weights have moved
    torch.testing.assert_close(game.weights(), expected, rtol=0, atol=1e-8)
    torch.testing.assert_close(game.theta[:-1].T, estimator.weight.detach(), rtol=0, atol=1e-8)


def test_weights_cut_the_bias_and_uniform_does_not():
    data = package.load("planted:rows=4000,bias=0.6,seed=1")
    z = F.one_hot(data.bias[:, 0]).float()
    w = repair_weights(z, data.y, epochs=150, lr_estimator=0.05, lr_weights=20.0)
    before = representation_bias(z, data.y, permutations=0).bias
    assert representation_bias(z, data.y, w, permutations=0).bias < before - 0.15
    for strategy in ("rank", "class_rank", "sample"):
        kept = select(w, data.y, strategy)
        assert representation_bias(z[kept], data.y[kept], permutations=0).bias < before - 0.1, strategy
    # A bias of two values and a threshold: only the rows that contradict it are left, and these it tells for certain. The card says so.
    kept = select(w, data.y, "threshold")
    assert representation_bias(z[kept], data.y[kept], permutations=0).bias > 0.9
    kept = select(w, data.y, "uniform")
    assert abs(representation_bias(z[kept], data.y[kept], permutations=0).bias - before) < 0.05


def test_interrupted_game_goes_on_to_the_same_weights(tmp_path, monkeypatch):
    monkeypatch.setattr("unskew.repairs.repair.SAVE_SECONDS", 0.0)
    generator = torch.Generator().manual_seed(0)
    z, y = torch.rand(300, 2, generator=generator), torch.randint(0, 3, (300,), generator=generator)
    whole = repair_weights(z, y, epochs=6)
    epochs = iter(range(3))

    def stop(steps, note):
        if next(epochs, None) is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        repair_weights(z, y, epochs=6, state=tmp_path / "state", advance=stop)
    assert (tmp_path / "state").is_file()
    assert torch.equal(repair_weights(z, y, epochs=6, state=tmp_path / "state"), whole)


def test_selection_by_hand():
    w, y = torch.tensor([0.9, 0.5, 0.49, 0.1, 0.8, 0.7]), torch.tensor([0, 0, 0, 1, 1, 1])
    assert select(w, y, "threshold").tolist() == [0, 1, 4, 5]  # 0.5 itself is kept, as in the paper
    assert select(w, y, "rank").tolist() == [0, 4, 5]
    assert select(w, y, "class_rank", keep=0.34).tolist() == [0, 4]
    assert select(w, y, "class_rank", keep=0.1).tolist() == [0, 4]  # a class keeps one row at least
    assert len(select(w, y, "uniform")) == 3
    many = torch.full((20_000,), 0.3)
    share = len(select(many, torch.zeros(20_000), "sample")) / 20_000
    assert abs(share - 0.3) < 4 * (0.21 / 20_000) ** 0.5
    with pytest.raises(UserError, match="must be one of"):
        select(w, y, "best")


@given(
    st.integers(0, 2**31),
    st.integers(2, 3),
    st.integers(1, 6),
    st.sampled_from([1.0, 1.5, 2.0, 3.0]),
)
def test_balanced_subsets_keep_the_ratio(seed, values, labels, alpha):
    rng = np.random.default_rng(seed)
    y = torch.from_numpy(rng.random((150, labels)) < rng.uniform(0.1, 0.7, labels)).long()
    bias = torch.from_numpy(rng.integers(0, values, 150))
    bias[rng.random(150) < 0.1] = -1
    bias[torch.from_numpy(rng.random(150) < 0.4) & (y[:, 0] == 1) & (bias > 0)] = 0
    found = balance(y, bias, alpha=alpha, seed=seed % 100)
    before = np.array([[int(((y[:, k] == 1) & (bias == v)).sum()) for v in range(values)] for k in range(labels)])
    kept = found.index
    after = np.array([[int(((y[kept, k] == 1) & (bias[kept] == v)).sum()) for v in range(values)] for k in range(labels)])
    both = (before > 0).all(1)
    assert (after[both] > 0).all()  # no label loses a value
    assert set((bias == -1).nonzero().flatten().tolist()) <= set(kept.tolist())
    assert sorted(found.one_sided) == [k for k in range(labels) if before[k].sum() and not both[k]]
    reached = max([after[k].max() / after[k].min() for k in range(labels) if both[k]], default=1.0)
    assert found.reached == pytest.approx(reached)
    if alpha >= 2 and labels <= 3 and before[both].min(initial=99) >= 8:
        assert reached <= alpha  # enough rows to choose from: it must be met
    if found.reached <= alpha:
        for k in range(labels):
            if both[k]:
                for v in range(values):
                    for other in range(values):
                        assert after[k, v] <= alpha * after[k, other] + 1e-9


@given(st.integers(0, 2**31), st.sampled_from([1.0, 1.3, 2.0]))
def test_one_class_per_row_is_always_met_and_drops_no_more_than_needed(seed, alpha):
    rng = np.random.default_rng(seed)
    y = torch.from_numpy(rng.integers(0, 3, 200))
    bias = torch.from_numpy((rng.random((200, 2)) < 0.3).astype("int64"))  # two columns: four combinations
    code = bias[:, 0] * 2 + bias[:, 1]
    before = np.array([[int(((y == k) & (code == v)).sum()) for v in range(4)] for k in range(3)])
    found = balance(y, bias, alpha=alpha)
    for k in range(3):
        if (before[k] > 0).all():
            after = [int(((y[found.index] == k) & (code[found.index] == v)).sum()) for v in range(4)]
            assert after == [min(n, int(alpha * before[k].min() + 1e-9)) for n in before[k]]


def test_alpha_that_cannot_be_met_says_the_ratio_reached():
    # Label 0 has two rows with value 0 and one with value 1, and each of the two is the only one of another label.
    y = torch.tensor([[1, 1, 0], [1, 0, 1], [1, 1, 1]])
    found = balance(y, torch.tensor([0, 0, 1]), alpha=1.0)
    assert found.reached == 2
    assert found.ratios == (2, 1, 1)
    assert len(found.index) == 3


def test_inverse_frequency_gives_every_group_the_same_total():
    group = torch.tensor([0] * 50 + [1] * 5 + [3] * 20 + [-1] * 4)
    w = inverse_frequency(group)
    totals = [float(w[group == g].sum()) for g in (0, 1, 3)]
    assert totals == pytest.approx([25.0, 25.0, 25.0])
    assert float(w[group >= 0].mean()) == pytest.approx(1)
    assert w[-1] == 1


def test_samplers_draw_by_weight_and_share_over_processes():
    weight = torch.tensor([0.0, 1.0, 3.0, 0.5])
    frame = pl.DataFrame({"index": [10, 11, 12, 13], "split": ["train"] * 4, "weight": weight.numpy()})
    table = Table(frame)
    for kind in ("weighted", "rejection"):
        drawn = list(sampler(table, num_samples=30_000, kind=kind, seed=1))
        share = torch.tensor([drawn.count(i) for i in (10, 11, 12, 13)]) / 30_000
        torch.testing.assert_close(share, weight / weight.sum(), rtol=0, atol=0.012)
    whole = list(sampler(table, num_samples=10, world=1, rank=0))
    parts = [list(sampler(table, num_samples=10, world=2, rank=r)) for r in (0, 1)]
    assert [i for pair in zip(*parts, strict=True) for i in pair] == whole
    again = sampler(table, num_samples=10)
    again.set_epoch(1)
    assert list(again) != whole
    assert set(sampler(table, num_samples=50, within_split=True)) <= {1, 2, 3}
    loader = torch.utils.data.DataLoader(list(range(20)), batch_size=5, sampler=sampler(table, num_samples=20))
    assert {int(i) for batch in loader for i in batch} <= {11, 12, 13}


def test_rejection_accepts_with_the_weight():
    weight = torch.tensor([0.001, 0.002])
    counts = reject(weight, 30_000, torch.Generator().manual_seed(0)).bincount()
    assert float(counts[1] / counts[0]) == pytest.approx(2, rel=0.06)


SOURCE = "colored-mnist:base=digits,ratio=0.95"


def test_the_verb_writes_a_table_that_training_takes(unskew, tmp_path):
    told = json.loads(unskew("repair", SOURCE, "--with", "repair", "lr_estimator=0.05", "--out", "w.parquet", "--json").stdout)
    assert told["bias_after"] < told["bias_before"]
    assert 0 < told["kept"] < told["rows"] == 1442  # train and val; the test split is the set's own and unbiased
    table = Table.read(tmp_path / "w.parquet")
    assert table.frame.columns == ["index", "label", "split", "weight", "keep", "score", "noisy"]
    assert table.made_by["fingerprint"] == package.load(SOURCE).fingerprint
    assert table.made_by["bias_before"] == told["bias_before"]
    assert int(table.frame["keep"].sum()) == told["kept"]
    again = unskew("repair", SOURCE, "--with", "repair", "lr_estimator=0.05", "--out", "w.parquet")
    assert "nothing to do" in again.stderr
    assert "choose another --out" in unskew("repair", SOURCE, "lr_estimator=0.06", "--out", "w.parquet", expect=2).stderr
    unskew("train", SOURCE, "--weights", "w.parquet", "train.epochs=1", "--out", "run")
    other = unskew("train", SOURCE + ",seed=1", "--weights", "w.parquet", "--out", "other", expect=2).stderr
    assert "made for another source" in other
    assert len(other.splitlines()) == 1
    assert not (tmp_path / "other").exists()
    assert "<svg" in (tmp_path / "w.html").read_text()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run", "w.html", "w.json", "w.parquet"]


def test_kept_images_as_folder_and_csv(unskew, folder, tmp_path):
    done = unskew("repair", folder, "--with", "repair", "epochs=3", "strategy=class_rank", "--as", "folder", "--out", "kept")
    assert "kept" in done.stdout
    links = [p for p in (tmp_path / "kept").rglob("*.png")]
    assert len(links) == 12
    assert all(p.is_symlink() and p.resolve().is_relative_to(folder.resolve()) for p in links)
    assert len(package.load(str(tmp_path / "kept"))) == 12  # a source again
    unskew("repair", folder, "--with", "repair", "epochs=3", "strategy=class_rank", "--as", "folder", "--copy", "--out", "copies")
    assert not any(p.is_symlink() for p in (tmp_path / "copies").rglob("*.png"))
    unskew("repair", folder, "--with", "inverse_frequency", "by=class", "--as", "csv", "--out", "w.csv")
    frame = pl.read_csv(tmp_path / "w.csv")
    assert {"index", "path", "weight", "keep"} <= set(frame.columns)
    assert "ends in .csv" in unskew("repair", folder, "--as", "csv", "--out", "w.parquet", expect=2).stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--with", "repare"], "no repair 'repare'; did you mean 'repair'"),
        (["--with", "repair", "keeps=0.3"], "unknown setting 'keeps'"),
        (["--with", "repair", "train.epochs=3"], "trains no network"),
        (["--with", "repair", "strategy=threshold", "threshold=1.5", "epochs=1"], "threshold=1.5 drops all"),
        (["--with", "repair", "strategy=rank", "keep=0.001", "epochs=1"], "leaves no row of class"),
        (["--with", "repair", "phi=colour"], "no representation 'colour'"),
        (["--with", "balance", "alpha=0.5"], "must be at least 1"),
        (["--with", "gradients", "run=nowhere"], "is not a run"),
        (["--with", "gradients", "lambda_=-1"], "must not be negative"),
        (["--with", "aflite", "tau=0", "size=0.001", "slice=1", "phi=color", "models=2"], "leaves no row of class"),
        (["--splits", "holdout"], "no split 'holdout'"),
        (["--out", "weights.txt"], "ends in .parquet"),
    ],
)
def test_bad_requests_are_told_in_one_line(unskew, tmp_path, words, told):
    done = unskew("repair", SOURCE, *words, expect=2)
    assert told in done.stderr
    assert len([line for line in done.stderr.splitlines() if line.startswith("unskew:")]) == 1
    assert "Traceback" not in done.stderr
    assert not [p for p in tmp_path.iterdir() if p.suffix in (".parquet", ".html", ".json")]


def test_what_cannot_be_decoded_is_dropped_and_counted(unskew, folder, tmp_path):
    (folder / "cat" / "3.png").write_bytes(b"no image")
    told = json.loads(
        unskew(
            "repair", folder, "data.max_bad=0.1", "--with", "inverse_frequency", "by=class", "--out", "w.parquet", "--json"
        ).stdout
    )
    assert told["unreadable"] == 1
    frame = Table.read(tmp_path / "w.parquet").frame
    broken = frame.filter(pl.col("path").str.ends_with("cat/3.png"))
    assert broken["weight"].to_list() == [0.0]
    assert frame["keep"].sum() == len(frame) - 1


def test_folders_of_classes_whose_names_collide_are_refused(unskew, folder, tmp_path):
    rows = [{"file_name": str(p), "label": ("a/b", "a_b")[k % 2]} for k, p in enumerate(sorted(folder.rglob("*.png")))]
    pl.DataFrame(rows).write_csv(tmp_path / "t.csv")
    told = unskew("repair", "t.csv", "--with", "inverse_frequency", "by=class", "--as", "folder", "--out", "f", expect=2).stderr
    assert "cannot be the name of a folder of its own" in told
    assert not (tmp_path / "f").exists()


def test_a_killed_folder_goes_on_and_leaves_nothing(unskew, folder, tmp_path, monkeypatch):
    words = {"out": tmp_path / "f", "how": "folder", "settings": {"epochs": 4, "strategy": "class_rank"}}
    monkeypatch.setattr("unskew.repairs.repair.SAVE_SECONDS", 0.0)
    monkeypatch.setattr("unskew.verbs.repair.write_images", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        package.repair(str(folder), "repair", **words)
    assert not (tmp_path / "f").exists()
    assert list(tmp_path.glob(".f.*.state"))
    (tmp_path / ".f.1.part").mkdir()  # as a killed process leaves it
    monkeypatch.undo()
    package.repair(str(folder), "repair", **words)
    assert {p.name for p in (tmp_path / "f").iterdir()} >= {"weights.parquet", "weights.json", "weights.html", "train"}
    assert not list(tmp_path.glob(".f.*"))


def test_an_unbiased_small_set_keeps_its_classes():
    generator = torch.Generator().manual_seed(0)
    z, y = torch.rand(300, 3, generator=generator), torch.arange(300) % 2
    from unskew.repairs.repair import Config, schedule_for

    epochs, rate = schedule_for(300, Config())
    w = repair_weights(z, y, epochs=epochs // 4, lr_weights=rate * 4)
    means = [float(w[y == c].mean()) for c in (0, 1)]
    assert abs(means[0] - means[1]) < 0.25
