# The project's chores. A fresh machine needs Python 3.11, make and git; everything else is installed into .venv.
PYTHON ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin
TREE   ?= .

# The pure core, which is covered to the last branch.
CORE := pregel/types.py,pregel/errors.py,pregel/node.py,pregel/network.py,pregel/task.py,pregel/runtime.py,$(\
)pregel/writes.py,pregel/barrier.py,pregel/plan.py,pregel/superstep.py,pregel/commands.py,pregel/attempt.py,pregel/routing.py,pregel/managed.py,pregel/text.py,pregel/names.py,pregel/callables.py,pregel/mutation.py,pregel/door.py,$(\
)pregel/config.py,pregel/control.py,pregel/cancellation.py,pregel/interrupting.py,pregel/lowlevel.py,pregel/ids.py,pregel/reporter.py,pregel/fingerprint.py,pregel/policy.py,pregel/transient.py

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast test-ray test-all check format bench clean

help:  ## list the chores
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.cli: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[cli]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

$(VENV)/.ray: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,ray]'
	@touch $@

$(VENV)/.bench: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@

demo: $(VENV)/.cli  ## audit a source tree with a parallel graph (TREE=path, default: this repository)
	$(BIN)/python -m examples.audit "$(TREE)"

test: $(VENV)/.dev  ## the whole suite, with coverage of channels/ and the pure core
	$(BIN)/python -m pytest tests/unit --numprocesses 2 --cov --cov-report=
	$(BIN)/coverage report --include='channels/*,$(CORE)' --fail-under=100
	$(BIN)/python -m pytest tests --ignore=tests/unit --ignore=tests/crash --numprocesses 2
	$(BIN)/python -m pytest tests/crash

test-fast: $(VENV)/.dev  ## the unit suite, for the inner loop
	$(BIN)/python -m pytest tests/unit --quiet --numprocesses 2

test-ray: $(VENV)/.ray  ## nodes on a real Ray cluster, which is a large install of its own
	$(BIN)/python -m pytest tests/processes -m ray

test-all: $(VENV)/.dev test-ray  ## the nightly sizes: the unit suite 20 times in random order, large hypothesis profiles
	for round in $$(seq 20); do $(BIN)/python -m pytest tests/unit --quiet || exit 1; done
	HYPOTHESIS_PROFILE=nightly $(BIN)/python -m pytest

check: $(VENV)/.dev  ## ruff, formatting, mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p pregel

format: $(VENV)/.dev  ## apply the formatter and the safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.bench  ## measure against LangGraph and the bare floor; ARGS='--quick --only chain'
	$(BIN)/python -m benchmarks $(ARGS)

clean:  ## remove what the chores made
	rm -rf $(VENV) build dist *.egg-info .coverage .coverage.* .hypothesis .mypy_cache .ruff_cache .pytest_cache
