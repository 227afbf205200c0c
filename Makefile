PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: install demo test test-timm check bench bench-measure bench-calibration bench-audit bench-kill bench-repair bench-methods docs clean

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
	$(BIN)/python -m pytest -n 2

# torchvision and timm need torch's own build: an environment of their own, 5.5 GB.
test-timm:
	$(PYTHON) -m venv .venv-timm
	.venv-timm/bin/python -m pip install --quiet torch torchvision timm pytest
	.venv-timm/bin/python -m pip install --quiet --editable .
	.venv-timm/bin/python -m pytest tests_timm

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell

bench: $(STAMP)
	$(BIN)/python benchmarks/loop_overhead.py
	$(BIN)/python benchmarks/stream_images.py

bench-measure: $(STAMP)
	$(BIN)/python benchmarks/bias_speed.py
	$(BIN)/python benchmarks/leakage_rounds.py

bench-calibration: $(STAMP)
	$(BIN)/python benchmarks/calibration.py
	$(BIN)/python benchmarks/repair_bias_curve.py

bench-audit: $(STAMP)
	$(BIN)/python benchmarks/audit_large.py

bench-kill: $(STAMP)
	$(BIN)/python benchmarks/kill_and_resume.py

bench-repair: $(STAMP)
	$(BIN)/python benchmarks/repair_speed.py
	$(BIN)/python benchmarks/aflite_rounds.py
	$(BIN)/python benchmarks/repair_colored_mnist.py
	$(BIN)/python benchmarks/denoise_colored_mnist.py

bench-methods: $(STAMP)
	$(BIN)/python benchmarks/step_cost.py
	$(BIN)/python benchmarks/toy_rebias.py
	$(BIN)/python benchmarks/joint_methods.py --suite colored-mnist
	$(BIN)/python benchmarks/joint_methods.py --suite biased-mnist
	$(BIN)/python benchmarks/joint_methods_page.py

docs: $(STAMP)
	$(BIN)/python docs/generate.py

clean:
	rm -rf $(VENV) demo-out
