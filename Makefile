# Every target does its own set-up: it needs Python >= 3.11, and Java >= 17 where Spark runs.
# PYTHON names the interpreter that makes .venv, WORKERS the number of processes for the tests without Spark.

# RUNS is how many runs `make simulate` makes, SECONDS how long `make chaos` is at each store, MINUTES `make soak`.

PYTHON  ?= python3
WORKERS ?= 2
RUNS    ?= 20000
FIRST   ?= 100000
SECONDS ?= 120
MINUTES ?= 60
RESULTS := tests/correctness/results

# What `make schedulers` and `make terraform` run beside this project, each in an environment of its own below build/.
AIRFLOW_PACKAGES   := apache-airflow==3.3.2
DAGSTER_PACKAGES   := dagster==1.13.29
DBT_PACKAGES       := dbt-core==1.11.16 dbt-spark[session]==1.11.0 --editable .[spark]
TERRAFORM_PACKAGES := tfparse==0.6.22

VENV  := .venv
BIN   := $(VENV)/bin
READY := $(VENV)/.ready

# The older version of Spark that is supported has an environment of its own.  Its tests are those of Spark's interfaces:
# what happens when a process dies, Delta's own reader (the same version in both) and the rest have nothing of Spark's version.
SPARK41       := .venv-spark41
SPARK41_READY := $(SPARK41)/.ready
SPARK41_TESTS := -k "not dies and not killed" \
                 $(patsubst %,tests/spark/test_%.py,connect data_sink reader streaming views write_shapes writer)

# What only `make kafka` needs: the jars of a broker, and confluent-kafka, which is no dependency.
KAFKA         := $(VENV)/kafka
KAFKA_CLIENT  := confluent-kafka==2.16.1
PEERS         := $(VENV)/peers
PEER_PACKAGES := pyiceberg[sql-sqlite]==0.12.0 psycopg[binary] \
                 $(foreach name,duckdb duckdb-extension-ducklake duckdb-extension-sqlite-scanner,$(name)==1.5.5)

# What looks at a release has an environment of its own, and the wheel is looked at in one that has nothing but what it needs.
RELEASE  := .venv-release
RUNTIME  := build/runtime
LICENCES := 0BSD;Apache-2.0;Apache Software License;BSD License;BSD-2-Clause;BSD-3-Clause;ISC License;MIT;PSF-2.0

# What builds a conda package, the channel that its host environment comes from, who builds images, and what they stand on.
CONDA_PACKAGES := py-rattler-build==0.73.0
CHANNEL        ?= conda-forge
CONTAINER      ?= docker
BASE           ?= docker.io/library/python:3.13-slim

# The tests of the pure packages count branches, and are run in that way only.
PURE := tests/unit/coordinator tests/unit/partition

# What a build leaves out: it takes minutes and looks for what is rare, or needs programs that have a target of their own.
HERE := not nightly and not engines and not schedulers and not terraform

# A lane has the lowest or newest version of each library that the product needs (the lowest that has a wheel for that Python),
# and the newest tools. Daft is none of them: it holds pyarrow below the newest.
DEPS       ?= newest
LANE        = build/lanes/$(notdir $(PYTHON))-$(DEPS)
LANE_TOOLS := cfn-lint deltalake duckdb editables hatchling hypothesis opentelemetry-sdk polars pytest-xdist
LANE_TESTS := -n 2 tests/conformance tests/unit/log tests/unit/cli tests/unit/test_statistics.py tests/integration/test_golden_warehouses.py

COMPILE := uv pip compile pyproject.toml --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
           --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help soak peers demo test nightly matrix lane lanes test-spark41 lint docs dist bench simulate mutants conformance chaos page kafka engines schedulers terraform correctness format lock java conda image clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: java $(READY) ## Bring 336,776 real flights through transactions, with an abort, a zombie and a re-run
	$(BIN)/txntable demo

test: java lint docs $(SPARK41_READY) $(VENV)/.jars $(SPARK41)/.jars ## Run the checks of `make lint` and `make docs`, then every test: without a JVM, branches of the pure packages, on Spark
	$(BIN)/pytest -n $(WORKERS) --dist worksteal $(PURE:%=--ignore=%) -m "not spark and $(HERE)"
	$(BIN)/pytest -n $(WORKERS) --dist worksteal $(PURE) --cov
	@mkdir -p build && echo "one case of each test on pyspark 4.1, beside the newest (build/spark41.log, shown at the end)"
	$(SPARK41)/bin/pytest --one-case $(SPARK41_TESTS) > build/spark41.log 2>&1 & older=$$!; \
	    $(BIN)/pytest -m "spark and $(HERE)" tests/spark; newest=$$?; \
	    wait $$older; older=$$?; cat build/spark41.log; [ $$newest = 0 ] && [ $$older = 0 ]

