# `make run` opens the chat; `make check`, `make test` and `make test-all` show that a change is right. Each installs what
# it needs into .venv. `make help` lists them all.
PYTHON ?= python3
BIN := .venv/bin
RUNS := .venv/.runs
TESTS := .venv/.tests
BENCHES := .venv/.benches
CLIENTS := .venv/clients/.installed .venv/clients-aider/.installed .venv/clients-llama-index/.installed
MCP_SERVERS_OF_PYPI := .venv/mcp/.installed .venv/mcp-sqlite/.installed
MCP_SERVERS_OF_NPM := .venv/mcp-files/.installed
# Many tests wait for clocks and sockets: three processes keep two cores busy, and with four the browsers hold each other
# up. A file stays in one process, and the files begin in their order, so that the long ones (browser, fault,
# integration) don't come last.
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

# Compiled modules are kept, or each process of a run compiles them all.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help run check test test-all test-clients lint unit fast slow lock bench-store bench-turn bench-page bench-context bench-quality bench-api bench-local load fault attack backup restore export import migrate

help:
	@echo "make run        opens the chat on http://localhost:8501"
	@echo "make check      linters, types and unit tests: a minute"
	@echo "make test       check, integration, page and the browser's main journeys: five minutes"
	@echo "make test-all   test, and all that is slow: fifteen minutes more"
	@echo "make test-clients   clients of PyPI over the server: five minutes the first time, then one"
	@echo "make backup [TO=file]  restore FROM=file  export TO=file  import FROM=file  migrate FROM=file TO=url"
	@echo "make fault | attack | load | bench-store | bench-turn | bench-page | bench-context | bench-quality | bench-api | bench-local"

# PORT=<number> chooses another port.
run: $(RUNS)
	@$(BIN)/streamlit run app.py $(if $(PORT),--server.port $(PORT))

# The linters and the type checker need one core, and the tests wait now and then.
check: $(TESTS)
	$(MAKE) --no-print-directory -j2 lint unit

test: $(TESTS)
	$(MAKE) --no-print-directory -j2 lint fast

test-all: test
	$(MAKE) --no-print-directory slow
	$(MAKE) --no-print-directory test-clients

