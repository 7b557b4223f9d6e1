# Every command of the project. Each target makes what it needs, so `make up` on a fresh clone is enough.

PYTHON ?=
BIN    := .venv/bin
INSTALL := @PYTHON="$(PYTHON)" sh requirements/install.sh
WORKERS ?= 3
CYCLES ?= 200
DAMAGES ?= 10000
PATRONI ?= 1

.DEFAULT_GOAL := help
.PHONY: help up run dev bare test check faults spec bench peers mutants lock artifacts gas invariants clean

help:  ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

up: run  ## start the whole exchange here: chain, contracts, every service, a seeded market
	@$(BIN)/foretell up

test: dev  ## run the tests
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup

bare: dev  ## start and play a clean copy of this tree where there is only git, make and Python
	sh tests/bare.sh

check: dev  ## the whole gate: format, lint, spelling, types, import arrows, coverage
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n $(WORKERS) --dist loadgroup
	$(BIN)/coverage combine -q
	$(BIN)/coverage report
	$(BIN)/coverage report --include='*/foretell/domain/*' --fail-under=100

faults: dev  ## kill processes and damage files many times: CYCLES=200 DAMAGES=10000; PATRONI= leaves the cluster out
	$(if $(PATRONI),sh tests/faults/install_patroni.sh)
	FORETELL_TEST_CYCLES=$(CYCLES) FORETELL_TEST_DAMAGES=$(DAMAGES) FORETELL_TEST_PATRONI=$(PATRONI) \
	  $(BIN)/pytest -n 2 --dist loadgroup --durations=20 tests/faults

spec: dev  ## which statement of the interfaces is covered by which test
	$(BIN)/python tests/run.py spec

bench: run  ## orders over HTTP, verified, matched and durable, beside the ceiling of the same run
	$(BIN)/foretell bench order

peers: run  ## install the matching of others that foretell bench match measures beside ours
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --requirement requirements/peers.txt

mutants: dev  ## mutation testing of the domain
	$(BIN)/mutmut run && $(BIN)/mutmut results

artifacts: dev  ## compile the contracts again
	$(BIN)/python contracts/build.py

gas: dev  ## measure what the contracts cost, and keep the table
	$(BIN)/python tests/run.py contracts.gas --write

invariants: dev  ## the contracts' invariants for as long as STEPS, from a SEED that it prints
	$(BIN)/python tests/run.py contracts.scenarios.invariants $(if $(STEPS),--steps $(STEPS)) $(if $(SEED),--seed $(SEED))

lock: dev  ## resolve the dependencies again and write the lock files
	$(BIN)/python requirements/lock.py

clean:  ## remove what make made
	rm -rf .venv contracts/node_modules

run:
	$(INSTALL) run

dev:
	$(INSTALL) dev
