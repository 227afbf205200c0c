"""Suites of the package: each can be planned at every scale, its columns mean what they say, and a row of it is a recipe."""

import json

import polars as pl
import pytest

import unskew as package
from unskew.core import registry
from unskew.core.errors import UserError
from unskew.core.settings import Settings
from unskew.data import load
from unskew.suites.figures import is_number, shown
from unskew.suites.plan import plan
from unskew.suites.reader import read
from unskew.suites.recipe import recipe
from unskew.training.make import make_method
from unskew.training.settings import run_config
from unskew.verbs.bench_worker import work

# A toy with wrong labels, trained plainly and after a repair that leaves rows out.
STAGED = """title = "Staged"
[columns]
plain = ""
"repair.bias_before" = ""
"repair.bias_after" = ""
"repair.kept" = ""
"kept.clean_aligned" = ""
"kept.clean_conflicting" = ""
"kept.noisy_aligned" = ""
"kept.noisy_conflicting" = ""
[settings]
train = { batch = 64, steps = 2 }
[scale.smoke]
[data.toy]
source = "toy:rows=300,noise=0.2,seed={seed}"
model = "mlp"
[method.erm]
[method.kept]
method = "repair"
settings = { phi = "input", strategy = "class_rank", keep = 0.5, epochs = 2 }
"""
ASKING = """title = "Asking"
columns = { "leakage.model" = "" }
evaluate = { leakage = true }
[settings]
train = { steps = 2 }
[scale.smoke]
evaluate = { attack = { rounds = 1 } }
[data.toy]
source = "toy:rows=300"
model = "mlp"
[method.erm]
[method.noisy]
method = "erm"
evaluate = { noise = [1.0], attack = { rounds = 2 } }
read_from = "leakage.randomisation.0"
"""
# Settings that decide what a row trains, where the paper says them or its card does.
ROWS = {
    "pgd-table1/colored-mnist/0.99/erm@small": ("erm", "convnet1", {"train.epochs": "20", "optim.lr": "0.01"}),
    "pgd-table1/colored-mnist/0.99/rubi@small": ("rubi", "convnet1", {"train.batch": "256"}),
    "pgd-table1/colored-mnist/0.99/learned_mixin@small": ("learned_mixin", "convnet1", {"optim.momentum": "0.8"}),
    "pgd-table1/colored-mnist/0.99/group_dro@small": ("group_dro", "convnet1", {"train.sampler": "balanced"}),
    "pgd-table1/colored-mnist/0.99/reweight@small": ("reweight", "convnet1", {"optim.weight_decay": "0.001"}),
    "pgd-table1/colored-mnist/0.99/lnl@small": ("lnl", "convnet1", {"target": "label", "mu": "0.1", "lambda_": "0.01"}),
    "pgd-table1/colored-mnist/0.99/grl@small": ("grl", "convnet1", {"mu": "0.1"}),
    "pgd-table1/colored-mnist/0.99/blind_eye@small": ("blind_eye", "convnet1", {"alpha": "0.1"}),
    "pgd-table1/colored-mnist/0.99/gray@small": ("gray", "convnet1", {}),
    "lnl-figure4/0.02/grl@small": ("grl", "lnl-net", {"target": "color", "train.start": "{shared.base}"}),
    "rebias-table1/0.99/biased@small": ("erm", "rebias-conv", {"model.kernel": "1", "train.steps": "5000"}),
    "rebias-table1/0.99/hex@paper": ("hex", "rebias-conv", {"model.kernel": "7", "train.epochs": "80"}),
    "rebias-table1/0.99/rebias@paper": ("rebias", "rebias-conv", {"g.kernel": "1", "sigma": "1.0"}),
    "rebias-table1/0.99/rebias-50@small": ("rebias", "convnet1", {"g.kernel": "1", "lambda_f": "50", "feature": "logits"}),
    "pgd-table3/bar/pgd@paper": ("pgd", "resnet", {"optim.milestones": "40%,60%,80%", "data.augment": "pgd"}),
    "pgd-table3/imagenet9/lff@paper": ("lff", "resnet", {"optim.weight_decay": "0.3", "optim.milestones": "20%,40%,60%,80%"}),
    "lnl-table1/dogs-cats/TB1/blind_eye-grl@paper": ("blind_eye", "resnet", {"at": "layer3", "target": "color", "mu": "0.1"}),
    "leakage-table4/coco/last@paper": ("adversarial", "resnet", {"at": "layer4", "head": "20", "class_weights": "True"}),
    "rebias-toy/erm@small": ("erm", "mlp", {"model.hidden": "32", "train.epochs": "60"}),
    "rebias-toy/rebias@small": ("rebias", "mlp", {"g.inputs": "0", "lambda_f": "10", "feature": "logits"}),
    "tiles/erm@small": ("erm", "convnet1", {"model.dropout": "0", "train.start": "{shared.base}"}),
    "tiles/last@small": ("adversarial", "convnet1", {"lambda_": "0.5", "warmup": "1", "train.steps": "752"}),
    "tiles/image@small": ("adversarial", "convnet1", {"at": "image", "mask_channels": "16,32,32", "train.steps": "376"}),
    "pgd-table16/factor-1@small": ("denoise+erm", "convnet1", {"denoise.factor": "1", "denoise.run": "{shared.cleaner}"}),
}


