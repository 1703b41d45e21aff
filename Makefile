# Everything sets itself up: on a bare Debian 12 with Python 3.11 or newer, `make demo` or `make test` is all you need to type.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
SEEDS ?= 100000
BIN := .venv/bin
unexport PYTHONDONTWRITEBYTECODE # each of some thousand interpreters would compile everything anew
CACHE := $(HOME)/.cache/rollout-tests

# Tests that stay inside the interpreter, and those that start processes or open sockets: see the markers in pyproject.toml.
INSIDE := not process and not root and not night
OUTSIDE := (process or root) and not night
QUICK_WITHOUT := --ignore=tests/kubelet/real_kubelet --ignore=tests/kubelet/newer_kubelets

.PHONY: help setup quick quick-tests lint lint-types lint-rest declared demo clean test compiled test-inside test-counted test-uncounted test-outside undrawn test-times image real night night-tests kill mutants simulate simulate-regions house chaos power rollback-model \
	test-kubelet test-runtimes test-new-nodes incidents healthy-log test-apiserver fuzz bench bench-check bench-diagnose bench-honesty bench-regions bench-serve picture pages site lock audit sbom release-check lowest first-hour first-hour-bastion kubelet-tables

help: ## list the targets
	@awk -F ':.*## ' '/^##@/ { printf "\n%s\n", substr($$0, 5) } /^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Every day

setup: .venv/.done ## make a virtual environment with rollout and its tools

.venv/.done: pyproject.toml requirements/dev.txt .ci/packages
	@.ci/packages
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement requirements/dev.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(BIN)/pip check
	@touch $@

quick: setup ## the inner loop, under a minute: lint, types, and tests that need no process, socket or root; some of those that take long
	@$(MAKE) --no-print-directory --jobs 3 --output-sync=target lint-types lint-rest quick-tests

quick-tests: setup ## of quick only the tests
	ROLLOUT_TESTS=quick $(BIN)/pytest -q -n 2 -m '$(INSIDE)' $(QUICK_WITHOUT)

lint: lint-types lint-rest ## format, ruff, mypy --strict, import-linter, shellcheck

lint-types: setup ## of these only the types
	$(ASIDE) $(BIN)/mypy

lint-rest: setup ## of these all but the types
	$(BIN)/ruff check rollout tests benchmarks docs/site
	$(BIN)/ruff format --check rollout tests benchmarks docs/site
	$(ASIDE) $(BIN)/lint-imports
	@git ls-files '*.sh' '.ci/*' ':!rollout/agent/' ':!rollout/kubelet/runtimes/' | xargs shellcheck
	@$(BIN)/python -m rollout.adapters.agent_program | shellcheck -
	@git ls-files 'rollout/lab/standins/*' 'tests/agent/standins/*' 'tests/agent/time/*' | grep -v '\.' | xargs shellcheck -s sh

declared: setup ## write anew what is made from declarations in the code: the tables of commands and of what they import, the schemas, the names on the wire, the diagrams of the run machine
	$(BIN)/python -m tests.command_table
	$(BIN)/python -m tests.imported_modules
	@set -e; for what in documents inventory playbook sequence; do \
	  made=$$($(BIN)/python -m rollout.cli show schema $$what); printf '%s\n' "$$made" > docs/schemas/$$what.json; done
	$(BIN)/python -m tests.wire_names
	$(BIN)/python -m tests.core.run.drawn
	$(BIN)/python -m tests.agent.protocol

demo: setup ## the main job on an embedded fleet of NODES nodes (240): canary, waves, halt, reverts, emergency rollback (ENGINE=dask: through workers)
	@PATH="$(CURDIR)/$(BIN):$$PATH" NODES=$(or $(NODES),240) ENGINE=$(or $(ENGINE),embedded) docs/demo.sh

