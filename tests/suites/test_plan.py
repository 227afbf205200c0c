"""The plan of a suite: every run with its settings, seeds and what it needs."""

import pytest
import torch

import unskew as package
from unskew.core import registry
from unskew.core.errors import UserError
from unskew.core.settings import Settings
from unskew.data import load
from unskew.data.dataset import DataSet, Memory
from unskew.data.sets.hmdb51 import KINETICS
from unskew.data.sets.kinetics10 import SHARED
from unskew.pages.bench import summary
from unskew.suites.plan import check_shared, plan
from unskew.suites.reader import read
from unskew.training.make import make_method
from unskew.training.settings import check_method, run_config


def test_the_plan_has_every_run_with_its_settings(suite):
    tasks = plan(read(str(suite)), "smoke")
    assert [t.id for t in tasks] == [
        "toy-s0-shared-biased", "toy-s0-erm", "toy-s0-pgd", "toy-s1-shared-biased", "toy-s1-erm", "toy-s1-pgd",
    ]  # fmt: skip
    pgd = tasks[2]
    assert pgd.needs == ("toy-s0-shared-biased",)
    assert pgd.settings["train.steps"] == "10"
    assert pgd.settings["train.batch"] == "64"
    assert tasks[4].source == "toy:rows=300,seed=1"
    assert [t.id for t in plan(read(str(suite)), "smoke", seeds=1, only=["erm"])] == ["toy-s0-erm"]


@pytest.mark.parametrize(
    ("halves", "fine"),
    [
        ('{ tuned = ["toy"], reported = [] }', True),
        ('{ tuned = ["toy"], reported = ["toy"] }', False),
        ("{ tuned = [], reported = [] }", False),
        ('{ first = ["toy"], second = [] }', False),
        ('{ tuned = "toy", reported = 3 }', False),
    ],
)
def test_halves_name_every_data_set_once(suite, halves, fine):
    suite.write_text(suite.read_text().replace("[settings]", f"halves = {halves}\n[settings]", 1))
    if fine:
        assert plan(read(str(suite)), "smoke")
        return
    with pytest.raises(
        UserError, match=r"toy.toml:5: halves must be two lists, tuned and reported, that name every data set once"
    ):
        plan(read(str(suite)), "smoke")


def test_the_field_test_divides_its_families_and_plans_auto():
    field = read("field-test")
    halves = field.table["halves"]
    assert {*halves["tuned"], *halves["reported"]} == set(field.part("data"))
    alike = [{"places", "places-two"}, {"colored-digits", "colored-mnist"}]
    assert all(pair <= set(halves["tuned"]) or pair <= set(halves["reported"]) for pair in alike)
    (task,) = plan(field, "small", seeds=1, only=["places", "0.95", "auto"])
    assert (task.method, task.settings["budget"]) == ("auto", "2h")
    with pytest.raises(UserError, match="budget 'soon': write it as"):
        plan(field, "small", seeds=1, only=["places", "0.95", "auto"], extra={"budget": "soon"})


def test_a_data_set_may_name_the_methods_that_fit_it(suite):
    own = suite.read_text().replace("[data.toy]", '[data.toy]\nmethods = ["erm"]', 1)
    suite.write_text(own)
    assert [t.id for t in plan(read(str(suite)), "smoke")] == ["toy-s0-erm", "toy-s1-erm"]  # nobody needs the shared run
    with pytest.raises(UserError, match="nothing to run"):
        plan(read(str(suite)), "smoke", only=["pgd"])
    suite.write_text(own.replace('["erm"]', '["erv"]'))
    with pytest.raises(UserError, match=r"toy.toml:\d+: methods: 'erv' is not a method"):
        plan(read(str(suite)), "smoke")


def test_a_method_asked_for_leaves_the_scales_data_sets_as_they_are():
    assert [t.id for t in plan(read("pgd-table1"), "smoke", only=["erm"])] == ["colored-mnist-0.99-s0-erm"]
    assert [t.id for t in plan(read("pgd-table1"), "smoke", only=["erm", "0.95"])] == ["colored-mnist-0.95-s0-erm"]
    with pytest.raises(UserError, match="--only erv: pgd-table1 has no such method"):
        plan(read("pgd-table1"), "smoke", only=["erv"])


def test_seeds_are_how_many_or_which(suite):
    asked = read(str(suite))
    assert [t.seed for t in plan(asked, "smoke", seeds=3, only=["erm"])] == [0, 1, 2]
    assert [t.seed for t in plan(asked, "smoke", seeds="2..3", only=["erm"])] == [2, 3]
    for wrong in ("x", "3..1", "-1", "1.."):
        with pytest.raises(UserError, match=r"--seeds .*must be a number of seeds \(3\) or a range \(1\.\.2\)"):
            plan(asked, "smoke", seeds=wrong)


@pytest.mark.parametrize("name", registry.names("suites"))
def test_suites_of_the_package_plan_at_every_scale(name):
    suite = read(name)
    published = suite.published()
    for scale in suite.part("scale"):
        tasks = plan(suite, scale)
        assert tasks
        if published is None:
            continue
        found = summary(suite, tasks, {}, published).to_dicts()  # no name in the suite misses its row of the table
        named = {kind: {n for n, e in suite.part(kind).items() if e.get("published")} for kind in ("method", "data")}
        named["figure"] = {figure for figure, column in suite.table["columns"].items() if column}  # the others are ours alone
        lost = [r for r in found if r["published_mean"] is None and all(r[kind] in names for kind, names in named.items())]
        assert not lost, lost