def suite_of(tmp_path, text):
    path = tmp_path / "own.toml"
    path.write_text(text)
    return read(str(path))


def worked(tmp_path, task, columns, shared=None):
    """The result of one run of a suite, made here and not in a process of its own."""
    return work(json.loads(json.dumps(task.json())), tmp_path / task.id / "run", list(columns), shared or {})


@pytest.mark.parametrize("name", registry.names("suites"))
def test_every_suite_plans_at_every_scale_with_every_method(name):
    suite = read(name)
    suite.published()
    assert {"smoke", "paper"} <= set(suite.part("scale"))
    for scale, entry in suite.part("scale").items():
        roots = {var: "somewhere" for var, value in entry.get("vars", {}).items() if value == ""}
        methods = {t.name for t in plan(suite, scale, roots=roots, only=list(suite.part("method"))) if not t.shared}
        assert methods == set(suite.part("method"))


def test_rows_that_the_papers_table_lacks_are_run_at_small_scale_or_when_named():
    suite = read("pgd-table1")
    extra = {"group_dro", "reweight", "lnl", "grl", "blind_eye", "gray"}
    assert extra <= {t.name for t in plan(suite, "small")}
    assert not extra & {t.name for t in plan(suite, "paper")}
    assert not any(suite.part("method")[name].get("published") for name in extra)
    assert [t.name for t in plan(suite, "smoke", only=["group_dro"])] == ["group_dro"]


def test_g_is_the_papers_wherever_it_stands():
    """12,810 parameters, against f or alone."""
    data = load("biased-mnist:base=digits,ratio=0.99")

    def made(name):
        task = recipe(f"rebias-table1/0.99/{name}@small").task
        cfg = run_config(Settings.of(task.settings))
        return make_method(task.method, cfg.method, task.model, cfg.model, data, 0)

    for network in (made("rebias-10").g, made("biased").model):
        assert sum(p.numel() for p in network.parameters()) == 12_810


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("repair.bias", "own.toml:3: column 'repair.bias' is not a figure of repair; available: bias_after, bias_before, kept"),
        ("kept.clean", "own.toml:3: column 'kept.clean' is not a figure of kept; available: clean_aligned, clean_conflicting"),
        ("repare.kept", "own.toml:3: column 'repare.kept' is not a figure of evaluate"),
    ],
)
def test_a_wrong_column_of_a_repair_is_refused(tmp_path, column, said):
    with pytest.raises(UserError) as error:
        suite_of(tmp_path, STAGED.replace('plain = ""', f'"{column}" = ""'))
    assert said in str(error.value)


def test_counts_and_bias_are_shown_as_they_are():
    assert is_number("repair.kept")
    assert shown("kept.noisy_aligned", 12.0) == 12.0
    assert shown("repair.bias_after", 0.25) == 0.25
    assert shown("plain", 0.25) == 25.0