nightly: java $(READY) $(VENV)/.jars test-spark41 ## Run the tests that take minutes and look for what is rare, which `make test` leaves out
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "nightly and not spark"
	$(BIN)/pytest -m "nightly and spark" tests/spark

matrix: $(READY) ## Let the clients of a fixed older commit and today's share one warehouse, in both orders
	$(BIN)/pytest -m nightly tests/integration/test_versions_together.py

lane: ## Run the share of the tests that meets the libraries, with PYTHON=3.13 and the DEPS=lowest or newest of each, below build/lanes (needs uv)
	@command -v uv > /dev/null || { echo "error: uv makes the environments of lanes; install it: pip install uv" >&2; exit 1; }
	uv venv --quiet --clear --python $(PYTHON) $(LANE)
	uv pip compile --quiet --python $(LANE)/bin/python --resolution $(if $(filter lowest,$(DEPS)),lowest-direct,highest) \
	    --only-binary :all: --extra opentelemetry --no-emit-index-url --output-file $(LANE)/libraries.txt pyproject.toml
	uv pip install --quiet --python $(LANE)/bin/python --constraint $(LANE)/libraries.txt --editable '.[spark,testing,opentelemetry]' $(LANE_TOOLS)
	$(LANE)/bin/python -m pytest -p no:cacheprovider $(LANE_TESTS)

lanes: ## Run `make lane` for each supported version of Python with the lowest and the newest libraries
	for python in 3.11 3.12 3.13 3.14; do for deps in lowest newest; do $(MAKE) lane PYTHON=$$python DEPS=$$deps || exit 1; done; done

test-spark41: java $(SPARK41)/.jars ## Run the tests that touch Spark's interfaces with pyspark 4.1
	$(SPARK41)/bin/pytest $(SPARK41_TESTS)

lint: $(READY) ## Check style, formatting, types and layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(READY) ## Build the documentation as a site, strictly, into build/site
	$(BIN)/python -m tools.documentation build/docs
	$(BIN)/python -m zensical build --strict --clean

dist: $(READY) $(RELEASE)/.ready ## Build wheel and archive of the sources into dist, with digests and a bill of materials; try the wheel and its licences
	rm -rf dist $(RUNTIME)
	$(BIN)/python -m hatchling build
	$(PYTHON) -m venv $(RUNTIME)
	$(RUNTIME)/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement requirements-wheel.lock
	$(RUNTIME)/bin/pip install --quiet --disable-pip-version-check --no-deps dist/txntable-*.whl
	$(RUNTIME)/bin/pip --disable-pip-version-check check
	sed -n '/^```python/,/^```/p' README.md | sed '/^```/d; s#/data/warehouse#$(RUNTIME)/first#' | $(RUNTIME)/bin/python -I -
	$(RELEASE)/bin/pip-licenses --python $(RUNTIME)/bin/python --partial-match --allow-only '$(LICENCES)'
	$(RELEASE)/bin/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml --mc-type library \
	    --output-file dist/txntable.cdx.json $(RUNTIME)/bin/python
	cd dist && sha256sum * > SHA256SUMS && cat SHA256SUMS

conda: dist build/conda/.ready ## Build the conda package of infra/conda into dist/conda; what builds it comes from CHANNEL=conda-forge
	build/conda/bin/python -c "from rattler_build import Stage0Recipe as R, ToolConfiguration as T, VariantConfig as V; \
	    [one.run_build(T(test_strategy='native'), 'dist/conda', ['$(CHANNEL)']) \
	    for one in R.from_file('infra/conda/recipe.yaml').render(V({}))]"
	@find dist/conda -name 'txntable-*.conda'

image: dist ## Build an image with the command line by CONTAINER=docker (or podman), on BASE, an image with Python
	rm -rf build/image && mkdir -p build/image
	cp dist/txntable-*.whl requirements-wheel.lock infra/container/Containerfile build/image
	$(CONTAINER) build --build-arg BASE=$(BASE) --file build/image/Containerfile --tag txntable build/image
	$(CONTAINER) run --rm txntable --help

