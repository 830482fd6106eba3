# `make` alone lists what there is. Each target installs what it needs into .venv first.

PY := .venv/bin/python
ARGS ?=

.PHONY: help setup demo test check format clean-data

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' Makefile

setup:  ## make .venv with everything in requirements.lock (PYTHON=… names another Python than python3)
	@PYTHON="$(PYTHON)" sh scripts/setup.sh

demo: setup  ## run the whole product here, with a demo eval set in it (ARGS="--port 8080")
	@exec $(PY) manage.py demo $(ARGS)

test: setup  ## run all tests on all processors (ARGS="tests/pooling -k depth" runs some on one)
	@exec $(PY) -m pytest $(or $(ARGS),--numprocesses=logical --maxprocesses=4 --dist=worksteal)

check: setup  ## run the linters, the types, the layers, and look for missing migrations
	@exec bash scripts/check.sh

format: setup  ## put the code and the templates into shape
	@$(PY) -m ruff check --fix --quiet . || true
	@$(PY) -m ruff format .
	@$(PY) -m djlint --reformat --quiet templates || true

clean-data: setup  ## delete the embedded database, the uploads and the logs of this checkout, after asking
	@exec $(PY) manage.py clean_data $(ARGS)