@pytest.mark.parametrize("name", registry.names("suites"))
def test_methods_of_the_packages_suites_can_be_built(name):
    """Settings that fit one another only with the network and the data in hand, such as the layer that a head sits on."""
    suite, built, sets = read(name), set(), {}
    methods = list(suite.part("method"))
    for task in plan(suite, "smoke", seeds=1, only=methods):
        settings = {k: v for k, v in task.settings.items() if "{shared." not in v}
        kind = task.method.rpartition("+")[2]
        key = (kind, task.model, str(settings))
        # Without a network in the suite, the default training chooses one that fits.
        if kind not in registry.names("methods") or check_method(kind).staged or key in built or not task.model:
            continue
        built.add(key)
        if task.source not in sets:
            sets[task.source] = load(task.source)
        known = run_config(Settings.of({k: v for k, v in settings.items() if not k.startswith(("denoise.", "balance."))}))
        make_method(kind, known.method, task.model, known.model, sets[task.source], 0)


# Classes and values of the bias of real sets, which are not on disk here: enough to build what is trained on them.
REAL = {
    "bar": (6, ()), "celeba": (2, (2,)), "imagenet9": (9, ()), "dogs-cats": (2, (2,)), "imdb-faces": (2, (2,)), "imsitu": (211, (2,)),
    "coco-gender": (79, (2,)), "ucf101": (101, ()), "hmdb51": (51, ()), "kinetics10": (10, ()),
}  # fmt: skip
CLIPS = ("ucf101", "hmdb51", "kinetics10")


def stand_in(name, settings):
    """A data set of the shape of a real one: one row, as often as there are classes."""
    classes, values = REAL[name]
    side = int(settings.get("data.size", 112 if name in CLIPS else 224))
    shape = (int(settings.get("data.frames", 8)), 3, side, side) if name in CLIPS else (3, side, side)
    y = torch.arange(classes).repeat(4)
    return DataSet(
        name=name, inputs=Memory(torch.zeros(1, *shape, dtype=torch.uint8).expand(len(y), *shape)),
        y=torch.nn.functional.one_hot(y) if name == "coco-gender" else y, classes=tuple(map(str, range(classes))),
        split=torch.zeros(len(y), dtype=torch.long), bias=torch.arange(len(y))[:, None].expand(-1, len(values)) % 2,
        bias_names=tuple(f"bias{k}" for k in range(len(values))), bias_values=tuple(tuple(map(str, range(n))) for n in values),
    )  # fmt: skip


@pytest.mark.parametrize("name", registry.names("suites"))
def test_methods_of_the_packages_suites_can_be_built_at_paper_scale(name):
    """At the paper's sizes: the layer that a head sits on, the map that a critic reads, networks that fit clips or images."""
    suite, built, read_sets = read(name), set(), {}
    empty = {var: "nowhere" for var, value in suite.part("scale")["paper"].get("vars", {}).items() if value == ""}
    for task in plan(suite, "paper", seeds=1, roots=empty):
        gone = ("phi", "rates", "second", "repair.", "denoise.", "balance.")
        given = {k: v for k, v in task.settings.items() if "{shared." not in v and not k.startswith(gone) and v != "nowhere"}
        kind = "erm" if task.method == "dependency" else task.method.rpartition("+")[2]
        source = task.source.partition(":")[0]
        if task.judge or not task.model or kind == "stylised":
            continue
        if check_method(kind).staged:
            kind, given = "erm", {k: v for k, v in given.items() if "." in k and not k.startswith("method.")}  # its last stage
        of_model = {k: v for k, v in given.items() if k.startswith(("model.", "g.", "g2.", "data.")) or "." not in k}
        key = (kind, task.model, "clips" if source in CLIPS else source, str(of_model))
        if key in built:
            continue
        built.add(key)
        place = f"{source} {given.get('data.size')} {given.get('data.frames')}"
        if place not in read_sets:
            # What is drawn has the shape of its smallest version, without a download.
            drawn = task.source.replace("base=mnist", "base=digits").replace("base=fashion", "base=digits")
            read_sets[place] = stand_in(source, given) if source in REAL else load(SMALL.get(source, drawn))
        known = run_config(Settings.of(given))
        make_method(kind, known.method, task.model, known.model, read_sets[place], 0)


SMALL = {
    "cartoon": "cartoon:rows=100", "tiles": "tiles:base=digits,rows=200", "moving-digits": "moving-digits:base=digits,rows=100",
    "texture-shapes": "texture-shapes:rows=100", "toy": "toy:rows=100",
}  # fmt: skip


def test_sets_that_share_no_class_are_refused_before_training(real_set):
    """ReBias's ten actions and HMDB51 have no name in common; the twelve shared ones are known by Kinetics' names in both."""
    kinetics, _ = real_set("kinetics10")
    hmdb, _ = real_set("hmdb51")
    with pytest.raises(UserError, match=r"share 0 classes by name .*at least 2 are needed"):
        check_shared(kinetics, hmdb)
    check_shared(hmdb, hmdb)
    assert set(SHARED) == set(KINETICS.values())


def test_real_sets_are_looked_for_before_anything_starts(tmp_path):
    with pytest.raises(UserError, match="bar is read from disk: name its folder"):
        package.bench("pgd-table3", scale="paper", out=tmp_path / "out")
    with pytest.raises(UserError, match=rf"bar: {tmp_path} lacks train/, test/"):
        package.bench("pgd-table3", scale="paper", out=tmp_path / "out", roots={"bar": str(tmp_path)})
    with pytest.raises(
        UserError, match=r"--root baar: pgd-table3 at scale paper has no such root: use faces, size, bar, celeba, imagenet"
    ):
        package.bench("pgd-table3", scale="paper", out=tmp_path / "out", roots={"baar": "x"})
    assert not (tmp_path / "out").exists()
