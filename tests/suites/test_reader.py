"""Every wrong suite is refused with its line before anything starts."""

import pytest

import unskew as package
from tests.support.suites import GOOD, TABLE, refused
from unskew.core.errors import UserError

WRONG = {
    "[method.erm]": ("[method.erv]", "toy.toml:18: no method 'erv'; did you mean 'erm'"),
    "steps = 10": ("log_every = 10", "has no budget: give train.epochs or train.steps"),
    "rows={rows}": ("rows={rowz}", "no value for 'rowz'"),
    "toy:rows": ("toy:share=2,rows", "toy.toml:11: toy:share=2,rows=300,seed=0: unknown setting 'share'"),
    "k = 4": ("kk = 4", "unknown setting 'method.kk'"),
    "model =": ("modle =", "toy.toml:14: [data.toy] has an unknown entry 'modle'; did you mean 'model'"),
    "table.csv": ("tabel.csv", "no published table 'tabel.csv'"),
    'title = "Toy"': ('titel = "Toy"', "unknown entry 'titel'"),
    "batch = 64": ("batch = no", "is not TOML"),
    "seeds = 2": ("seeds = 2\nevaluate = { tempral = true }", "toy.toml:9: evaluate has an unknown entry 'tempral'"),
    "[method.pgd]": ("[method.dependency]", "toy.toml:4: column 'plain' is not a figure of dependency"),
    'method = "gce"': ('method = "balance+gce"\nsettings = { balance = { alfa = 1 } }', "unknown setting 'balance.alfa'"),
    "seeds =": ("evaluate = { attack = { round = 1 } }\nseeds =", "toy.toml:8: unknown setting 'attack.round'"),
}
WRONG |= {
    "seeds = 2\n": ("seeds = 0\n", "toy.toml:8: seeds must be at least 1, got 0"),
    'columns = { plain = "acc %" }': ('columns = ["plain"]', "toy.toml:4: columns must be a table, got ['plain']"),
    "vars = { rows = 300 }": ('vars = "x"', "toy.toml:9: vars must be a table, got 'x'"),
    'source = "toy': ('source = ""\n# "toy', "[data.toy] has no source"),
    "[settings]\n": (
        'baseline = "erv"\n[settings]\n',
        "toy.toml:5: baseline 'erv' is not a method of the suite; did you mean 'erm'",
    ),
    'model = "mlp"': ('model = "mlp"\nsettings = { model = { hiden = 3 } }', "unknown setting 'model.hiden'"),
    'title = "Toy"\n': ('title = "Toy"\nevaluate = true\n', "toy.toml:3: evaluate must be a table, got True"),
    "# A suite for tests.\n": ('evaluate = { temporal = "x" }\n', "evaluate.temporal must be true or false, got 'x'"),
    "# A suite": ('evaluate = { textures = "nosuch" }\n# A suite', "no representation 'nosuch'"),
    'plain = "acc %"': ('plian = "acc %"', "toy.toml:4: column 'plian' is not a figure of evaluate; did you mean 'plain'"),
    "columns = { plain": (
        'columns = { "temporal.value" = "", plain',
        "toy.toml:4: column 'temporal.value' needs evaluate = { temporal",
    ),
    "seeds = 2\nvars": ('seeds = 2\nonly = ["erv"]\nvars', "toy.toml:9: only erv: toy has no such method"),
    "rows = 300": (
        'rows = 300, a = "{b}", b = "{a}"',
        "toy.toml:9: a refers to vars that refer to others in turn, or to each other",
    ),
    "# A": ("evaluate = { shared_classes = true }\n# A", "shared_classes needs another source"),
}
WRONG |= {
    "{shared.biased}": ("{shared.biasd}", "toy.toml:22: there is no [shared.biasd]; did you mean 'biased'"),
    'at = { "" = "only" }': (
        'at = { 0.99 = "only" }',
        "toy.toml:15: [data.toy] at: 0 = {'99': 'only'} must be text; write numbers in quotes",
    ),
    '"" = "only"': ('"../x" = "only"', "toy.toml:15: [data.toy] at '../x': a name may have letters, digits and . _ + = -"),
    '[method.erm]\npublished = "Vanilla"': (
        '[method."a/b"]\nmethod = "erm"',
        "toy.toml:18: method 'a/b': a name may have letters, digits",
    ),
    'published = "Vanilla"': (
        'published = "Vanilla"\npublished_at = "{foo}"',
        "toy.toml:20: published_at = '{foo}': may hold {at}",
    ),
    'published = "Vanilla"\n': (
        "[method.erm.scale.smok]\nsettings = {}\n",
        "[method.erm.scale.smok]: the suite has no such scale; did you mean 'smoke'",
    ),
    'published = "Ours"': (
        "scale = { smoke = { setings = {} } }",
        "toy.toml:21: [method.pgd.scale.smoke] must be a table with the single entry settings",
    ),
    'published = "Ours"\n': (
        "scale = { smoke = 3 }\n",
        "[method.pgd.scale.smoke] must be a table with the single entry settings, got 3",
    ),
    'published = "Toy set"': (
        "scale = { smoke = { settings = 3 } }",
        "[data.toy.scale.smoke] must be a table with the single entry settings",
    ),
    "[method.erm]\n": ('[method.shared-biased]\nmethod = "erm"\n', "two runs have the id toy-s0-shared-biased"),
    'columns = { plain = "acc %" }\n': (
        "columns = { plain = 5 }\n",
        "toy.toml:4: columns: the published name of 'plain' must be text, got 5",
    ),
    "columns = {": (
        'evaluate = { leakage = true }\ncolumns = { "leakage.foo" = "",',
        "toy.toml:5: column 'leakage.foo' is not a figure of leakage",
    ),
    "{ plain": ('{ ".plain" = "", plain', "toy.toml:4: column '.plain' has no split before the dot"),
    "title =": ('split = ""\ntitle =', "toy.toml:2: split must name a split"),
    'augment = "none"': ('augment = "nosuch"', "data.augment=nosuch: must be one of none, flip"),
    "[settings]": ('[settings]\nselect = { every = "3 weeks" }', "toy.toml:6: select.every='3 weeks': write it as '3 epochs'"),
    "vars =": ("evaluate = { attack = { rounds = 0 } }\nvars =", "attack: rounds, hidden, batch and epochs must be at least 1"),
}
WRONG |= {
    "[method.pgd]\n": ("[method.pgd]\nmethod = { a = 1 }\n", "toy.toml:20: method must be text, got {'a': 1}"),
    'seed={seed}"': ('seed={seed[a]}"', "braces must hold the name of a value, such as {seed}"),
    '"toy:rows={rows},seed={seed}"': (
        '"toy:seed={seed},rowz={rows}"',
        "toy.toml:11: toy:seed=0,rowz=300: unknown setting 'rowz'",
    ),
    'published = "Vanilla"\n[': (
        'published = "Vanilla"\npublished_at = "{at.foo}"\n[',
        "toy.toml:20: published_at = '{at.foo}': may hold {at}",
    ),
    'method = "gce"\n': (
        'method = "gce"\nsettings = { init = "{shared.biased}" }\n',
        "toy.toml:18: a shared run cannot use another",
    ),
    "# A suite for tests": (
        'evaluate = { on = "toy:rowz=1" }\n# A',
        "toy.toml:1: evaluate: on = 'toy:rowz=1': unknown setting 'rowz'",
    ),
    "vars = { rows = 300 }\n": (
        "vars = { rows = 300, seed = 7 }\n",
        "toy.toml:9: vars: seed is set by every run",
    ),
    'at = { "" = "only" }\n': ("at = {}\n", "toy.toml:15: [data.toy] at has no values"),
    "toy:rows=": ("toy:noise=7,rows=", "data.noise=7.0: must lie in [0, 1)"),
    'source = "toy:rows={rows},seed={seed}"': ('source = "nosuch.csv"', "toy.toml:11: nosuch.csv: there is no such file"),
}


