# Everything is set up in .venv; nothing is installed on the system. What the system lacks is named, not fetched.

PYTHON ?= python3
DEVICE ?= auto
BUDGET ?= 120

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install
PROBE := from kernelwright.devices.cuda import probe; found = probe()

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run test check test-gpu fmt device-packages

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.* ## \(.*\)/make \1	\2/p' $(MAKEFILE_LIST) | expand -t 16

run: device-packages ## search for a fast gemm within 2 minutes: on the GPU, or on the cpu where there is none
	$(BIN)/kernelwright run gemm --device $(DEVICE) --seconds $(BUDGET)

# The tests start hundreds of processes that import the package: with its bytecode there, each is half a second faster.
test: check ## all that CI runs: static checks, then the tests with branch coverage
	@$(BIN)/python -m compileall -q src
	$(BIN)/python -m pytest --cov --numprocesses logical --maxprocesses 4 --dist worksteal

check: $(VENV)/.dev ## static checks only: lint, format, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

test-gpu: $(VENV)/.dev $(VENV)/.cuda ## the tests that need a CUDA device; fails where there is none
	@$(BIN)/python -c '$(PROBE); raise SystemExit(None if found.usable else "make test-gpu: " + found.reason)'
	$(BIN)/python -m pytest -m gpu

fmt: $(VENV)/.dev ## format, and mend what the linter can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# A machine with a GPU gets NVIDIA's packages; the cpu device needs a compiler instead.
device-packages: $(VENV)/.run
	@if [ "$(DEVICE)" != cpu ] && $(BIN)/python -c '$(PROBE); raise SystemExit(not found.usable)'; then \
		$(MAKE) --no-print-directory --silent $(VENV)/.cuda; \
	elif ! command -v g++ > /dev/null; then \
		echo "the cpu device compiles kernels with g++, which is missing: apt-get install g++" >&2; exit 1; \
	fi

$(VENV)/.run: pyproject.toml | $(BIN)/pip
	$(PIP) --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/pip
	$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.run

$(VENV)/.cuda: pyproject.toml | $(BIN)/pip
	@echo "installing NVIDIA's packages for the GPU"
	$(PIP) --editable '.[cuda]'
	@touch $@

$(BIN)/pip:
	@command -v $(PYTHON) > /dev/null || \
		{ echo "Python 3.11 or newer is needed: apt-get install python3 python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed, $(PYTHON) is older: make PYTHON=python3.11 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2> /dev/null || \
		{ echo "$(PYTHON) cannot make virtual environments: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
