# Needs Python 3.11 or newer, git, make and a package index; everything else goes into $(VENV).
#   make demo     install the core package and run the example
#   make test     install all three packages with the development tools and run every check
#   make test-matrix   the tests on other processors' kernels, one thread and a busy machine (ROW=Haswell for one, ALL=1 for every test)
#   make fuzz     mutated files, options and packets, kills and disk faults (half an hour; SCALE=0.1 for a tenth)
#   make mutants  small bugs in the core, one at a time, and those that no related test notices (hours; goes on where it stopped)
#   make bench    measure against the alternatives       make docs    build the documentation
#   make wheel    build the three wheels and try them in an empty environment: the rehearsal of a release
#   make venv     the development environment only       make clean   remove everything that was made here

PYTHON ?= python3
VENV ?= .venv

BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt
PACKAGES := packages/dynident packages/dynident-lab packages/dynident-papers
INPUTS := $(PACKAGES:%=%/pyproject.toml) constraints.txt requirements-dev.txt requirements-bench.txt

# Figures are drawn to files: no screen is needed.
export MPLBACKEND := Agg

.DEFAULT_GOAL := help
.PHONY: help venv demo test types chromium suite test-matrix fuzz mutants bench docs wheel clean

help:
	@sed -n '2,9s/^# *//p' Makefile

# One environment that grows: each stamp says what is in it, and is renewed when the requirements change.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(f"$(PYTHON) is {v[0]}.{v[1]}; dynident needs Python 3.11 or newer: make PYTHON=python3.12" if v < (3, 11) else 0)'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.user: $(INPUTS) | $(BIN)/python
	@echo "installing dynident into $(VENV) ..."
	@$(INSTALL) -e "packages/dynident[extras]"
	@touch $@

$(VENV)/.dev: $(INPUTS) | $(BIN)/python
	@echo "installing the three packages and the development tools into $(VENV) ..."
	@$(INSTALL) -e "packages/dynident[all]" -e "packages/dynident-lab[fleet,workbench]" -e packages/dynident-papers -r requirements-dev.txt
	@touch $@

$(VENV)/.bench: $(VENV)/.dev
	@$(INSTALL) -r requirements-bench.txt
	@touch $@

venv: $(VENV)/.dev

demo: $(VENV)/.user
	@$(BIN)/dynident demo

test: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
# mypy and the import layers occupy one core for a minute: they run beside the tests.
	@$(MAKE) --no-print-directory -j2 types suite

types: $(VENV)/.dev
	$(BIN)/lint-imports
	$(BIN)/mypy

# One process per core: BLAS threads beside them would only wait for each other. A worker keeps neighbouring tests, which share robots.
# The browser of the workbench's tests; where it cannot be installed, they are skipped with a reason.
chromium:
	@command -v chromium || command -v google-chrome || \
	  { apt-get update -qq && apt-get install -y -qq chromium; } >/dev/null 2>&1 || \
	  { sudo -n apt-get update -qq && sudo -n apt-get install -y -qq chromium; } >/dev/null 2>&1 || \
	  echo "chromium cannot be installed here: the tests in a browser are skipped"

suite: $(VENV)/.dev
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n auto --dist worksteal -q

test-matrix: $(VENV)/.dev
	$(BIN)/python tests/matrix.py $(if $(ALL),--all) $(if $(ROW),--row "$(ROW)")

SCALE ?= 1
fuzz: $(VENV)/.dev
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m fuzz $(SCALE)

mutants: $(VENV)/.dev
	$(BIN)/python -m fuzz.mutants

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks --page docs/reference/speed.md

docs: $(VENV)/.dev
	@rm -rf docs/reference/generated  # pages of names that are gone
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "documentation: docs/_build/html/index.html"

wheel: | $(BIN)/python
	rm -rf dist $(PACKAGES:%=%/build)
	$(BIN)/python -m pip wheel -qq --disable-pip-version-check --no-deps -w dist $(PACKAGES:%=./%)
	rm -rf $(PACKAGES:%=%/build)
	$(BIN)/python tests/release.py dist

clean:
	rm -rf $(VENV) dist docs/_build demo_out benchmarks/out fuzz/out .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -path ./.git -prune -o \( -name __pycache__ -o -name '*.egg-info' -o -name build \) -prune -exec rm -rf {} +
