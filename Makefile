# The two commands: `make run` opens the chat, `make test` checks everything. Both install what they need into .venv.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: run test lint unit lock bench-store bench-page bench-context bench-quality bench-secret bench-recognise bench-door load fault backup restore export import migrate

run: $(STAMP)
	$(BIN)/streamlit run app.py

# Side by side: the type checker needs one core, and the tests wait now and then.
test: $(STAMP)
	$(MAKE) --no-print-directory -j2 lint unit

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Many tests wait for clocks and sockets: three processes keep two cores busy, and with four the browsers hold each other
# up. A file stays in one process, and the files begin in their order, so that the long ones (browser, fault,
# integration) don't come last.
unit: export PYTHONDONTWRITEBYTECODE :=
unit: $(STAMP)
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

bench-store: $(STAMP)
	$(BIN)/python -m bench.store

# Needs a Chromium: the page beside a bare Streamlit chat over the same endpoint.
bench-page: $(STAMP)
	$(BIN)/python -m bench.page

# What only the bench needs (its peers, the plot) is installed here, not by the two commands.
bench-context: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	$(BIN)/python -m bench.context

# What folds keep, on public data that isn't in the project: DATA=<folder> says where it is; says where to get it.
bench-quality: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	$(BIN)/python -m bench.quality $(if $(DATA),--data $(DATA))

# Which secrets the project memory misses and which ordinary sentences it stops; DATA=<folder> adds public texts and writes
# the page.
bench-secret: $(STAMP)
	$(BIN)/python -m bench.secret $(if $(DATA),--data $(DATA))

# How long it takes to find a session by the 500 messages that a program sends again.
bench-recognise: $(STAMP)
	$(BIN)/python -m bench.recognise

# Needs a Chromium: what the door for programs adds to an answer, and the page beside 500 of its open streams.
bench-door: $(STAMP)
	$(BIN)/python -m bench.door

# Needs a Chromium and a Postgres: a hundred programs and twenty pages on two servers; writes the table of docs/scale.md.
load: $(STAMP)
	$(BIN)/python -m bench.load --write

# Kills, locks, full disks, load and outages of Postgres for about a quarter of an hour; the last line sums up.
# SEED=<number> repeats a run.
fault: $(STAMP)
	$(BIN)/python -m tests.fault $(if $(SEED),--seed $(SEED))

# Copies the database while it's in use; TO=<file> says where to. Back by restore FROM=<file>, with no server running.
backup: $(STAMP)
	$(BIN)/python -m graph.admin backup $(TO)

restore: $(STAMP)
	$(BIN)/python -m graph.admin restore $(FROM)

# All sessions as JSON Lines, with every record and version: export TO=<file>, import FROM=<file>.
export: $(STAMP)
	$(BIN)/python -m graph.admin export $(TO)

import: $(STAMP)
	$(BIN)/python -m graph.admin import $(FROM)

# Everything of a SQLite file into an empty Postgres, counted and compared: FROM=<file> TO=<url>, which may have a password.
migrate: $(STAMP)
	@$(BIN)/python -m graph.admin migrate $(FROM) '$(TO)'

$(STAMP): requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Turnfold needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	touch $(STAMP)

# Needs uv. Writes the pins with their hashes and without any index's address: those of all that is done here, and of these
# the ones that a server needs.
PINS := uv pip compile pyproject.toml --extra postgres --extra auth --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet
lock:
	$(PINS) --group dev -o requirements.lock
	$(PINS) -c requirements.lock -o requirements-server.lock
