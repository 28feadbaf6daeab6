# From a fresh machine: Python 3.11, make and the package registries are all that is assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo serve check test test-nightly planted test-services lint bench papers requirements docs clean

setup: $(STAMP)

# A hashed install of every extra; done again only when the pinned requirements change.
$(STAMP): requirements/all.txt pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements/setup.txt
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python \
	  --require-hashes -r requirements/all.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(STAMP)
	@$(BIN)/querycloak demo -o demo-out

# The live service on loopback, port 8484; Ctrl-C stops it.
serve: $(STAMP)
	@$(BIN)/querycloak serve

# What to run after each change: lint, types, and every unit test that takes next to no time. About a minute.
check: $(STAMP)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/lint-imports --no-cache > /dev/null || $(BIN)/lint-imports --no-cache
	@$(BIN)/mypy
	@$(BIN)/python -m tests.run --fast -q

test: $(STAMP)
	@$(BIN)/python -m tests.run

# Tests that do more at night: many more drawn inputs, and the kernels without their compiler.
test-nightly: $(STAMP)
	@$(BIN)/python -m tests.run --nightly

# Each planted fault in a copy of the tree; its tests must fail. SAMPLE=M:R takes those with number = R modulo M.
planted: $(STAMP)
	@$(BIN)/python -m tests.planted.run $(if $(SAMPLE),--sample $(SAMPLE))

# What tests need beside Python; installs it where it may, else says how.
test-services: $(STAMP)
	@$(BIN)/python -m tools.test_services

lint: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python tools/sizes.py

bench: $(STAMP)
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/bench.txt
	@$(BIN)/python -m benchmarks

# The pages of the five papers: measures what the stored results lack, then writes all of them.
papers: $(STAMP)
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/bench.txt
	@$(BIN)/python -m papers

docs: $(STAMP)
	@$(BIN)/python tools/reference.py
	@$(BIN)/python tools/licences.py

# Compile the pins anew; no index address is written into them.
requirements:
	@for name in setup core all bench; do \
	  $(BIN)/uv pip compile --quiet --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	    --annotation-style line requirements/$$name.in -o requirements/$$name.txt; done

clean:
	rm -rf $(VENV) demo-out build .pytest_cache .mypy_cache .ruff_cache .hypothesis
