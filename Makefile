# Every command of the project. Each target makes what it needs, so `make up` on a fresh clone is enough.

PYTHON ?=
BIN    := .venv/bin
INSTALL := @PYTHON="$(PYTHON)" sh requirements/install.sh
WORKERS ?= 4
RERUNS ?= 1
RUNS ?= 20
CYCLES ?= 200
DAMAGES ?= 10000
CASES ?= 50000
LIES ?= 2000
HISTORIES ?= 1000
RANKINGS ?= 100
PATRONI ?= 1
SCALE ?= 1
MINUTES ?= 60
# The whole suite: modules beside each other (tests/runs/distribution.py). A test that fails runs once more, and the summary has why: RERUNS=0 for none.
BESIDE = -n $(WORKERS) --dist loadgroup --reruns $(RERUNS) --reruns-delay 2 --rerun-show-tracebacks -raR

.DEFAULT_GOAL := help
.PHONY: help rooms up run dev bare test again browser check faults cases spec spec-mutants bench attacks figures soak peers parquet mutants mutants-contracts audit docs client client-types client-typescript sbom lock artifacts examples compatibility screenshot gas invariants clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 15

up: run  ## start the sandbox: chain, contracts, every API, a first market
	@$(BIN)/foretell up

test: dev browser  ## run the tests
	$(BIN)/pytest $(BESIDE)

again: dev browser  ## run the tests RUNS=20 times in a row beside BUSY=2 busy processes: ONLY=tests/app,tests/runtime; WRITE=FILE.md
	$(BIN)/python tests/run.py runs.again --runs $(RUNS) --workers $(WORKERS) $(if $(BUSY),--busy $(BUSY)) $(if $(ONLY),--only $(ONLY)) $(if $(WRITE),--write $(WRITE))

browser:
	@sh tests/e2e/install_chromium.sh

bare: dev  ## start a copy of this tree and run its demo with only git, make and Python
	sh tests/bare.sh

check: dev browser  ## run all checks: format, lint, spelling, types, import contracts, tests, coverage
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/run.py web.client_types
	$(BIN)/python requirements/node.py web node_modules/typescript/bin/tsc --noEmit
	$(BIN)/python requirements/node.py web node_modules/typescript/bin/tsc --noEmit --project client
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(BESIDE)
	$(BIN)/coverage combine -q
	$(BIN)/coverage report
	$(BIN)/coverage report --include='*/foretell/domain/*' --fail-under=100

faults: dev  ## kill processes, damage files, lie, attack: CYCLES=200 DAMAGES=10000 LIES=2000 CASES=50000 HISTORIES=1000; ONLY=kills,lies; WRITE=FILE.md; PATRONI= skips the cluster
	$(if $(PATRONI),$(if $(or $(if $(ONLY),,all),$(findstring patroni,$(ONLY))),sh tests/faults/install_patroni.sh))
	FORETELL_TEST_CYCLES=$(CYCLES) FORETELL_TEST_DAMAGES=$(DAMAGES) FORETELL_TEST_LIES=$(LIES) \
	  FORETELL_TEST_RANKINGS=$(RANKINGS) FORETELL_TEST_HISTORIES=$(HISTORIES) FORETELL_TEST_SCHEMA_CASES=$(CASES) \
	  FORETELL_TEST_PATRONI=$(PATRONI) FORETELL_TEST_ATTACKS=$(SCALE) \
	  $(BIN)/python tests/run.py fault_parts $(if $(ONLY),--only $(ONLY)) $(if $(WRITE),--write $(WRITE))

attacks: dev  ## print what another client notices of connection, frame and body floods, and judge it: SCALE=1
	$(BIN)/python tests/run.py faults.attacks.play --scale $(SCALE)

cases: dev  ## list the tests of each fault case
	$(BIN)/python tests/run.py cases

spec: dev  ## list the tests of each interface statement
	$(BIN)/python tests/run.py spec

parquet: run  ## install what writes exports in Parquet
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --requirement requirements/parquet.txt

spec-mutants: dev  ## break interface statements one by one; their tests must fail: ROWS=41,42
	$(BIN)/python tests/run.py spec_mutants $(if $(ROWS),--rows $(ROWS))

bench: run  ## measure orders a second over HTTP, next to the ceiling of the same run
	$(BIN)/foretell bench order

