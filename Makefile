# Everything runs in an environment of its own, made here from Python 3.11+ alone.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3 python; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$p; break; }; done)
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DOCS_READY := $(VENV)/.docs-ready
BENCH_VENV ?= benchmarks/.venv
BENCH_READY := $(BENCH_VENV)/.ready
BENCH_ARGS ?=
WORKERS ?= 2

.PHONY: help demo test test-all lint docs browser bench clean
.DEFAULT_GOAL := help

help:
	@echo "make demo      set up, fill in a photograph, say where the pictures and the report are"
	@echo "make test      set up, lint, type-check, run the tests"
	@echo "make test-all  the same with the slow tests"
	@echo "make lint      formatting, lint, types, import layers"
	@echo "make docs      build the documentation, say where it is"
	@echo "make bench     measure against rivals (sets up an environment for them)"
	@echo "make clean     remove environments and caches"

$(READY): pyproject.toml
	@test -n "$(PYTHON)" || { echo "lgmd needs Python 3.11 or newer, and none was found. Pass one: make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(READY)
	$(BIN)/lgmd demo

lint: $(READY)
	$(BIN)/ruff format --check src tests benchmarks examples docs/_site docs/pictures
	$(BIN)/ruff check src tests benchmarks examples docs/_site docs/pictures
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/pytest -n $(WORKERS) -m "not slow"

test-all: lint browser $(DOCS_READY)
	$(BIN)/pytest -n $(WORKERS)

# For the tests of the report. Where it cannot be installed these tests say so and are skipped.
browser:
	-@command -v chromedriver >/dev/null 2>&1 || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 && \
	{ apt-get install -y -qq chromium chromium-driver || { apt-get update -qq && apt-get install -y -qq chromium chromium-driver; }; } >/dev/null 2>&1; } \
	|| echo "No browser: the tests of the report in a browser will be skipped."

$(DOCS_READY): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,docs]'
	@touch $@

docs: $(DOCS_READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "The documentation is in site/index.html; $(BIN)/mkdocs serve shows it with search."

# The rivals live in an environment of their own. cmfrec compiles from source; without a compiler it is left out.
$(BENCH_READY): pyproject.toml benchmarks/requirements.txt
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e . -r benchmarks/requirements.txt
	$(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check cython "setuptools<81" wheel findblas
	-$(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation cmfrec
	@touch $@

bench: $(BENCH_READY)
	$(BENCH_VENV)/bin/python benchmarks/run.py $(BENCH_ARGS)

clean:
	rm -rf site $(VENV) $(BENCH_VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
