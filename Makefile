# Every target makes what it needs from nothing but Python >= 3.11; versions are those of constraints.txt.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PYTEST = $(BIN)/python -m pytest -n auto --dist worksteal --ignore=tests/browser
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

unexport PYTHONDONTWRITEBYTECODE  # else each worker of pytest compiles all tests anew

.PHONY: demo test test-fast test-all test-browser pins lint format bench docs clean

demo: $(VENV)/.installed-demo  ## set up, then train and judge rankers on a search log of known truth
	$(BIN)/concordant demo

test: $(VENV)/.installed-test  ## set up, then test everything once: some minutes on two cores
	$(PYTEST) -m "not slow" --hypothesis-profile=brief $(TESTS)

test-fast: $(VENV)/.installed-test  ## one case of each test of every room: for the edit-test loop
	$(PYTEST) tests --fast -m "not slow and not long" --hypothesis-profile=fast $(TESTS)

test-all: $(VENV)/.installed-test  ## what is long and exhaustive too: simulations, searches, kills, benchmarks
	$(PYTEST) $(TESTS)

test-browser: $(VENV)/.installed-test  ## look at reports in a real browser; skipped where chromium or its driver is absent
	$(BIN)/python -m pytest -p no:randomly tests/browser

pins: $(VENV)/.installed-test  ## write tests/pins anew, on purpose; needs torch too
	$(INSTALL) torch==2.13.0
	$(BIN)/python -m tests.pins.write $(PINS)

lint: $(VENV)/.installed-lint  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed-lint  ## let ruff fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed-test  ## ratios against the real peers, written to benchmarks/results
	$(BIN)/python -m benchmarks

docs: $(VENV)/.installed-docs  ## the documentation, in docs/_build; the page of benchmarks from their results
	$(BIN)/python -m benchmarks.page
	$(BIN)/sphinx-build --quiet --fail-on-warning docs docs/_build
	@echo "open docs/_build/index.html"

clean:
	rm -rf $(VENV) docs/_build

$(VENV)/.installed-core: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "concordant needs Python 3.11 or newer: make PYTHON=python3.11 ..."; exit 1; }
	@echo "setting up $(VENV): a minute or two, once"
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable .
	@touch $@

$(VENV)/.installed-%: $(VENV)/.installed-core
	$(INSTALL) --editable '.[$*]'
	@touch $@