def test_columns_of_a_repair_are_those_of_its_table(tmp_path):
    suite = suite_of(tmp_path, STAGED.replace("[columns]", "force = true\n[columns]", 1))
    plainly, repaired = plan(suite, "smoke")
    data = load("toy:rows=300,noise=0.2,seed=0")
    rows = data.rows("train").tolist()
    truth, y, bias = data.columns["clean_label"].to_list(), data.y.tolist(), data.bias[:, 0].tolist()

    def counted(kept):
        cells = dict.fromkeys(("clean_aligned", "clean_conflicting", "noisy_aligned", "noisy_conflicting"), 0)
        for i in kept:
            label = "clean" if truth[i] == y[i] else "noisy"
            cells[f"{label}_{'aligned' if bias[i] == truth[i] else 'conflicting'}"] += 1
        return {f"kept.{name}": float(n) for name, n in cells.items()}

    figures = worked(tmp_path, plainly, suite.table["columns"])["figures"]
    assert {k: v for k, v in figures.items() if k.startswith("kept.")} == counted(rows)
    assert [figures[f"repair.{name}"] for name in ("bias_before", "bias_after", "kept")] == [None, None, None]

    figures = worked(tmp_path, repaired, suite.table["columns"])["figures"]
    table = pl.read_parquet(tmp_path / repaired.id / "run-weights.parquet")
    kept = table.filter(pl.col("keep"))["index"].to_list()
    assert 0 < len(kept) < len(table)
    assert {k: v for k, v in figures.items() if k.startswith("kept.")} == counted(set(kept) & set(rows))
    told = json.loads((tmp_path / repaired.id / "run-weights.json").read_text())
    assert figures["repair.kept"] == told["kept"] == len(kept)
    assert figures["repair.bias_before"] == told["bias_before"]
    assert figures["repair.bias_after"] == told["bias_after"]


def test_the_bias_of_repairs_figure_has_its_columns():
    assert {"plain", "repair.bias_before", "repair.bias_after"} <= set(read("repair-figure1").table["columns"])


def test_a_row_asks_its_own_questions_over_the_suites(tmp_path):
    plainly, noisy = plan(suite_of(tmp_path, ASKING), "smoke")
    assert plainly.judging == {"leakage": True, "attack": {"rounds": 1}}
    assert noisy.judging == {"leakage": True, "attack": {"rounds": 2}, "noise": [1.0]}
    assert (plainly.read_from, noisy.read_from) == ("", "leakage.randomisation.0")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("noise = [1.0]", "nois = [1.0]", "own.toml:14: evaluate has an unknown entry 'nois'; did you mean 'noise'"),
        ("noise = [1.0]", "noise = 1.0", "own.toml:14: evaluate.noise must be a list, got 1.0"),
        ("noise = [1.0]", "noise = [-1.0]", "own.toml:14: evaluate: noise: every level must be above 0"),
        ("attack = { rounds = 2 }", "leakage = false", "own.toml:14: evaluate: noise, alpha and rba need --leakage"),
        ("randomisation.0", "randomization.0", "own.toml:15: read_from = 'leakage.randomization.0': leakage has no part"),
        ("leakage.randomisation.0", "leakege.rba", "own.toml:15: read_from = 'leakege.rba': evaluate gives no answer 'leakege'"),
        ("[1.0]", "[1.0], rba = 2", "own.toml:14: evaluate: rba=2: the margin must lie in (0, 1)"),
    ],
)
def test_a_rows_wrong_question_is_refused_with_its_line(tmp_path, before, after, said):
    with pytest.raises(UserError) as error:
        plan(suite_of(tmp_path, ASKING.replace(before, after)), "smoke")
    assert said in str(error.value)


def test_a_row_of_tiles_shows_the_figures_with_noise(tmp_path):
    suite = read("tiles")
    base, noisy = plan(suite, "smoke", only=["noise-1"])
    shared = {"base": worked(tmp_path, base, suite.table["columns"])["run"]}
    figures = worked(tmp_path, noisy, suite.table["columns"], shared)["figures"]
    told = json.loads((tmp_path / noisy.id / "run" / "metrics-test.json").read_text())
    part = told["leakage"]["randomisation"][0]
    assert part["noise"] == 1.0
    assert figures["f1_macro"] == part["f1_macro"]
    assert figures["average_precision"] == part["average_precision"] != told["average_precision"]
    assert figures["leakage.model"] == part["model"]
    assert figures["leakage.amplification"] == (None if part["note"] else part["amplification"])