clean: ## remove what was built; the journal stays
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage build ./*.egg-info

##@ Before a merge

test: setup ## what CI runs, at most 15 minutes on 2 quiet cores: all that a change can break; long traces are sampled
	@$(MAKE) --no-print-directory --jobs 5 --keep-going --output-sync=target ASIDE='nice -n 10' lint-types lint-rest test-counted test-uncounted test-outside

# What cannot be read is reported by the tests.
compiled: setup ## compile the tests once, before nine processes do it at the same time
	@$(BIN)/pytest -q --collect-only --compile >/dev/null 2>&1 || :

test-inside: setup ## the half without processes: core, kubelet, gates, app and features are each covered to 95 % of their branches
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target test-counted test-uncounted

# One process for each half: each reads its tests, which takes as long as some thousand of them. They take the longest, so they step aside for none.
test-counted: compiled ## of test-inside: the tests whose branches are counted
	$(BIN)/pytest -q --counted -m '$(INSIDE) and not no_cover' --cov --cov-report=
	@for package in core kubelet gates app features; do $(BIN)/coverage report --include="rollout/$$package/*" --fail-under=95 || exit 1; done

test-uncounted: compiled ## of test-inside: the others
	$(BIN)/pytest -q --uncounted -m '$(INSIDE) and no_cover'

test-outside: compiled image ## the other half: real OpenSSH, PostgreSQL, Chromium, and as root real systemd nodes
	$(BIN)/pytest -q -n 7 --dist loadgroup --no-loadscope-reorder --durations=25 --outside -m '$(OUTSIDE)'

undrawn: compiled image ## the tests that `make test` leaves out with this tree's seed: what no draw has shown may have been broken for long (root; 25 minutes)
	$(BIN)/pytest -q -n 7 --dist loadgroup --no-loadscope-reorder --undrawn -m 'not night'

image: setup ## build what the real systemd nodes of the tests boot from, if it is not there (root; `test-outside` and `real` do it)
	@$(BIN)/python -m tests.bed

real: setup image ## only the tests on real systemd nodes (root)
	$(BIN)/pytest -q -n 2 --dist loadgroup tests/real

test-times: setup image ## measure what each file of tests costs, and write tests/times.csv (root; half an hour)
	@rm -rf .cache/times
	$(BIN)/pytest -q -n 2 --times .cache/times -m '$(INSIDE)'
	$(BIN)/pytest -q -n 4 --dist loadgroup --no-loadscope-reorder --times .cache/times --outside -m '$(OUTSIDE)'
	$(BIN)/python -m tests.times .cache/times

house: setup ## how the source is built, as counts: modules, names that stand twice, the rooms that two values visit
	@$(BIN)/python -m tests.house

##@ At night

night: ## everything in full; each step runs, also after one that failed (hours; root)
	$(MAKE) --keep-going night-tests mutants simulate chaos power test-kubelet test-runtimes test-new-nodes incidents test-apiserver demo

night-tests: lint ## every test with every case, and ten times the examples; SAMPLE_SEED=… gives a printed seed back
	ROLLOUT_TESTS=night ROLLOUT_SAMPLE_SEED=$(or $(SAMPLE_SEED),$$RANDOM$$RANDOM) $(BIN)/pytest -q -n 4 --dist loadgroup --durations=25

kill: setup ## only the kills, at every step: the agent at each line, raced and without power; the controller at each write
	ROLLOUT_TESTS=night $(BIN)/pytest -q -n 2 tests/agent/test_killed_at_every_line.py tests/agent/test_guard_races.py tests/agent/test_power_cuts.py tests/story/test_kill.py

mutants: setup ## take out one line at a time in a copy: its test must fail; writes results/mutants.md (root; NAME=… for one)
	$(BIN)/python -m tests.mutants $(NAME)

simulate: setup ## the real machine and driver over model nodes, SEEDS drawn plays, every law checked; writes results/simulation.md
	$(BIN)/rollout simulate --seeds $(SEEDS) --write results/simulation.md

rollback-model: setup ## SEQUENCES random sequences of apply, rollback, emergency, resume and verify, against a list of file versions (SEQUENCES=2000, SEED=0)
	$(BIN)/python -m tests.cli.rollback_model $(or $(SEQUENCES),2000) $(or $(SEED),0)

simulate-regions: setup ## one run over 100,000 model nodes in 20 regions, with and without a cut; writes results/scale.md
	$(BIN)/python -m benchmarks.regions --write results/scale.md

chaos: setup image ## RUNS runs on real systemd nodes, one random fault in each; writes results/reliability.md (root; RUNS=200, SEED=…, FLEETS=2, ENGINE=dask)
	$(BIN)/python -m tests.chaos --runs $(or $(RUNS),200) --fleets $(or $(FLEETS),2) --engine $(or $(ENGINE),embedded) $(if $(SEED),--seed $(SEED))

power: setup ## CUTS power cuts of a QEMU machine under software emulation (the first time it fetches a kernel; CUTS=10)
	tests/power/get-kernel.sh $(CACHE)/power
	$(BIN)/python -m tests.power --kernel $(CACHE)/power/boot --cuts $(or $(CUTS),10)

##@ When something changes that is not ours

kubelet-tables: setup ## the tables of one kubelet minor out of a Kubernetes tree: MINOR=38 SOURCE=~/src/kubernetes (COMPARE=1: only compare)
	@$(BIN)/python -m tests.tables "$(MINOR)" "$(SOURCE)" $(if $(COMPARE),--compare)

test-kubelet: setup ## every case through a real kubelet 1.20.2 and through us (root; first builds it, 7 minutes; CASE='name', FRESH=500, RECORD=1)
	@test "$$(id -u)" = 0 || { echo "NOT TESTED against a real kubelet: it needs root" >&2; exit 2; }
	tests/kubelet/real_kubelet/build-kubelet.sh $(CACHE)
	$(BIN)/python -m tests.kubelet.real_kubelet $(if $(CASE),--case '$(CASE)') $(if $(FRESH),--fresh $(FRESH)) $(if $(RECORD),--record)

test-runtimes: setup ## our files read by containerd and dockerd of three Debian releases (first fetches them, 400 MB unpacked; root for all of it)
	tests/kubelet/real_runtimes/get-runtimes.sh $(CACHE)
	$(BIN)/pytest -q -n 2 tests/kubelet/real_runtimes

test-new-nodes: setup ## texts for new nodes, read by Ignition and by cloud-init's schema (first fetches both from Debian)
	tests/features/export/get-tools.sh $(CACHE)
	$(BIN)/pytest -q tests/features/export

incidents: setup ## the three incidents on a real node with a real kubelet 1.20.2 and containerd; writes results/incidents.md (root; builds and fetches them first; ONLY=1)
	@test "$$(id -u)" = 0 || { echo "NOT TESTED: it needs root" >&2; exit 2; }
	tests/kubelet/real_kubelet/build-kubelet.sh $(CACHE)
	tests/kubelet/real_runtimes/get-runtimes.sh $(CACHE)
	$(BIN)/python -m tests.incidents $(if $(ONLY),--only $(ONLY))

healthy-log: setup ## an hour of a healthy kubelet 1.20.2, in whose log diagnose must find nothing; writes results/healthy.md (root; after make incidents; MINUTES=60, V=4, LOG=file.gz keeps it)
	$(BIN)/python -m tests.incidents.healthy --minutes $(or $(MINUTES),60) --verbosity $(or $(V),4) $(if $(LOG),--log $(LOG))

test-apiserver: setup ## the gates on a real kube-apiserver (first builds it, 7 minutes; RECORD=1 records)
	tests/adapters/kubernetes/build-apiserver.sh $(CACHE)
	ROLLOUT_REAL_API=1 ROLLOUT_RECORD=$(RECORD) $(BIN)/pytest -q tests/adapters/kubernetes tests/features/drain

fuzz: setup ## every parser in limits of CPU time and memory; then every reader of foreign bytes under a fuzzer, SECONDS for each (60); what breaks one stays in tests/hostile/cases (TARGET=…)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement requirements/fuzz.txt
	$(if $(TARGET),,$(BIN)/python -m tests.hostile.limited)
	$(BIN)/python -m tests.hostile.fuzz $(or $(SECONDS),60) $(TARGET)

bench: setup ## every figure in one run, beside a hand-written script and other tools; writes benchmarks/results.* (root; a quiet machine, an hour and more; NODES=100 ROUNDS=5, PARTS=real,far,beside for these alone)
	@test -x .cache/peers/bin/clush || { python3 -m venv .cache/peers && .cache/peers/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement requirements/peers.txt; }
	$(BIN)/python -m benchmarks --tools .cache/peers/bin --nodes $(or $(NODES),100) --rounds $(or $(ROUNDS),5) $(if $(PARTS),--parts $(PARTS))

bench-check: setup ## 1,000 kubelet configurations through check --kubelet-config, written to benchmarks/check-kubelet.md
	$(BIN)/python -m benchmarks.check_kubelet

bench-diagnose: setup ## 1 GB of each form of log and events through diagnose: CPU and memory; writes benchmarks/diagnose.md (SIZE=1000, in MB)
	$(BIN)/python -m benchmarks.diagnose --size $(or $(SIZE),1000)

bench-honesty: setup ## how often findings of diagnose are right, over labelled inputs; writes benchmarks/honesty.md
	$(BIN)/python -m benchmarks.honesty

bench-regions: setup ## what workers of regions cost beside the embedded engine, and the scheduler's memory; writes benchmarks/regions.md (root; a quiet machine; NODES=250 ROUNDS=2)
	$(BIN)/python -m benchmarks.region_workers --nodes $(or $(NODES),250) --rounds $(or $(ROUNDS),2)

bench-serve: setup ## `rollout serve` over a journal of 100 runs of 2,000 nodes, and in Chromium with 20,000; writes benchmarks/serve.md (some minutes)
	$(BIN)/python -m benchmarks.serve

pages: setup ## make the screenshots of `rollout serve` in docs/pictures anew, by runs on an embedded fleet (Chromium)
	$(BIN)/python docs/pictures/pages.py .rollout/pages docs/pictures

picture: setup ## make the picture of a run in the README anew, by a run
	@PATH="$(CURDIR)/$(BIN):$$PATH" docs/pictures/make.sh

site: setup ## the documentation site, in .cache/site/html; a warning is an error
	$(BIN)/python -m tests.docs.site .cache/site/pages
	$(BIN)/sphinx-build -q -W --keep-going -n .cache/site/pages .cache/site/html

##@ Before a release

.cache/tools/.done: requirements/tools.txt
	@$(PYTHON) -m venv .cache/tools
	@.cache/tools/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement requirements/tools.txt
	@touch $@

COMPILE := .cache/tools/bin/uv pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes --custom-compile-command 'make lock'

lock: .cache/tools/.done ## the lock files anew from pyproject.toml and requirements/*.in; what fits stays as it is (UPGRADE=--upgrade)
	$(COMPILE) $(UPGRADE) --extra dev --extra docs --extra page --extra postgresql --extra dask --extra notices pyproject.toml requirements/build.in --output-file requirements/dev.txt
	$(COMPILE) --constraint requirements/dev.txt --extra page --extra postgresql --extra dask --extra notices pyproject.toml requirements/build.in --output-file requirements/run.txt
	$(COMPILE) $(UPGRADE) requirements/peers.in --output-file requirements/peers.txt
	$(COMPILE) $(UPGRADE) requirements/fuzz.in --output-file requirements/fuzz.txt
	$(COMPILE) $(UPGRADE) requirements/record.in --output-file requirements/record.txt
	$(COMPILE) $(UPGRADE) requirements/tools.in --output-file requirements/tools.txt
	@$(MAKE) --no-print-directory sbom

audit: .cache/tools/.done ## known holes in the packages that run and that test; asks a service on the network, and fails where that cannot tell
	.cache/tools/bin/pip-audit --progress-spinner off --disable-pip --require-hashes --strict --requirement requirements/run.txt --requirement requirements/dev.txt

SBOM := requirements/kubelet-rollout.cdx.json

sbom: .cache/tools/.done ## the list of parts (CycloneDX) of what runs, checked against the lock file; the wheel holds it
	.cache/tools/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --short-PURLs -o $(SBOM) requirements/run.txt
	$(PYTHON) -m tests.hostile.parts $(SBOM)
	$(PYTHON) -m tests.hostile.parts $(SBOM) requirements/run.txt

release-check: .cache/tools/.done ## what a release must be: two builds of one digest, its metadata, its list of parts, and that it installs and runs
	$(PYTHON) -m tests.hostile.parts $(SBOM) requirements/run.txt
	tests/release/check.sh .cache/tools/bin .cache/release

lowest: .cache/tools/.done ## the tests inside the interpreter, and the journal on PostgreSQL, with the lowest versions that pyproject.toml allows
	@rm -rf .cache/lowest && $(PYTHON) -m venv .cache/lowest
	.cache/tools/bin/uv pip compile --quiet --no-config --python .cache/lowest/bin/python --resolution lowest-direct --extra page --extra postgresql --extra dask --extra notices pyproject.toml requirements/build.in --output-file .cache/lowest/pins.txt
	.cache/tools/bin/uv pip compile --quiet --no-config --generate-hashes --python .cache/lowest/bin/python --constraint .cache/lowest/pins.txt --extra dev --extra page --extra postgresql --extra dask --extra notices pyproject.toml requirements/build.in --output-file .cache/lowest/all.txt
	.cache/lowest/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement .cache/lowest/all.txt
	.cache/lowest/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	.cache/lowest/bin/pytest -q -n 2 -m '$(INSIDE)' $(QUICK_WITHOUT)
	.cache/lowest/bin/pytest -q tests/adapters/journal/test_contract.py

first-hour: .cache/tools/.done ## from an empty Debian with Python to a finished rollout on the lab, by the README's words; counted and timed (root)
	@test "$$(id -u)" = 0 || { echo "NOT TESTED: it needs root" >&2; exit 2; }
	tests/first_hour/first-hour.sh .cache/tools/bin .cache/first-hour

first-hour-bastion: setup .cache/tools/.done ## from an empty Debian with an SSH key and an Ansible inventory to the plan and the canary of 300 nodes behind a bastion; writes results/first-hour.md (root)
	@test "$$(id -u)" = 0 || { echo "NOT TESTED: it needs root" >&2; exit 2; }
	tests/first_hour/bastion.sh .cache/tools/bin .cache/first-hour-bastion results/first-hour.md
