# Everything sets itself up: on a bare Debian 12 with Python 3.11 or newer, `make demo` or `make test` is all there is to say.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
NODES ?= 240
SEEDS ?= 100000
BIN := .venv/bin

.PHONY: audit fuzz lock sbom chaos help setup demo test lint clean real power test-apiserver test-kubelet test-runtimes bench picture kill simulate mutants

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

setup: .venv/.done ## a virtual environment with rollout and its tools in it

.venv/.done: pyproject.toml requirements/dev.txt .ci/packages
	@.ci/packages
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/dev.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: setup ## the main job on an embedded fleet of NODES nodes: canary, waves, halt, reverts, emergency rollback
	@PATH="$(CURDIR)/$(BIN):$$PATH" NODES=$(NODES) docs/demo.sh

lint: setup ## ruff, mypy --strict, import-linter, shellcheck
	$(BIN)/ruff check rollout tests benchmarks
	$(BIN)/ruff format --check rollout tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports
	@git ls-files '*.sh' '.ci/*' | xargs shellcheck
	@git ls-files 'rollout/adapters/lab/standins/*' 'tests/agent/standins/*' | grep -v '\.' | xargs shellcheck -s sh

test: lint ## every check and every test; core is covered to at least 95 % of its branches
	$(BIN)/pytest -q -n 4 tests/core tests/app tests/inventories tests/report --cov --cov-report=term --cov-fail-under=95
	$(BIN)/pytest -q -n 5 --dist loadgroup --durations=25 --ignore=tests/core --ignore=tests/app --ignore=tests/inventories --ignore=tests/report

chaos: setup ## RUNS runs on real systemd nodes, a fault at a random instant in each; writes docs/reliability.md (root; RUNS=200, SEED=…, FLEETS=2)
	$(BIN)/python -m tests.chaos --runs $(or $(RUNS),200) --fleets $(or $(FLEETS),2) $(if $(SEED),--seed $(SEED))

kill: setup ## every step where `make test` tries some: the agent killed at each line, raced at each, cut from its power at each; the controller at each write (tens of minutes)
	ROLLOUT_EVERY_STEP=1 $(BIN)/pytest -q -n 2 tests/agent/test_killed_at_every_line.py tests/agent/test_guard_races.py tests/agent/test_power_cuts.py tests/story/test_kill.py

real: setup ## only the tests on real systemd nodes (needs root)
	$(BIN)/pytest -q -n 2 --dist loadgroup tests/real

power: setup ## power cuts of a QEMU machine under software emulation (a quarter of an hour; the first time it brings a kernel; CUTS=10)
	tests/power/get-kernel.sh $(HOME)/.cache/rollout-tests/power
	$(BIN)/python -m tests.power --kernel $(HOME)/.cache/rollout-tests/power/boot --cuts $(or $(CUTS),10)

picture: setup ## the picture of a run in the README, made anew by a run
	@PATH="$(CURDIR)/$(BIN):$$PATH" docs/pictures/make.sh

test-apiserver: setup ## the API gates on a real kube-apiserver: the first time it is built, in 7 minutes (golang-go, etcd-server; RECORD=1 records)
	tests/gates/build-apiserver.sh $(HOME)/.cache/rollout-tests
	ROLLOUT_REAL_API=1 ROLLOUT_RECORD=$(RECORD) $(BIN)/pytest -q tests/gates

test-kubelet: setup ## every case through a real kubelet 1.20.2 and through us (root; the first time it is built, in 7 minutes; CASE='name', FRESH=500, RECORD=1)
	@test "$$(id -u)" = 0 || { echo "NOT TESTED against a real kubelet: it needs root" >&2; exit 2; }
	tests/kubelet_real/build-kubelet.sh $(HOME)/.cache/rollout-tests
	$(BIN)/python -m tests.kubelet_real $(if $(CASE),--case '$(CASE)') $(if $(FRESH),--fresh $(FRESH)) $(if $(RECORD),--record)

test-runtimes: setup ## what we write for container runtimes, read by containerd and dockerd of three Debians (the first time it brings their packages, 400 MB unpacked; root for all of it)
	tests/runtimes_real/get-runtimes.sh $(HOME)/.cache/rollout-tests
	$(BIN)/pytest -q -n 2 tests/runtimes_real

bench: setup ## 1,000 kubelet configurations through check --kubelet-config; writes benchmarks/check-kubelet.md
	$(BIN)/python -m benchmarks.check_kubelet

fuzz: setup ## every reader of foreign bytes under a fuzzer, SECONDS for each (60); what breaks one stays in tests/hostile/cases (TARGET=…)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/fuzz.txt
	$(BIN)/python -m tests.hostile.fuzz $(or $(SECONDS),60) $(TARGET)

.cache/tools/.done: requirements/tools.txt
	@$(PYTHON) -m venv .cache/tools
	@.cache/tools/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/tools.txt
	@touch $@

COMPILE := .cache/tools/bin/uv pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes --custom-compile-command 'make lock'

lock: .cache/tools/.done ## the lock files anew from pyproject.toml and requirements/*.in; what fits stays as it is (UPGRADE=--upgrade)
	$(COMPILE) $(UPGRADE) --extra dev pyproject.toml requirements/build.in --output-file requirements/dev.txt
	$(COMPILE) --constraint requirements/dev.txt pyproject.toml requirements/build.in --output-file requirements/run.txt
	$(COMPILE) $(UPGRADE) requirements/fuzz.in --output-file requirements/fuzz.txt
	$(COMPILE) $(UPGRADE) requirements/tools.in --output-file requirements/tools.txt

audit: .cache/tools/.done ## known holes in what runs and in what tests it; asks a service on the network, and fails where that cannot tell
	.cache/tools/bin/pip-audit --progress-spinner off --disable-pip --require-hashes --strict --requirement requirements/run.txt --requirement requirements/dev.txt

sbom: .cache/tools/.done ## the list of parts (CycloneDX) of what runs: .cache/sbom.cdx.json, checked against the lock file
	.cache/tools/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --short-PURLs -o .cache/sbom.cdx.json requirements/run.txt
	$(PYTHON) -m tests.hostile.parts .cache/sbom.cdx.json requirements/run.txt

simulate: setup ## the real machine and driver over model nodes, SEEDS of them with drawn faults, every law asked; writes docs/simulation.md
	$(BIN)/rollout simulate --seeds $(SEEDS) --write docs/simulation.md

mutants: setup ## one line at a time taken out of a copy: each proof must find what it is for; writes docs/mutants.md (root; NAME=… for one)
	$(BIN)/python -m tests.mutants $(NAME)

clean: ## forget what was built; not the journal
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage build ./*.egg-info