lint: $(TESTS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

unit: $(TESTS)
	$(BIN)/python -m pytest tests/unit -n 2 -m "not slow"

fast: $(TESTS)
	$(PYTEST) -m "not slow"

# What `make test` leaves out: properties with ten times as many examples, faults put into the product that the tests have
# to see, and attacks on a started server. Its tests wait longer than those of `make test`, so one process more.
slow: $(TESTS)
	$(PYTEST) -n 4 -m "slow or hypothesis" --hypothesis-profile thorough --durations 30
	$(BIN)/python -m tests.mutation --sample 30
	$(BIN)/python -m bench.attack --short

# Programs of PyPI have a chat with the server, and MCP servers of PyPI and npm are called by it. Those that can't be
# installed are skipped.
test-clients: $(TESTS)
	-$(MAKE) --no-print-directory --keep-going $(CLIENTS) $(MCP_SERVERS_OF_PYPI) $(MCP_SERVERS_OF_NPM)
	$(BIN)/python -m pytest tests/client

bench-store: $(TESTS)
	$(BIN)/python -m bench.store

# Needs a Chromium: statements, transactions and CPU of a turn beside a bare LangGraph and a bare Streamlit chat, and what idle
# tabs cost. ONLY=service|page does one part; WHERE=1 lists who sends the statements.
bench-turn: $(TESTS)
	$(BIN)/python -m bench.turn $(if $(ONLY),--only $(ONLY)) $(if $(WHERE),--where)

# Needs a Chromium: the page beside a bare Streamlit chat over the same endpoint.
bench-page: $(TESTS)
	$(BIN)/python -m bench.page

# The other strategies and libraries over one scripted chat; writes docs/bench-context.md.
bench-context: $(BENCHES)
	$(BIN)/python -m bench.context

# What folds keep of public data that isn't in the project: DATA=<folder> says where it is; writes docs/bench-quality.md.
bench-quality: $(BENCHES)
	$(BIN)/python -m bench.quality $(if $(DATA),--data $(DATA))

# Installs a small model and its server (130 MB) into a place of its own, and has a chat with it for half an hour; writes
# docs/bench-local.md.
bench-local: $(TESTS)
	$(BIN)/python -m bench.local

# Needs a Chromium: what the HTTP API adds to an answer, and the page beside 500 of its open streams.
bench-api: $(TESTS)
	$(BIN)/python -m bench.api

# Needs a Chromium and a Postgres: a hundred programs and twenty pages on two servers; writes the table of docs/scale.md.
load: $(TESTS)
	$(BIN)/python -m bench.load --write

# Kills, locks, full disks, load and outages of Postgres for about a quarter of an hour; the last line sums up.
# SEED=<number> repeats a run.
fault: $(TESTS)
	$(BIN)/python -m tests.fault $(if $(SEED),--seed $(SEED))

# What one visitor, user or program can do to a server and to its others, in about a quarter of an hour: memory, /health and
# another user's turns under each attack, on servers of its own. ONLY=<name> does one.
attack: $(TESTS)
	$(BIN)/python -m bench.attack $(if $(ONLY),--only $(ONLY))

# Copies the database while it's in use; TO=<file> says where to. Back by restore FROM=<file>, with no server running.
backup: $(RUNS)
	$(BIN)/python -m graph.admin backup $(TO)

restore: $(RUNS)
	$(BIN)/python -m graph.admin restore $(FROM)

# All sessions as JSON Lines, with every record and version: export TO=<file>, import FROM=<file>.
export: $(RUNS)
	$(BIN)/python -m graph.admin export $(TO)

import: $(RUNS)
	$(BIN)/python -m graph.admin import $(FROM)

# Everything of a SQLite file into an empty Postgres, counted and compared: FROM=<file> TO=<url>, which may have a password.
migrate: $(RUNS)
	@$(BIN)/python -m graph.admin migrate $(FROM) '$(TO)'

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Turnfold needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv

# What pip says of each download and of errors; the rest of its lines is noise.
QUIETER := sed -e '/^ *Collecting /d' -e '/^Looking in /d' -e '/^Processing /d' -e '/Location .* is ignored/d' -e '/\.metadata/d' \
	-e '/^ *Using cached /d' -e '/^Successfully installed/d' -e 's/^Installing collected packages.*/Installing…/'

$(RUNS): requirements-server.lock | $(BIN)/python
	@echo "Installing what Turnfold needs into .venv: about 100 packages, 160 MB to download, once."
	@{ $(BIN)/python -m pip install --progress-bar off --disable-pip-version-check --require-hashes -r requirements-server.lock \
		2>&1; echo "$$?" >.venv/.status; } | $(QUIETER); exit "$$(cat .venv/.status)"
	@touch $(RUNS)

# All of what running needs is in here, too.
$(TESTS): requirements.lock | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	touch $(RUNS) $(TESTS)

# The libraries that two benches compare with, and the plots: neither running nor testing needs them.
$(BENCHES): bench/requirements.txt $(TESTS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r bench/requirements.txt
	touch $(BENCHES)

# Clients and MCP servers with versions that were tried. aider's own pins fit no other client's, LlamaIndex needs the second
# version of the openai package, and the SQLite server the first of the mcp package.
.venv/clients/.installed: tests/client/requirements.txt
.venv/clients-aider/.installed: tests/client/requirements-aider.txt
.venv/clients-llama-index/.installed: tests/client/requirements-llama-index.txt
.venv/mcp/.installed: tests/client/requirements-mcp.txt
.venv/mcp-sqlite/.installed: tests/client/requirements-mcp-sqlite.txt
$(CLIENTS) $(MCP_SERVERS_OF_PYPI): | $(BIN)/python
	$(BIN)/python -m venv $(@D)
	$(if $(shell command -v timeout),timeout 300) $(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

$(MCP_SERVERS_OF_NPM): | $(BIN)/python
	$(if $(shell command -v timeout),timeout 300) npm install --prefix $(@D) --no-audit --no-fund --loglevel error @modelcontextprotocol/server-filesystem@2026.8.31
	touch $@

# Needs uv. Writes the pins with their hashes and without any index's address: those of all that is done here, and of these
# the ones that a server needs.
PINS := uv pip compile pyproject.toml --extra postgres --extra auth --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet
lock:
	$(PINS) --group dev -o requirements.lock
	$(PINS) -c requirements.lock -o requirements-server.lock
