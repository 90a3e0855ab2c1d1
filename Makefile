# Each verb makes what it needs: a fresh clone wants only Python 3.11, and cargo for the native codec.

VENV ?= .venv
PYTHON := $(VENV)/bin/python
CRATE := patchlog/native/Cargo.toml
CRATE_FILES := $(wildcard patchlog/native/Cargo.* patchlog/native/src/*.rs patchlog/native/src/*/*.rs)
PIP := $(PYTHON) -m pip --disable-pip-version-check --require-virtualenv
FUZZ ?= 20000
SOAK ?= 300
# Tests that hold both implementations of the codec to the same rules; they run once on each.
CODEC_TESTS := tests/unit tests/conformance

.DELETE_ON_ERROR:
.PHONY: help setup demo serve test check format bench fuzz soak proto docs reference lock release clean

help: ## List the verbs
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

demo: setup ## Show the main job, end to end: a service, recorded changes, a replica, Delta tables (DEMO=--serve leaves the service up)
	@$(PYTHON) -m patchlog demo $(DEMO)

serve: setup ## Start the service on patchlog.db, at http://127.0.0.1:8080 (SERVE="--port 9000" for another port)
	@$(VENV)/bin/patchlog serve $(SERVE)

setup: $(VENV)/patchlog $(VENV)/dev $(VENV)/spark ## Make the virtual environment with all that the other verbs need

test: setup ## Run the tests, those of the codec on the native and on the pure implementation
	$(PYTHON) -m pytest -n 2 --dist loadgroup $(PYTEST_ARGS)
	@if $(PYTHON) -c 'import patchlog._native' 2>/dev/null; then set -x; \
	    PATCHLOG_PURE=1 $(PYTHON) -m pytest -n 2 $(PYTEST_ARGS) $(CODEC_TESTS); \
	else echo "the native codec is not built: all of this ran on the pure one"; fi

check: setup ## Run what CI runs beside the tests: lint, format, types, import rules, clippy, rustfmt
	$(PYTHON) -m ruff check
	$(PYTHON) -m ruff format --check
	$(PYTHON) -m mypy
	$(VENV)/bin/lint-imports --no-logo
	@if command -v cargo >/dev/null; then set -ex; \
	    cargo fmt --check --manifest-path $(CRATE); \
	    cargo clippy --locked --all-targets --manifest-path $(CRATE) -- -D warnings; \
	elif [ -n "$$CI" ]; then echo "error: CI needs cargo for clippy and rustfmt" >&2; exit 1; \
	else echo "cargo was not found: clippy and rustfmt are left out"; fi

format: setup ## Put Python and Rust sources in the house's format
	$(PYTHON) -m ruff check --fix-only --quiet
	$(PYTHON) -m ruff format
	@if command -v cargo >/dev/null; then set -x; cargo fmt --manifest-path $(CRATE); fi

bench: setup ## Measure the codec beside its peers and print the ratios (BENCH=--quick for a short look)
	$(PYTHON) -m bench $(BENCH)

fuzz: setup ## Change streams at random for about an hour, in search of what the tests miss (FUZZ=20000 streams a test)
	PATCHLOG_FUZZ_EXAMPLES=$(FUZZ) $(PYTHON) -m pytest -n 2 tests/unit/codec/test_codec_fuzz.py tests/unit/codec/test_codec_laws.py

soak: setup ## Kill, fill up and overload running services for about half an hour (SOAK=300 seconds a test); figures in build/soak.xml
	PATCHLOG_SOAK_SECONDS=$(SOAK) PATCHLOG_SOAK_MEGABYTES=1024 PATCHLOG_KILLS=$$(($(SOAK) * 40)) $(PYTHON) -m pytest -o junit_family=xunit1 --junit-xml build/soak.xml \
	    tests/service/test_faults_kill.py tests/service/test_faults_load.py tests/service/test_faults_replies.py \
	    tests/service/test_faults_storage.py tests/service/test_model.py tests/contract/test_sql_log.py

proto: setup ## Compile proto/*.proto into patchlog/wire/descriptors.binpb
	$(PYTHON) -m grpc_tools.protoc --proto_path=proto --descriptor_set_out=patchlog/wire/descriptors.binpb \
	    rdf.proto patch.proto grpc.proto patch_stream.proto

docs: setup ## Build the site of docs/ into build/site; open build/site/index.html
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict

reference: setup ## Write the pages of docs/reference from the code
	$(PYTHON) docs/reference.py

lock: setup ## Choose the newest versions of all dependencies and write the lock files
	$(PYTHON) -m uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	    --custom-compile-command "make lock" pyproject.toml --group build \
	    --output-file requirements.lock
	$(PYTHON) -m uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	    --custom-compile-command "make lock" pyproject.toml --constraint requirements.lock --group dev \
	    --extra api --extra arrow --extra fsspec --extra grpc --extra otel --extra postgres --extra rdf --extra spark \
	    --output-file requirements-dev.lock

release: setup ## Build what is released into dist, with its bill of materials; check licences and vulnerabilities; try it
	$(PYTHON) deploy/release.py
	PATCHLOG_DIST=dist $(PYTHON) -m pytest tests/integration/test_distribution.py tests/deploy/test_image.py tests/deploy/test_release.py

clean: ## Remove all that make has made
	rm -rf $(VENV) build dist *.egg-info .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	rm -rf patchlog/native/target patchlog/_native*.so

# The environment. `venv` fails where Python came without ensurepip (Debian: python3-venv), so that is asked first.
$(VENV)/pyvenv.cfg:
	@for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	    if "$$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        echo "making $(VENV) with $$("$$python" --version)"; exec "$$python" -m venv $(VENV); \
	    fi; \
	done; \
	echo "error: no Python 3.11 or newer with its venv module was found; install one (Debian: python3-venv)" >&2; exit 1

$(VENV)/run: $(VENV)/pyvenv.cfg requirements.lock
	@echo "installing what requirements.lock names"
	@$(PIP) install --quiet --require-hashes --requirement requirements.lock
	@touch $@

$(VENV)/dev: $(VENV)/run requirements-dev.lock
	@echo "installing what requirements-dev.lock names"
	@$(PIP) install --quiet --require-hashes --requirement requirements-dev.lock
	@touch $@

# Delta's JARs are in the user's cache, so most of the time there is nothing to fetch.
$(VENV)/spark: $(VENV)/patchlog $(VENV)/dev
	@if [ -z "$$JAVA_HOME" ] && ! command -v java >/dev/null; then echo "java was not found: Spark and its tests are left out; install a Java 17 (Debian: openjdk-17-jre-headless)"; \
	elif ! $(PYTHON) -c 'import delta, pyspark' 2>/dev/null || $(PYTHON) -m spark setup; then touch $@; \
	else [ -z "$$CI" ]; fi

$(VENV)/patchlog: $(VENV)/run pyproject.toml setup.py $(CRATE_FILES)
	@echo "building patchlog"
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@if $(PYTHON) -c 'import patchlog._native' 2>/dev/null; then echo "patchlog runs on its native codec"; \
	else echo "patchlog runs on its pure codec, which is slower: make clean setup builds the native one, where cargo and a C compiler are"; fi
	@touch $@
