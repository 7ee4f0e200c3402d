# Two commands matter: `make render` and `make test`. Both set up everything they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup render test unit lint types imports golden schemas pack docs pictures tools tools-engines tools-live tools-bench bench conform conform-faults lock clean

help: ## Show this help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "blueprint needs Python 3.11 or newer; try PYTHON=python3.12 make ...")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing the locked dependencies into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

setup: $(READY) ## Install the locked dependencies into .venv

render: $(READY) ## Render the reference platform into rendered/
	@$(BIN)/blueprint render

test: $(READY) lint types imports ## Check style, types and imports, then run every test
	@$(BIN)/python -m pytest

unit: $(READY) ## Run the tests that need no Kubernetes programs
	@$(BIN)/python -m pytest -m "not conformance"

lint: $(READY) ## Style, one tool
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .

types: $(READY) ## Strict types
	@$(BIN)/mypy --no-error-summary

imports: $(READY) ## The direction of imports
	@$(BIN)/lint-imports --no-cache > .imports.log || { cat .imports.log; exit 1; }
	@rm -f .imports.log

golden: $(READY) ## Write the golden trees of the tests again
	@$(BIN)/python -m pytest -q tests/golden --regenerate

schemas: $(READY) ## Write the editors' JSON Schemas of the specs again
	@$(BIN)/python scripts/spec_schemas.py

pack: $(READY) ## Generate the API schema pack again from the pinned Go modules
	@$(BIN)/python scripts/schemas.py

docs: $(READY) ## Write the generated pages of docs/ again
	@$(BIN)/python scripts/docs.py

pictures: $(READY) ## Draw the pictures of the README again
	@$(BIN)/blueprint graph --cluster prod-a --of quota -o svg --out docs/pictures/quota.svg
	@$(BIN)/blueprint graph --cluster prod-a --of waves -o svg --out docs/pictures/waves.svg

tools: $(READY) ## Build the Kubernetes programs that conformance tests run (needs Go)
	@$(PYTHON) scripts/tools.py build --group conformance
	@$(BIN)/python scripts/vllm_sources.py

tools-engines: ## Build the policy engines' and Prometheus' command lines for their tests (needs Go)
	@$(PYTHON) scripts/tools.py build --group engines

tools-live: ## Build the controllers that `make conform` runs (needs Go; an hour when nothing is cached)
	@$(PYTHON) scripts/tools.py build --group conformance --group live promtool gator kyverno

tools-bench: ## Build the programs that benchmarks compare with (needs Go)
	@$(PYTHON) scripts/tools.py build --group bench kustomize helm

conform: $(READY) tools-live ## Prove the reference platform on real controllers; evidence in build/conform
	@$(BIN)/blueprint conform --out build/conform
	@BLUEPRINT_EVIDENCE=build/conform $(BIN)/python -m pytest -q tests/conformance/test_suites.py

conform-faults: $(READY) tools-live ## Seed a fault for each suite of conform; each must be noticed; evidence in build/faults
	@$(BIN)/blueprint conform --faults --out build/faults
	@BLUEPRINT_EVIDENCE=build/faults $(BIN)/python -m pytest -q tests/conformance/test_suites.py

bench: $(READY) tools-bench ## Measure against the peers and write BENCHMARKS.md
	@$(BIN)/python -m bench

lock: ## Resolve the dependencies again (needs uv)
	@uv pip compile pyproject.toml --group dev --generate-hashes --universal --upgrade --quiet \
	  --no-emit-index-url --no-emit-find-links --no-header --no-annotate --output-file requirements.lock

clean: ## Remove what was built here
	@rm -rf $(VENV) .tools .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