def test_pgds_table_16_counts_the_rows_that_denoising_keeps(tmp_path):
    suite = read("pgd-table16")
    cleaner, task = plan(suite, "smoke", only=["factor-1"], extra={"train.epochs": "2"})
    shared = {"cleaner": worked(tmp_path, cleaner, suite.table["columns"])["run"]}
    found = worked(tmp_path, task, suite.table["columns"], shared)
    assert found["steps"] == 1
    told = json.loads((tmp_path / task.id / "run-clean.json").read_text())
    assert sum(found["figures"].values()) == told["kept"] < told["rows"]
    assert found["figures"]["kept.clean_aligned"] > 10 * found["figures"]["kept.noisy_aligned"]


def test_rebiass_toy_stands_beside_the_papers_numbers(tmp_path):
    found = package.bench("rebias-toy", scale="smoke", only=["rebias"], out=tmp_path / "out")
    assert found.failed == []
    (row,) = found.table
    assert (row.method, row.figure, row.published_mean) == ("rebias", "plain", 89)
    assert 0 < row.mean < 100


@pytest.mark.parametrize("text", ROWS)
def test_a_row_of_a_suite_is_a_recipe(text):
    method, model, settings = ROWS[text]
    task = recipe(text).task
    assert (task.method, task.model) == (method, model)
    assert {key: task.settings.get(key) for key in settings} == settings


def test_a_recipe_names_source_method_settings_and_shared_runs():
    found = recipe("pgd-table1/colored-mnist/0.99/lff@small")
    assert found.shared == ()
    assert found.task.source == "colored-mnist:protocol=pgd,base=mnist,ratio=0.99,seed=0"
    assert (found.task.method, found.task.model, found.task.seed) == ("lff", "convnet1", 0)
    assert found.task.settings == {
        "optim.name": "sgd", "optim.lr": "0.01", "optim.momentum": "0.8", "optim.weight_decay": "0.001", "train.batch": "256",
        "train.epochs": "20", "select.every": "20 epochs", "data.augment": "pgd",
    }  # fmt: skip
    again = recipe("pgd-table1/colored-mnist/0.99/lff@small", seed=3).task
    assert (again.seed, again.source) == (3, "colored-mnist:protocol=pgd,base=mnist,ratio=0.99,seed=3")
    assert [t.name for t in recipe("tiles/alpha1-last@small").shared] == ["base-alpha1"]


def test_parts_of_a_recipe_may_be_left_out_where_there_is_one_choice():
    whole = recipe("repair-figure1/colored-mnist/0.2/sample@small").task
    assert recipe("repair-figure1/0.2/sample@small").task == whole
    assert recipe("rebias-toy/toy/rebias@small").task == recipe("rebias-toy/rebias@small").task


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pgd-table1/0.99/lff@small", "name a data set, one of colored-mnist, watermarked-mnist, cartoon"),
        ("pgd-table1/colored-mnist/lff@small", "name a setting, one of 0.995, 0.99, 0.95"),
        ("repair-figure1/0.2@small", "name a method, one of erm, threshold, rank, class_rank, sample, uniform"),
        ("pgd-table1/colored-mnist/0.99/lff", "name a scale, one of smoke, small, paper"),
        ("pgd-table1/colored-mnist/0.99/lfv@small", "no method 'lfv'; did you mean 'lff'?"),
        ("pgd-table1/colored-mnist/0.99/lff@smal", "no scale 'smal'; did you mean 'small'?"),
        ("pgd-table1/colored-mnits/0.99/lff@small", "no data set or setting 'colored-mnits'; did you mean 'colored-mnist'?"),
        ("pgd-tabel1/colored-mnist/0.99/lff@small", "no suite 'pgd-tabel1'; did you mean 'pgd-table1'?"),
        ("repair-table1/moving-digits/C2D@small", "is a dependency, not a training"),
        ("field-test/places/0.95/auto@small", "is a run of auto, not a training"),
    ],
)
def test_a_wrong_recipe_says_what_there_is(text, said):
    with pytest.raises(UserError) as error:
        recipe(text)
    assert said in str(error.value)