figures: dev  ## measure every figure while nothing else runs, and write the table of the documentation
	$(BIN)/foretell bench all --write docs/reference/performance.md $(if $(POSTGRES),--postgres $(POSTGRES))

soak: run  ## load a whole sandbox for MINUTES=60, and judge what grows; WRITE=FILE.md in place of build/soak.md
	@mkdir -p build
	$(BIN)/foretell bench soak --minutes $(MINUTES) --write $(or $(WRITE),build/soak.md)

peers: run  ## install the peer libraries that foretell bench match compares with
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --requirement requirements/peers.txt

mutants: dev  ## run the mutation tests of the domain
	$(BIN)/mutmut run && $(BIN)/mutmut results

mutants-contracts: dev  ## break the contracts in a hundred ways; their tests must fail: ONLY=fees
	$(BIN)/python tests/run.py contracts.faulty.score $(if $(ONLY),--only $(ONLY))

audit:  ## look the locked packages up among known vulnerabilities; needs the network
	$(INSTALL) audit
	$(BIN)/python requirements/audit.py vulnerabilities

docs:  ## build the documentation's site, served at /docs in place of the plain pages; needs no network once it is installed
	$(INSTALL) docs
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=.venv/docs $(BIN)/python -m mkdocs build --strict --quiet
	@echo "open src/foretell/web/site/build/index.html, or start make up and open http://127.0.0.1:8000/docs"

reference: run  ## write the pages of docs/reference that are made from the code
	$(BIN)/python requirements/reference.py

screenshot: dev  ## take the picture of the README from today's app, in nine minutes
	-FORETELL_TEST_PICTURE_PAUSE_S=62 $(BIN)/pytest -q -n 0 tests/examples/test_pictures.py -k picture_of_the_readme
	$(BIN)/python requirements/screenshot.py build/web/readme.png docs/web.png
	$(BIN)/pytest -q -n 0 tests/examples/test_pictures.py -k picture_of_the_readme

client-types: dev  ## write the types of the client in TypeScript, from the API documents
	$(BIN)/python tests/run.py web.client_types

client-typescript: client-types  ## build the package foretell-client of npm in build/client-typescript
	$(BIN)/python requirements/typescript_client.py build/client-typescript

client: run  ## build the package foretell-client in build/client
	$(BIN)/python requirements/client.py build/client

sbom:  ## list the locked packages in build/sbom, as CycloneDX JSON
	$(INSTALL) audit
	$(BIN)/python requirements/audit.py sbom build/sbom

artifacts: dev  ## compile the contracts
	$(BIN)/python contracts/build.py

gas: dev  ## measure the contracts' gas and update the table
	$(BIN)/python tests/run.py contracts.gas --write

rooms: dev  ## print the modules, imports and floors of each package
	$(BIN)/python tests/rooms.py

invariants: dev  ## run STEPS random steps on the contracts, from a printed SEED
	$(BIN)/python tests/run.py contracts.scenarios.invariants $(if $(STEPS),--steps $(STEPS)) $(if $(SEED),--seed $(SEED))

examples: dev  ## record the examples of the API documents while the tests of the APIs run
	FORETELL_TEST_EXAMPLES=$(CURDIR)/src/foretell/edge/documents/recorded \
	  $(BIN)/pytest -q tests/trading tests/creation tests/relayer tests/data tests/discovery tests/edge tests/web \
	  tests/settlement/test_owed_tokens.py \
	  --ignore=tests/edge/documents/test_random_requests.py --ignore=tests/edge/documents/test_generated_clients.py \
	  --ignore=tests/edge/documents/test_completeness.py

compatibility: dev  ## call every method of the ecosystem's clients, and write the table of the documentation
	FORETELL_TEST_COMPATIBILITY=1 $(BIN)/pytest -q -n 0 tests/ecosystem/compatibility/test_*_clients.py

lock: dev  ## resolve the dependencies and write the lock files
	$(BIN)/python requirements/lock.py

clean:  ## remove the installed packages (.venv, node_modules) and the built web app
	rm -rf .venv contracts/node_modules tests/edge/generated/node_modules tests/ecosystem/npm/node_modules web/node_modules web/client/dist web/client/types src/foretell/web/build src/foretell/web/site/pages src/foretell/web/site/.foretell-pages

run:
	$(INSTALL) run

dev:
	$(INSTALL) dev
