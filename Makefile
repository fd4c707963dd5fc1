# Everything a checkout can do. `make` lists it; each target sets up first what it needs.

PY     := .venv/bin/python
PYTHON ?= $(shell for one in python3 python3.11 python3.12 python3.13; do \
            $$one -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null && echo $$one && break; done)
UV     := $(or $(shell uv --version >/dev/null 2>&1 && command -v uv),.cache/uv/bin/uv)

MEMBERS  := $(wildcard services/*/pyproject.toml shared/*/pyproject.toml)
SYNCED   := .venv/.synced
COMPILED := $(wildcard services/data-plane/src/lockstep_data_plane/record_batch/*.c)
PREPARED := .cache/kafka/.prepared
TSC      := tools/console/node_modules/.package-lock.json
JAR      := services/data-plane/src/lockstep_data_plane/transform/lockstep-transform.jar

IMAGES  := $(if $(BASE),--base $(BASE)) $(if $(JAVA_BASE),--java-base $(JAVA_BASE)) $(if $(BUILD_BASE),--build-base $(BUILD_BASE)) \
           $(if $(BUILDER),--builder $(BUILDER)) $(if $(REPOSITORY),--repository $(REPOSITORY)) $(if $(TAG),--tag $(TAG)) \
           $(if $(OFFLINE),--offline) $(if $(PUSH),--push)

# What runs beside something else writes no cache: both would.
UNIT := $(PY) -m pytest -q -m "not long" -p no:cacheprovider
LONG := $(PY) -m pytest -q -rs -m long --durations=15 -p no:cacheprovider
SLOW := $(filter-out tests/integration/test_a% tests/integration/test_r% tests/integration/test_v%,$(wildcard tests/integration/test_*.py))
FIRST := tests/unit/config tests/unit/cli tests/unit/ops tests/unit/kafka tests/unit/runtime
PART_1 := tests/faults $(wildcard tests/integration/test_ch*.py tests/integration/test_a*.py tests/integration/test_r*.py)
PART_2 := tests/e2e tests/contract $(wildcard tests/integration/test_b*.py)

# Two or three commands side by side, failing when one does; what the others printed comes after what the last one did.
define side_by_side
@mkdir -p build; $(1) >build/beside.txt 2>&1 & beside=$$!; \
$(if $(3),$(3),true) >build/besides.txt 2>&1 & besides=$$!; \
trap 'kill $$beside $$besides 2>/dev/null' EXIT INT TERM; \
$(2); here=$$?; \
wait $$beside; beside=$$?; wait $$besides; besides=$$?; trap - EXIT INT TERM; \
cat build/beside.txt build/besides.txt; exit $$((here | beside | besides))
endef

KUBELAB ?= $(abspath ../shared/kubelab)

export CHROMIUM DURATION KEEP KUBELAB ONLY SEED SOURCE

.DEFAULT_GOAL := help
.PHONY: help release push-chart demo test setup check bench docs faults test-long e2e e2e-console console-images console-figures helm images kube-tools spark-operator lock audit sbom clean clean-all java spark-archive
.DELETE_ON_ERROR:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

demo: setup spark-archive ## two Kafka clusters mirrored both ways, live, and compared (DURATION=30, KEEP=1 leaves them running)
	@$(PY) -m tools.demo

test: setup spark-archive ## every test that takes at most 12 minutes together, on real brokers (WITHOUT=tests/unit leaves a folder out)
	@# In two halves that take as long: tests with brokers wait more than they compute.
	$(call side_by_side,$(UNIT) -rsR $(addprefix --ignore=,tests/kube $(SLOW) $(WITHOUT)) tests,$(PY) -m pytest -q -rsR -m "not long" $(SLOW))

setup: $(SYNCED) java $(JAR) $(PREPARED) ## Python packages, Java and Kafka, on a fresh machine too (the others do it by themselves)

check: $(SYNCED) ## format, lint, types, import law, lock and unit tests (under 2 minutes, no broker)
	$(PY) .ci/lock.py check
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	@if npm --version >/dev/null 2>&1; then $(MAKE) --no-print-directory $(TSC) && npm --prefix tools/console run --silent check; \
	else echo "check: there is no npm, so nobody checks the types of the console's front end"; fi
	$(call side_by_side,$(UNIT) $(FIRST),$(PY) -m pytest -q -m "not long" $(addprefix --ignore=,$(FIRST)) tests/unit)

bench: setup spark-archive ## Lockstep beside MirrorMaker 2 on the same brokers (ONLY=lz4 runs one part, RECORD=1 keeps the figures)
	@$(PY) -m tools.bench

docs: $(SYNCED) ## write the generated pages and the chart's schema anew, from the declarations in the code
	@$(PY) .ci/requirements.py
	@$(PY) -m tools.docs

faults: setup spark-archive ## break a running Lockstep in every way and count what is lost or doubled (ONLY=kill, SEED=1)
	@$(PY) -m tests.faults

test-long: setup spark-archive ## the long tests (about an hour, more on slow cores)
	@# In three parts that take as long: each waits much of its time.
	$(call side_by_side,$(LONG) $(PART_1),$(LONG) $(addprefix --ignore=,$(PART_1) $(PART_2)) tests,$(LONG) $(PART_2))

e2e: setup ## install the chart on a real Kubernetes, break it and count (KUBECONFIG=, or a kubelab starts one; under 12 minutes)
	@$(PY) -m tests.kube

e2e-console: setup spark-archive ## every test of the console in a real browser (Debian's chromium, or CHROMIUM=; 8 minutes)
	@$(PY) -m pytest -q -rsR tests/console

console-images: setup spark-archive ## write the console's screens as the pages of docs show them (Debian's chromium, or CHROMIUM=)
	@$(PY) -m tests.console.images

console-figures: setup ## what the console and a browser take with 10,000 partitions in 40 flows (Debian's chromium, or CHROMIUM=; 10 minutes)
	@$(PY) -m tests.console.figures

images: $(JAR) ## the container images, with docker, podman or buildah (BASE=, JAVA_BASE=, REPOSITORY=, TAG=, BUILDER=, OFFLINE=1, PUSH=1)
	@$(PY) .ci/images.py $(IMAGES)

spark-operator: setup ## build the Apache Spark operator, which e2e then runs too (SOURCE=a git clone of it; about a minute)
	@$(PY) -m tests.support.spark_operator

kube-tools: ## build the Kubernetes of a kubelab for e2e, and helm, kubeconform and the like (KUBELAB=; once, 5 minutes; Debian 12, root, Go)
	@test -x $(KUBELAB)/ensure || { echo "kube-tools: set KUBELAB to the folder of a kubelab, which is not at $(KUBELAB)" >&2; exit 2; }
	@$(KUBELAB)/ensure

helm: ## build helm alone into .cache/helm, for the tests of the chart where no kubelab is (Go 1.26)
	@GOBIN=$(CURDIR)/.cache/helm go install -ldflags "-s -w $(foreach part,Major=1 Minor=36,-X helm.sh/helm/v3/pkg/chartutil.k8sVersion$(part) -X helm.sh/helm/v3/pkg/lint/rules.k8sVersion$(part))" helm.sh/helm/v3/cmd/helm@v3.21.4

lock: $(if $(findstring .cache,$(UV)),$(UV)) ## resolve requirements.lock anew from the pyproject files (UPGRADE=1 moves every pin)
	$(PYTHON) .ci/lock.py write --uv $(UV) $(if $(UPGRADE),--upgrade)

audit: $(SYNCED) ## the locked packages against the Python Package Index's advisories (needs that index, not a mirror)
	@$(PY) .ci/audit.py

sbom: $(SYNCED) ## a software bill of materials of the locked packages: build/sbom.cdx.json (CycloneDX)
	@$(PY) .ci/sbom.py build/sbom.cdx.json
	@echo "build/sbom.cdx.json"

release: $(JAR) ## wheels, sources, requirements, SBOM, notes, the chart if helm is there, checksums: build/release (TAG=v0.1.0)
	@$(PY) .ci/release.py $(if $(TAG),--tag $(TAG)) $(if $(REPOSITORY_AT),--repository $(REPOSITORY_AT)) $(if $(PAGES_AT),--pages $(PAGES_AT)) $(if $(HELM),--helm $(HELM))

push-chart: $(SYNCED) ## the chart of build/release to the registry beside the images (needs helm, and a login there)
	@$(PY) .ci/release.py --push-chart $(if $(HELM),--helm $(HELM))

clean: ## remove what builds, tests and benches left behind
	rm -rf build artifacts spark-warehouse .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find services shared tests tools .ci -name __pycache__ -prune -exec rm -rf {} +

clean-all: clean ## remove the virtual environment and the downloaded Kafka as well
	rm -rf .venv .cache tools/console/node_modules

# The pieces of `setup`. Stamps make them free when nothing changed.

$(SYNCED): requirements.lock $(MEMBERS) $(COMPILED) $(if $(findstring .cache,$(UV)),$(UV))
	$(if $(PYTHON),,$(error Python 3.11, 3.12 or 3.13 is needed and there is none on PATH; PYTHON=/path/to/python3 names one))
	@echo "setup: Python packages from requirements.lock ($$($(PYTHON) --version); pyspark alone is about 450 MB)"
	@test -x $(PY) || $(UV) venv --quiet --python $(PYTHON) .venv
	@$(UV) pip sync --quiet --python $(PY) --require-hashes --build-constraints requirements.lock requirements.lock
	@echo "setup: Lockstep itself, editable"
	@$(UV) pip install --quiet --python $(PY) --no-deps --build-constraints requirements.lock \
	    $(foreach member,$(MEMBERS),--editable $(dir $(member)))
	@# Compiled once here, or the first demo compiles Spark and Faust in each of its processes. Some packages carry files
	@# for other Pythons, which do not compile: no harm.
	-@$(PY) -m compileall -q -q -j 0 .venv/lib services shared tests tools >/dev/null || true
	@touch $@

$(PREPARED): $(SYNCED) tests/support/kafka-jars.sha256 | java
	@echo "setup: Kafka's jars, verified, and a broker's class-data archive"
	@$(PY) -m tests.support.broker
	@touch $@

$(JAR): $(SYNCED) $(wildcard services/data-plane/java/lockstep/transform/*) services/data-plane/transform_jar.py | java
	@echo "setup: the transforms' jar, with javac or Eclipse's compiler"
	@$(PY) services/data-plane/transform_jar.py
	@touch $@

$(TSC): tools/console/package-lock.json
	@echo "check: TypeScript, which checks the types of the console's front end"
	@npm --prefix tools/console ci --silent --ignore-scripts --no-audit --no-fund
	@touch $@

spark-archive: setup
	@$(PY) -m lockstep_data_plane.spark.class_archive_writer

java: $(SYNCED)
	@$(PY) -m tests.support.java

.cache/uv/bin/uv:
	$(if $(PYTHON),,$(error Python 3.11, 3.12 or 3.13 is needed and there is none on PATH; PYTHON=/path/to/python3 names one))
	@echo "setup: uv (into .cache/uv)"
	@$(PYTHON) -m pip --version >/dev/null 2>&1 || { echo "pip is needed to fetch uv: install pip, or uv itself" >&2; exit 1; }
	@PIP_ROOT_USER_ACTION=ignore $(PYTHON) -m pip install --quiet --disable-pip-version-check --upgrade --target .cache/uv 'uv>=0.8'
