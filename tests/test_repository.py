"""The rules of the tree: imports go one way, the command line starts fast, what the docs show is what happens."""

import ast
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from docs.import_graph import FLOORS, graph, modules, package_edges, package_of
from unskew.cli import app
from unskew.core import reference, registry

ROOT = Path(__file__).parent.parent


def test_imports_go_down_one_way():
    """No exemption: imports inside functions and under TYPE_CHECKING count, and the package itself stands on the top floor."""
    up = [
        f"{module} imports {target}"
        for module, targets in graph().items()
        for target in targets
        if FLOORS.index(package_of(target)) > FLOORS.index(package_of(module))
    ]
    assert not up
    assert {package_of(module) for module in modules()} == set(FLOORS)
    assert len(package_edges()) > 50  # the graph is read at all


def test_no_module_imports_itself_in_a_circle():
    found, done = graph(), set()

    def visit(module, above):
        assert module not in above, " -> ".join([*above[above.index(module) :], module])
        if module not in done:
            for target in sorted(found.get(module, ())):
                visit(target, [*above, module])
            done.add(module)

    for module in found:
        visit(module, [])


def test_only_the_registry_imports_by_name():
    for name, path in modules().items():
        text = path.read_text()
        used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
        if name != "unskew.core.registry":
            assert not used & {"import_module", "__import__", "find_spec"}, name
            assert "importlib.import_module" not in text, name


def test_there_is_one_claim_one_lock_and_one_settings_parser():
    """Each mechanism is defined once, and nobody takes keys apart by hand."""
    texts = {name: path.read_text() for name, path in modules().items()}
    homes = {"def claim(": "core.workplace", "flock(": "core.workplace", 'PARTS = ("data", "optim"': "core.settings"}
    for definition, home in homes.items():
        assert [n for n, text in texts.items() if definition in text] == [f"unskew.{home}"], definition
    by_hand = [n for n, text in texts.items() if re.search(r"(removeprefix|startswith)\([\"']data\.", text)]
    assert not by_hand
    asked = [n for n, text in texts.items() if re.search(r"hasattr\((module|self\.module)", text)]
    assert asked in ([], ["unskew.nn.receptive"])  # there a module is a layer of a network


