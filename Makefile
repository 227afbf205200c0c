PYTHON ?= python3
VENV := .venv
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := $(VENV)/$(SCRIPTS)
STAMP := $(VENV)/.installed

.PHONY: install demo test test-slow pages-test test-timm check wheel-test bench fuzz kills results docs pictures site clean

# Versions are the tested ones: constraints.txt. torch is installed first, so that a CPU build given by name is taken.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch==$$(sed -n 's/^torch==//p' constraints.txt)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

install: $(STAMP)

demo: $(STAMP)
	$(BIN)/unskew demo --out demo-out

test: $(STAMP)
	@tests/install_chromium.sh || true
	$(BIN)/python -m pytest -n 2 -m 'not slow'

# Nodes of a cluster that die, and choices made on it: minutes each.
test-slow: $(STAMP)
	$(BIN)/python -m pytest -m slow

# Every kind of page and the explorer in Chromium, with axe-core from npm for the check of accessibility.
pages-test: $(STAMP)
	@tests/install_chromium.sh
	npm install --silent --no-save --prefix .pages-test axe-core@4
	$(BIN)/python -m pytest tests/pages/test_in_browser.py tests/explore/test_browser.py -rs

# torchvision and timm need torch's own build: an environment of their own, 5.5 GB.
test-timm:
	$(PYTHON) -m venv .venv-timm
	.venv-timm/bin/python -m pip install --quiet torch torchvision timm pytest
	.venv-timm/bin/python -m pip install --quiet --editable .
	.venv-timm/bin/python -m pytest tests_timm

# Style, types, spelling, complexity (ruff's C901), and no source file over 400 lines.
check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell
	@find unskew -name '*.py' -exec awk 'END { if (NR > 400) { print FILENAME ": " NR " lines, at most 400"; exit 1 } }' {} \; \
		| { ! grep . ; }

# The wheel in an environment that has nothing but it: the data files are inside, the demo runs, and the explorer shows what it left.
wheel-test: $(STAMP)
	rm -rf dist .venv-wheel
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/$(SCRIPTS)/python -m pip install --quiet --constraint constraints.txt torch==$$(sed -n 's/^torch==//p' constraints.txt)
	.venv-wheel/$(SCRIPTS)/python -m pip install --quiet --constraint constraints.txt "$$(ls dist/unskew-*.whl)[explore]"
	cd .venv-wheel && $(SCRIPTS)/unskew --version && $(SCRIPTS)/unskew list suites && $(SCRIPTS)/unskew demo --out demo-out
	cd .venv-wheel && $(SCRIPTS)/python ../tests/explore_answers.py $(SCRIPTS)/unskew demo-out

# Speed and calibration: make bench NAME=loop_overhead [WORDS="--rounds 5"]; without a name, what there is. WORDS=--record keeps the
# figures of speed in docs/results/speed.jsonl, from which `make docs` writes docs/results/speed.md.
bench: $(STAMP)
	$(BIN)/python -m benchmarks $(NAME) $(WORDS)

# The documentation as a site that opens from disk: site/index.html. A dead link is an error. Only its search needs a server, such as
# python -m http.server --directory site
site: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir site

# Hostile input of every kind through the command line: make fuzz N=2000 [SEED=0]. `make test` has a minute of it.
N ?= 2000
SEED ?= 0
fuzz: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --cases $(N) --seed $(SEED)

# SIGKILL, SIGTERM and SIGINT at random moments of every verb: make kills K=100 [SEED=0].
K ?= 100
kills: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz.kills --kills $(K) --seed $(SEED)

# Pages of docs/results from the committed results files; the runs themselves are not repeated.
results: $(STAMP)
	$(BIN)/python -m docs.results_pages

docs: $(STAMP)
	$(BIN)/python -m docs.generate

# Screenshots in docs, and the audit of photographs: minutes of work, and a download of 44 MB the first time.
pictures: $(STAMP)
	@tests/install_chromium.sh
	$(BIN)/python -m docs.pictures

clean:
	rm -rf $(VENV) .venv-wheel .venv-timm .pages-test dist site demo-out
