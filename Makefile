# `make demo`: train on real data, on a fresh machine. `make test`: lint, types, all tests.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: demo test lint clean

demo: .venv/demo-installed
	$(BIN)/outpace train cnn

test: .venv/test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest --numprocesses auto

lint: .venv/test-installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/mypy

clean:
	rm -rf .venv build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("outpace needs Python 3.10 or newer") if sys.version_info < (3, 10) else 0'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip --disable-pip-version-check install --quiet --upgrade "pip>=25.1"

.venv/demo-installed: .venv/bin/python pyproject.toml constraints.txt
	@echo "installing PyTorch and outpace into .venv ..."
	$(PIP) --editable ".[torch]"
	@touch $@

.venv/test-installed: .venv/bin/python pyproject.toml constraints.txt
	@echo "installing PyTorch, TensorFlow, JAX and the tools into .venv ..."
	$(PIP) --editable . --group lint --group test
	@touch $@