def test_a_training_of_one_stage_imports_no_repairs_attackers_or_pages(tmp_path):
    code = (
        "import sys, unskew; unskew.train('toy', 'lff', out='run', settings={'train.steps': 2, 'train.batch': 8}); "
        "print([m for m in sys.modules if m.startswith(('unskew.repairs', 'unskew.pages', 'unskew.evaluation', 'unskew.measure.leakage'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == "[]"


HEAVY = ("torch", "polars", "numpy", "scipy", "sklearn", "altair", "PIL", "lightning", "ray", "jinja2")


@pytest.mark.parametrize("words", [["--help"], ["list", "methods"], ["explain", "train.batch"]])
def test_help_and_lists_import_nothing_heavy(words):
    # How long they take is measured by benchmarks/start.py: seconds depend on the machine.
    code = f"import sys; from unskew.cli import app; app({words}, standalone_mode=False); print([m for m in {HEAVY} if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines()[-1] == "[]"


def test_every_verb_has_help_and_every_component_a_card(unskew):
    verbs = [c.name or c.callback.__name__ for c in app.registered_commands]
    for verb in verbs:
        assert "Usage" in unskew(verb, "--help").stdout
    for kind in registry.KINDS:
        for name in registry.names(kind):
            card = registry.card(kind, name)
            assert "Source: " in card, f"{kind} {name}"
            assert "Differs: " in card, f"{kind} {name}"


def test_every_setting_has_a_type_and_a_meaning():
    listed = [*reference.run_settings()]
    for kind in reference.COMPONENTS:
        for name in registry.names(kind):
            listed += reference.component_settings(kind, name)
    assert len(listed) > 200
    assert not [s.name for s in listed if not s.type or not s.meaning]


def test_lists_name_every_method(unskew):
    shown = unskew("list", "methods").stdout
    assert {line.split()[0] for line in shown.splitlines()} == {*registry.names("methods"), "denoise+METHOD", "balance+METHOD"}
    assert unskew("list", "stages").stdout == shown  # what they were once called
    assert {line.split()[0] for line in unskew("list").stdout.splitlines()} == {*registry.KINDS, "settings"}
    assert "train.batch=256" in unskew("list", "settings").stdout
    assert "rows per step" in unskew("explain", "train.batch").stdout
    assert "unskew 0." in unskew("--version").stdout


@pytest.mark.parametrize("name", ["bar", "celeba", "coco-gender", "imagenet9", "imdb-faces", "imsitu", "ucf101"])
def test_cards_and_checks_of_files_import_no_torch(name, tmp_path):
    for words in (["explain", name], ["data", name, "--root", str(tmp_path), "--check"]):
        code = (
            f"import sys; from unskew.cli import app\ntry: app({words!r}, standalone_mode=False)\n"
            "except SystemExit as stopped: assert stopped.code == 2\nassert 'torch' not in sys.modules"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_no_file_is_long_and_no_line_of_the_docs_either():
    long = [name for name, path in modules().items() if len(path.read_text().splitlines()) > 400]
    assert not long
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    wide = [
        f"{page.relative_to(ROOT)}:{k}"
        for page in pages
        for k, line in enumerate(page.read_text().splitlines(), 1)
        if len(line) > 200
    ]
    assert not wide


@pytest.mark.parametrize("name", ["audit", "auto", "bench", "dependency", "evaluate", "load", "repair", "report", "train"])
def test_public_functions_have_signatures_and_docstrings_to_work_from(name):
    import inspect

    import unskew as package

    function = getattr(package, name)
    parameters = inspect.signature(function).parameters
    assert parameters
    assert "args" not in parameters
    for argument in parameters:
        if argument != "settings" or parameters[argument].kind is not inspect.Parameter.VAR_KEYWORD:
            assert re.search(rf"^ +\**{argument}:", function.__doc__, re.MULTILINE), f"{name}: {argument} is not explained"
    assert "Returns:" in function.__doc__
    assert "Example:" in function.__doc__


def test_mypy_rejects_nonsense_in_a_users_script(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import unskew\nfrom unskew import evaluate, train\n\nrun = train('toy', 'erm', out='run')\n"
        "found = evaluate(run)\nprint(found.groups.aligned.value, unskew.measure.hsic)\n"
    )
    words = [sys.executable, "-m", "mypy", "--strict", str(script)]  # with the cache of `make check`: minutes without it
    assert subprocess.run(words, capture_output=True, text=True, cwd=ROOT).returncode == 0
    script.write_text('import unskew\n\nunskew.train(1, 2, nonsense="x")\n')
    said = subprocess.run(words, capture_output=True, text=True, cwd=ROOT).stdout
    assert 'Unexpected keyword argument "nonsense"' in said
    assert 'incompatible type "int"; expected "str"' in said


@pytest.mark.parametrize("page", ["README.md", "docs/guide.md"])
def test_commands_of_the_pages_exist(page):
    text = (ROOT / page).read_text()
    verbs = {c.name or c.callback.__name__ for c in app.registered_commands}
    used = set(re.findall(r"^ +unskew ([a-z]+)", text, re.MULTILINE))
    assert used
    assert used <= verbs
    for target in re.findall(r"`?make ([a-z-]+)", text):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), target


def python_of(page):
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


PAGES = sorted(str(p.relative_to(ROOT)) for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
WITH_PYTHON = [p for p in PAGES if python_of(p) and "tutorials" not in p]  # tests/docs/test_tutorials.py runs those


def test_pages_with_python_are_found():
    assert {"README.md", "docs/cluster.md", "docs/guide.md", "docs/index.md", "docs/own-loop.md", "docs/sources.md"} <= set(
        WITH_PYTHON
    )
    tutorials = {Path(p).stem for p in PAGES if python_of(p) and "tutorials" in p}
    assert tutorials == {p.stem for p in (ROOT / "docs" / "tutorials").glob("*.py")}


@pytest.mark.parametrize("page", WITH_PYTHON)
def test_python_of_the_pages_runs(request, tmp_path, monkeypatch, page):
    """All blocks of a page one after the other, as they stand, but for a cluster that is not there."""
    if page == "docs/cluster.md":
        request.getfixturevalue("folder")
    monkeypatch.chdir(tmp_path)
    space = {}
    for block in python_of(page):
        here = block.replace('running("ray", address="10.0.0.1:6379", gpus=1)', 'running("local")')
        exec(compile(here, page, "exec"), space)


@pytest.mark.parametrize("page", PAGES)
def test_commands_on_the_pages_have_verbs_and_options_that_exist(page):
    """Lines of shell blocks and of indented ones; what a verb is given is read by the tests of the verbs."""
    if page in ("CHANGELOG.md", "docs/cli.md", "docs/cards.md"):  # history; made from the commands; cards are prose
        return
    text = (ROOT / page).read_text(encoding="utf-8")
    known = {c.name or c.callback.__name__: set(_options(c.name or c.callback.__name__)) for c in app.registered_commands}
    shown = "\n".join(re.findall(r"^ {4}\S.*$|^```sh\n(?:.*\n)*?```$", text, re.MULTILINE))
    for line in re.findall(r"^ *(unskew [a-z]+(?: .*)?)$", shown, re.MULTILINE):
        _, verb, *words = shlex.split(line, comments=True)
        assert verb in known, f"{page}: {line}"
        unknown = {w.partition("=")[0] for w in words if w.startswith("--")} - known[verb] - {"--help"}
        assert not unknown, f"{page}: {line}"


def _options(verb):
    import typer

    return [name for one in typer.main.get_command(app).commands[verb].params for name in one.opts + one.secondary_opts]


@pytest.mark.usefixtures("own_cache", "folder")
def test_every_command_of_the_readme_runs(unskew, tmp_path):
    """The lines on one's own data one after the other, as they stand; of the lines with make, what they would run."""
    text = (ROOT / "README.md").read_text()
    lines = [line.split("#")[0].split() for line in text.splitlines() if re.match(" {4}(unskew|make) ", line)]
    assert [words[:2] for words in lines] == [
        ["make", "demo"], ["make", "test"], ["unskew", "audit"], ["unskew", "explore"], ["unskew", "train"], ["unskew", "auto"],
        ["unskew", "report"],
    ]  # fmt: skip
    for program, *words in lines:
        if words[0] == "explore":  # it serves until it is interrupted
            command = [sys.executable, "-m", "unskew", *words]
            serving = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            assert serving.stdout.readline().startswith("http://127.0.0.1:")
            serving.send_signal(signal.SIGINT)
            serving.communicate(timeout=120)
            assert serving.returncode == 0
        elif program == "unskew":
            unskew(*words)
        else:
            shown = subprocess.run(["make", "-n", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout
            assert {"demo": "unskew demo", "test": "-m pytest"}[words[0]] in shown
    assert "photos" in (tmp_path / "page.html").read_text()
    assert len(text.splitlines()) < 50  # one screen
    for link in re.findall(r"\]\(([^)]*)\)", text):
        assert (ROOT / link).exists(), link


def test_generated_pages_are_up_to_date():
    from docs.generate import pages

    for name, text in pages().items():
        assert (ROOT / "docs" / name).read_text() == text, f"docs/{name}: run make docs"
