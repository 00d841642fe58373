# Two commands do everything on a fresh machine: `make app` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: app test lint quick javascript coverage hammer fuzz clients s3-server compiled clean

# A third of their time tests wait, for browsers, servers and processes: three workers for two cores.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(-(-3 * os.cpu_count() // 2))')
SIDE_BY_SIDE := -n $(WORKERS) --dist worksteal

app: compiled
	$(BIN)/plain demo

# Real browsers, servers and processes on a shared machine: what fails is tried once more, and counted.
test: lint javascript
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) --reruns 1 -rfER

# While one works: lint, types, and unit tests that need no browser, server, process or training.
SLOW := subprocess|Popen|postgres|PlainTrainer|run_training|PlainClassifier|\.fit\(|hypothesis|bombs|measure_habits|core\.bench|umap_layout
quick: lint javascript
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) tests/test_docs.py \
		$$(grep -LE '$(SLOW)' tests/unit/test_*.py tests/unit/review_desk/test_*.py)

lint: compiled
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The widgets' JavaScript: nothing of node is needed to run the program.
javascript:
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory node_modules/.installed \
		&& npm run --silent lint && npm run --silent types && npm run --silent test; \
	elif [ "$$PLAIN_JS_TESTS" = required ]; then echo "npm is needed"; exit 1; \
	else echo "no npm: JavaScript is not checked"; fi

node_modules/.installed: package.json package-lock.json
	npm ci --silent --prefer-offline
	@touch $@

# How much of the program the tests without a browser run, processes they start left out.
coverage: compiled
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) --cov=core --cov=plain_app \
		--cov-report=term:skip-covered tests/unit tests/ui

# Attacks that take minutes, before a release; their last results are in docs/hammer.md.
hammer: compiled
	$(BIN)/python -m pytest -m hammer --hypothesis-profile=default tests/hammer tests/e2e/test_layout_journeys.py

# Our files in the programs they are made for; the last results are in docs/tools.md.
clients: compiled
	$(BIN)/python tests/clients/run.py .clients

# A server that speaks S3, for the tests of object storage. Its botocore needs an older
# python-dateutil than we pin, so it has an environment of its own.
s3-server: .s3/bin/moto_server
.s3/bin/moto_server:
	$(PYTHON) -m venv .s3
	.s3/bin/python -m pip install --quiet "moto[s3,server]==5.2.5"

# Coverage-guided fuzzing of the readers, one after the other; docs/files.md says more.
FUZZ_SECONDS ?= 3600
FUZZ_READERS ?= csv tsv parquet jsonl json gz zip arff svmlight npz labelstudio cleanlab matlab matlab73
fuzz: compiled
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[fuzz]"
	@for reader in $(FUZZ_READERS); do \
		$(BIN)/python tests/hammer/fuzz_readers.py $$reader $(FUZZ_SECONDS) || exit 1; done

# Every process would else compile the program anew where Python may not keep what it compiled.
compiled: $(VENV)/.installed
	@$(BIN)/python -m compileall -q core plain_app

clean:
	rm -rf $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; set PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	@touch $@
