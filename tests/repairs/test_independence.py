"""The repair independence: a table whose draws make colour useless, without looking at a colour label."""

import torch

import unskew as package
from unskew.parts.opinion import opinion_of
from unskew.records import Table
from unskew.repairs.independence import tempered
from unskew.stats.independence import effective_rows

SOURCE = "colored-mnist:base=digits,digits=3,5,8,ratio=0.9"
QUICK = {"steps": 60, "folds": 2}


def test_drawn_rows_have_every_colour_in_every_class(tmp_path, own_cache):
    found = package.repair(SOURCE, "independence", out=tmp_path / "w.parquet", settings=QUICK)
    data, table = package.load(SOURCE), Table.read(tmp_path / "w.parquet")
    assert (found.use, found.change) == ("chance", "removed")
    assert found.measured[0].after.bias < 0.25 * found.measured[0].before.bias
    weight, rows = table.column("weight"), table.index
    shares = torch.zeros(9, dtype=torch.float64).index_add_(0, data.group[rows], weight).view(3, 3)
    shares = shares / shares.sum(1, keepdim=True)
    assert float(shares.diagonal().max()) < 0.6  # 0.9 before
    assert found.figures["effective_rows"] > 30
    assert found.effective == found.figures["effective_rows"]
    # The networks of the reference lie beside the table, and their labels did not include the colour.
    assert (tmp_path / "w-model1" / "done.json").is_file()


def test_several_labels_have_one_raked_weight(tmp_path, own_cache, monkeypatch):
    monkeypatch.setattr("unskew.training.reference.linear_features", _pixels)
    found = package.repair("tiles:base=digits,rows=400", "independence", out=tmp_path / "w.parquet", settings=QUICK, force=True)
    weight = found.table.column("weight")
    assert bool((weight >= 0).all())
    assert float(weight.mean()) > 0


def test_a_layer_of_features_is_asked_for_further_shortcuts(tmp_path, own_cache, monkeypatch):
    """Where the reference can be fitted again, what is left once the first shortcut is balanced is looked for (parts.opinion)."""
    seen = []

    def spy(*args, features=None, **more):
        seen.append(features)
        return opinion_of(*args, features=features, **more)

    monkeypatch.setattr("unskew.repairs.independence.opinion_of", spy)
    monkeypatch.setattr("unskew.training.reference.linear_features", _pixels)
    package.repair(SOURCE, "independence", out=tmp_path / "w.parquet", settings=QUICK, force=True)
    data = package.load(SOURCE)
    torch.testing.assert_close(seen[0], _pixels(data, data.rows("train"), 0)[1])


def _pixels(data, rows, workers, any_size=False):
    x = torch.nn.functional.adaptive_avg_pool2d(data.inputs.rows(rows)[0].float(), 6).flatten(1)
    return rows, (x - x.mean(0)) / x.std(0).clamp(min=1e-6)


def test_few_effective_rows_are_tempered():
    weight = torch.full((1000,), 1e-3)
    weight[:5] = 1.0
    assert effective_rows(weight) < 30
    assert abs(effective_rows(tempered(weight, 30.0)) - 30.0) < 0.01
    torch.testing.assert_close(tempered(torch.ones(10), 30.0), torch.ones(10))