bench: java $(READY) ## Measure what it costs, each figure as a ratio within one run
	$(BIN)/python -m benchmarks

peers: java $(KAFKA)/.ready $(PEERS)/.ready ## Make small transactions, and send and read records, beside PyIceberg, DuckLake, a Kafka broker and PostgreSQL (needs Maven; PostgreSQL if it is there)
	BENCH_KAFKA_JARS=$(abspath $(KAFKA))/jars PYTHONPATH=$(abspath $(PEERS)):$(abspath $(KAFKA))/clients:$$PYTHONPATH \
	    $(BIN)/python -m benchmarks peers record_rates

simulate: $(READY) ## Run the simulation with RUNS=20000 seeds from FIRST=100000 on; a failing one is made small and told
	$(BIN)/python -m tests.simulation.campaign --runs $(RUNS) --first $(FIRST) --workers $(WORKERS)

mutants: $(READY) ## Break the protocol one rule at a time, and see that each break is found
	$(BIN)/python -m tests.mutants --workers $(WORKERS)

conformance: $(READY) ## Hold the product, and a second implementation beside it, against PROTOCOL.md
	$(BIN)/pytest tests/conformance

chaos: java $(READY) $(VENV)/.jars ## Kill and pause real processes for SECONDS=120, on a folder and on an S3 API, in each scenario, and judge it
	$(BIN)/python -m tests.chaos --store local --seconds $(SECONDS)
	$(BIN)/python -m tests.chaos --store s3 --seconds $(SECONDS)
	$(BIN)/python -m tests.chaos.campaign --seconds $(SECONDS)
	$(BIN)/python -m tests.spark.rival_sessions --seconds $(SECONDS)

soak: $(READY) ## Do everything at once for MINUTES=60 on an S3 API with faults, draw what it costs (docs/assets/soak.svg), and judge whether it stays flat
	$(BIN)/python -m tests.soak --minutes $(MINUTES) --into build/soak; flat=$$?; cp build/soak/soak.svg docs/assets/soak.svg; exit $$flat

page: docs $(VENV)/axe.min.js ## Look at the page of a report and at the site in Chromium, and leave pictures in build/page (needs Chromium and npm)
	$(BIN)/python -m tests.page --axe $(VENV)/axe.min.js --into build/page
	$(BIN)/python -m tests.page.site build/site

kafka: java $(KAFKA)/.ready ## Mirror topics to and from a real Kafka broker, with the mirrors killed between any two steps (needs Maven)
	BENCH_KAFKA_JARS=$(abspath $(KAFKA))/jars PYTHONPATH=$(abspath $(KAFKA))/clients:$$PYTHONPATH $(BIN)/pytest tests/broker

engines: java $(READY) $(VENV)/.jars ## Read committed data by Trino, Spark's Thrift server, ClickHouse, DuckDB, DataFusion and Delta Kernel, set up in build/engines (needs Maven, a JDK, and Java 24 for Trino)
	$(BIN)/python -m tests.engines.setting_up
	$(BIN)/pytest -m engines tests/engines

schedulers: java $(VENV)/.jars build/schedulers/airflow/.ready build/schedulers/dagster/.ready build/schedulers/dbt/.ready ## Run the schedules of the documentation in a real Airflow, Dagster and dbt, and kill them
	$(BIN)/pytest -m schedulers tests/schedulers

terraform: $(READY) build/terraform/.ready ## Compare the Terraform module with the CloudFormation template (formatting needs tofu or terraform; TOFU names one)
	$(BIN)/pytest -m terraform tests/terraform

correctness: $(READY) ## Do all that docs/correctness.md tells of, and write its tables anew
	$(BIN)/python -m tests.simulation.campaign --runs $(RUNS) --first $(FIRST) --workers $(WORKERS) --results $(RESULTS)/simulation.json
	$(BIN)/python -m tests.exploration --results $(RESULTS)/exploration.json
	$(BIN)/python -m tests.model --results $(RESULTS)/model.json
	$(BIN)/python -m tests.mutants --workers $(WORKERS) --results $(RESULTS)/mutants.json
	$(BIN)/python -m tests.chaos --store local --seconds $(SECONDS) --results $(RESULTS)/chaos-local.json
	$(BIN)/python -m tests.chaos --store s3 --seconds $(SECONDS) --results $(RESULTS)/chaos-s3.json
	rm -f $(RESULTS)/chaos-scenarios.json
	$(BIN)/python -m tests.chaos.campaign --seconds $(SECONDS) --results $(RESULTS)/chaos-scenarios.json
	$(BIN)/python -m tests.correctness --made-on $$(date -u +%F)

