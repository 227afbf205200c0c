PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: install demo test slow check bench bench-kill docs golden clean

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
	$(BIN)/python -m pytest -n 2 -m "not slow"

slow: $(STAMP)
	$(BIN)/python -m pytest -m slow

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell

bench: $(STAMP)
	$(BIN)/python benchmarks/loop_overhead.py

bench-kill: $(STAMP)
	$(BIN)/python benchmarks/kill_and_resume.py

docs: $(STAMP)
	$(BIN)/python docs/generate.py

clean:
	rm -rf $(VENV) demo-out