@pytest.mark.parametrize("part", WRONG)
def test_a_wrong_suite_is_refused_before_anything_starts(suite, tmp_path, part):
    now, said = WRONG[part]
    suite.write_text(GOOD.replace(part, now, 1))
    with pytest.raises(UserError) as error:
        package.bench(str(suite), out=tmp_path / "out")
    assert said in str(error.value)
    assert not (tmp_path / "out").exists()


def test_the_line_told_is_that_of_the_setting(suite, tmp_path):
    assert "toy.toml:10: train.epochs must be above 0" in refused(suite, tmp_path, GOOD.replace("steps = 10", "steps = 0"))
    assert "toy.toml:6: train.batch" in refused(suite, tmp_path, GOOD.replace("batch = 64", "batch = 0"))
    assert "toy.toml:14: no model 'mpl'" in refused(suite, tmp_path, GOOD.replace('"mlp"', '"mpl"'))
    only_data = GOOD.partition("[method.erm]")[0]
    assert "toy.toml:1: method must be a table, got 'erm'" in refused(suite, tmp_path, f'method = "erm"\n{only_data}')
    told = refused(suite, tmp_path, GOOD, settings={"train.batch": "0"})  # of the command line
    assert told.startswith("train.batch, train.accumulate")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("", "mean as numbers: "),
        ("method,mean\nVanilla,3\n", "must have the columns method, dataset, bias_setting, metric, mean"),
        (TABLE.replace("60.0", "12:26"), "12:26"),
    ],
)
def test_a_wrong_published_table_is_told_before_the_runs(suite, tmp_path, table, said):
    (tmp_path / "table.csv").write_text(table)
    told = refused(suite, tmp_path, GOOD)
    assert "toy.toml:3: published table 'table.csv'" in told
    assert said in told


def test_an_impossible_ratio_is_refused_with_its_line(tmp_path):
    (tmp_path / "x.toml").write_text(
        GOOD.replace("toy:rows={rows}", "colored-mnist:base=digits,ratio=1.5").replace('published = "table.csv"\n', "")
    )
    with pytest.raises(UserError, match=r"x.toml:10: colored-mnist.*ratio=1.5: the share of aligned rows must lie in \[0, 1\]"):
        package.bench(str(tmp_path / "x.toml"), out=tmp_path / "out")
