# Every target does its own set-up: it needs Python >= 3.11, and Java >= 17 where Spark runs.
# PYTHON names the interpreter that makes .venv, WORKERS the number of processes for the tests without Spark.

PYTHON  ?= python3
WORKERS ?= 2

VENV  := .venv
BIN   := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test lint bench format lock java clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: java $(READY) ## Bring 336,776 real flights through transactions, with an abort, a zombie and a re-run
	$(BIN)/txntable demo

test: java lint ## Run the checks of `make lint`, then every test: without a JVM, branches of the pure packages, on Spark
	$(BIN)/pytest -n $(WORKERS) -m "not spark"
	$(BIN)/coverage run -m pytest --quiet tests/unit/coordinator tests/unit/partition
	$(BIN)/coverage report
	$(BIN)/pytest -m spark

lint: $(READY) ## Check style, formatting, types and layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: java $(READY) ## Measure what it costs, each figure as a ratio within one run
	$(BIN)/python -m benchmarks

format: $(READY) ## Format the code and mend what ruff can mend
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

lock: ## Write requirements.lock again from pyproject.toml (needs uv)
	uv pip compile pyproject.toml --quiet --upgrade --universal --python-version 3.11 --all-extras --generate-hashes \
	    --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" --output-file requirements.lock

clean: ## Remove .venv and what the tools leave behind
	rm -rf $(VENV) build dist htmlcov .coverage .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

java:
	@tools/require_java.sh

# The stamp is younger than all that decides what is installed. Nothing is resolved here: the lock names every version and hash,
# and the build backend comes from it too (hence no build isolation for this project itself).
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "error: txntable needs python 3.11 or later python=$(PYTHON) found=$$($(PYTHON) --version 2>&1)" >&2; \
	    echo "Name another one: make PYTHON=python3.12 <target>" >&2; exit 1; }
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	@echo "installing the exact versions of requirements.lock into $(VENV) (some minutes the first time: Spark is large)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
