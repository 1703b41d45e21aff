# Everything sets itself up: on a bare Debian 12 with Python 3.11 or newer, `make demo` or `make test` is all there is to say.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
NODES ?= 240
BIN := .venv/bin

.PHONY: help setup demo test lint clean real test-apiserver test-kubelet test-runtimes bench picture kill

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

setup: .venv/.done ## a virtual environment with rollout and its tools in it

.venv/.done: pyproject.toml .ci/packages
	@.ci/packages
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
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
	$(BIN)/pytest -q -n 4 tests/core tests/inventories tests/report --cov --cov-report=term --cov-fail-under=95
	ROLLOUT_EVERY_LINE=dash $(BIN)/pytest -q -n 5 --dist loadgroup --durations=25 --ignore=tests/core --ignore=tests/inventories --ignore=tests/report

kill: setup ## the agent killed at every line under dash and under busybox (minutes)
	ROLLOUT_EVERY_LINE=all $(BIN)/pytest -q -n 2 tests/agent/test_killed_at_every_line.py

real: setup ## only the tests on real systemd nodes (needs root)
	$(BIN)/pytest -q -n 2 --dist loadgroup tests/real

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

clean: ## forget what was built; not the journal
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage build ./*.egg-info
