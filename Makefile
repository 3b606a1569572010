# The two commands: `make run` opens the chat, `make test` checks everything. Both install what they need into .venv.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: run test lint unit lock bench-store

run: $(STAMP)
	$(BIN)/streamlit run app.py

test: lint unit

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(STAMP)
	$(BIN)/python -m pytest

bench-store: $(STAMP)
	$(BIN)/python -m bench.store

$(STAMP): requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Turnfold needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	touch $(STAMP)

# Needs uv. Writes the pins with their hashes and without any index's address.
lock:
	uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet -o requirements.lock