format: $(READY) ## Format the code and mend what ruff can mend
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

lock: ## Write all locks again from pyproject.toml (needs uv)
	$(COMPILE) --all-extras --group docs --output-file requirements.lock
	$(COMPILE) --extra connect --group spark41 --output-file requirements-spark41.lock
	$(COMPILE) --constraint requirements.lock --output-file requirements-wheel.lock
	$(subst pyproject.toml ,,$(COMPILE)) --group release --output-file requirements-release.lock

clean: ## Remove the environments and what the tools leave behind
	rm -rf $(VENV) $(SPARK41) $(RELEASE) .cache build dist htmlcov .coverage .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

java:
	@tools/require_java.sh

# The stamp is younger than all that decides what is installed. Nothing is resolved here (hence --no-deps: pip's resolver asks
# for the newest release of what an extra names, `coverage[toml]`, and refuses it for want of a hash): the lock names every
# version and hash, `pip check` says that it is whole, and the build backend comes from it (hence no build isolation).
$(READY): requirements.lock
$(SPARK41_READY): requirements-spark41.lock
$(READY) $(SPARK41_READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "error: txntable needs python 3.11 or later python=$(PYTHON) found=$$($(PYTHON) --version 2>&1)" >&2; \
	    echo "Name another one: make PYTHON=python3.12 <target>" >&2; exit 1; }
	@[ -x $(@D)/bin/python ] || $(PYTHON) -m venv $(@D)
	@echo "installing the exact versions of $(filter %.lock,$^) into $(@D) (some minutes the first time: Spark is large)"
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement $(filter %.lock,$^)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(@D)/bin/python -m pip --disable-pip-version-check check
	@touch $@

$(RELEASE)/.ready: requirements-release.lock
	@[ -x $(@D)/bin/python ] || $(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement $<
	@touch $@

# Others' programs need libraries that are at odds with each other's and with the lock.
build/schedulers/airflow/.ready: PACKAGES = $(AIRFLOW_PACKAGES)
build/schedulers/dagster/.ready: PACKAGES = $(DAGSTER_PACKAGES)
build/schedulers/dbt/.ready: PACKAGES = $(DBT_PACKAGES)
build/terraform/.ready: PACKAGES = $(TERRAFORM_PACKAGES)
build/conda/.ready: PACKAGES = $(CONDA_PACKAGES)
build/schedulers/%/.ready build/%/.ready: Makefile pyproject.toml
	@[ -x $(@D)/bin/python ] || $(PYTHON) -m venv $(@D)
	@echo "installing $(PACKAGES) into $(@D)"
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check $(PACKAGES)
	@touch $@

# What looks for barriers in a page; used by `make page` alone.
$(VENV)/axe.min.js: $(READY)
	@npm install --silent --no-save --prefix $(VENV)/axe axe-core@4.14.1
	@cp $(VENV)/axe/node_modules/axe-core/axe.min.js $@

$(KAFKA)/.ready: benchmarks/kafka_broker.xml $(READY)
	@command -v mvn > /dev/null || { echo "error: the jars of a broker come by maven; install it (debian: apt-get install maven)" >&2; exit 1; }
	@mvn --quiet --file $< dependency:copy-dependencies -DoutputDirectory=$(abspath $(@D))/jars
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --target $(@D)/clients $(KAFKA_CLIENT)
	@touch $@

$(PEERS)/.ready: $(READY)
	@echo "installing $(PEER_PACKAGES)"
	@mkdir -p $(@D)
	@sed -n '/^duckdb==/d; s/^\([^ #]*==[^ ]*\).*/\1/p' requirements.lock > $(@D)/constraints.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --constraint $(@D)/constraints.txt \
	    --target $(@D) $(PEER_PACKAGES)
	@touch $@

# Spark fetches its jars when a session starts; here one that shows what it fetches, once, before the tests.
$(VENV)/.jars: $(READY)
$(SPARK41)/.jars: $(SPARK41_READY)
$(VENV)/.jars $(SPARK41)/.jars:
	@echo "fetching Spark's jars, unless they are there (26 MB)"
	@$(@D)/bin/python -c "from txntable.spark.s3a import s3a_packages as p; from txntable.spark.session import build_session as b; \
	    b('jars', master='local[1]', settings={'spark.jars.packages': ','.join(p())}).stop()"
	@touch $@
