# Everything that a person or CI does here. `make run` and `make test` need Rust and Python 3, `make test`
# also Go, and make the rest themselves. `make help` lists the targets below each "##@" heading.

OPERATOR = target/debug/training-operator

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } /^##@ / { printf "\n%s\n", substr($$0, 5) } /^[a-z-]+:.*## / { printf "  make %-19s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: toolchain
toolchain:
	@command -v cargo >/dev/null || { echo "make: cargo is missing; install Rust with rustup (https://rustup.rs)" >&2; exit 1; }

##@ Run

# The environments come first: a Python that does not fit is reported before minutes of building.
.PHONY: build build-local install run tune boost torch jax paddle mpi
build: ## Build the operator: target/debug/training-operator
# The same program without `local cluster` and most commands for clusters, such as `kubectl training`. SQLite, CEL,
# certificates and the pages of jobs take a fifth of the time.
FEATURES =
build-local: FEATURES = --no-default-features --features local
build build-local: toolchain
	@[ -e $(OPERATOR) ] || echo "make: building the operator, more than 250 crates: some minutes the first time" >&2
	@cargo build --package training-operator $(FEATURES)

install: toolchain ## Install training-operator, and kubectl training, into ~/.cargo/bin, which is on your PATH
	cargo install --locked --path operator
	for link in kubectl-training kubectl_complete-training; do \
		ln -sf training-operator "$${CARGO_HOME:-$$HOME/.cargo}/bin/$$link"; done

run: ready-mxnet build-local ## Train a real MXNet model from examples/mxnet/train.yaml on this machine
	@$(OPERATOR) local run --venv .venv/mxnet examples/mxnet/train.yaml

tune: ready-tvm build-local ## Tune a kernel with TVM from examples/mxnet/tune.yaml on this machine
	@$(OPERATOR) local run --venv .venv/tvm examples/mxnet/tune.yaml

boost: ready-xgboost build-local ## Train with XGBoost from examples/xgboost/train.yaml on this machine
	@$(OPERATOR) local run --venv .venv/xgboost examples/xgboost/train.yaml

torch: ready-pytorch build-local ## Train with PyTorch from examples/pytorch/train.yaml on this machine (a download of about 125 MB)
	@$(OPERATOR) local run --venv .venv/pytorch examples/pytorch/train.yaml

jax: ready-jax build-local ## Train with JAX from examples/jax/train.yaml on this machine (a download of about 140 MB)
	@$(OPERATOR) local run --venv .venv/jax examples/jax/train.yaml

paddle: ready-paddle build-local ## Train with PaddlePaddle from examples/paddle/train.yaml on this machine (a download of about 220 MB)
	@$(OPERATOR) local run --venv .venv/paddle examples/paddle/train.yaml

mpi: ready-mpi build-local ## Train with Open MPI from examples/mpi/train.yaml on this machine
	@$(OPERATOR) local run --venv .venv/mpi examples/mpi/train.yaml

##@ Test

.PHONY: test test-shells test-example test-large test-oldest test-upgrade test-image test-tensorflow test-frameworks test-ssh test-schedulers test-consumers test-helm test-alerts test-release test-node test-pages
test: toolchain test-toolchains ## Run all tests; needs Go, for a Kubernetes control plane (the first build takes minutes)
	@$(MAKE) --no-print-directory -j2 $(READY)
	RUST_TEST_THREADS=$(TEST_THREADS) cargo test --workspace --all-features --no-fail-fast --quiet
	@$(MAKE) --no-print-directory test-example

# What all tests need, two at a time: what downloads leaves a core to what compiles.
VENVS = mxnet xgboost tvm mpi sdk sdk-1.9
READY = ready-tests ready-control-plane ready-go-operator ready-actionlint ready-clients $(addprefix ready-,$(VENVS))

# Tests that run processes wait for these most of the time.
TEST_THREADS = $(shell expr 2 '*' $$(getconf _NPROCESSORS_ONLN))

.PHONY: test-toolchains $(READY) ready-pytorch ready-jax ready-paddle
# Before minutes of work, not after them.
test-toolchains:
	@command -v go >/dev/null || { echo "make: go is missing; install Go 1.26 or later (https://go.dev/dl)" >&2; exit 1; }
ready-tests:
	@cargo test --workspace --all-features --quiet --no-run
ready-control-plane ready-go-operator ready-actionlint ready-clients: ready-%:
	@tests/$*/build.sh
$(addprefix ready-,$(VENVS) pytorch jax paddle): ready-%:
	@tools/venv.sh $*

# A workspace of its own, which uses what this one has compiled.
EXAMPLE = --manifest-path examples/add-a-framework/Cargo.toml --target-dir target --locked

test-example: build ## Run the tests of examples/add-a-framework and of a package of new-kind alone
	@tests/control-plane/build.sh
	cargo test $(EXAMPLE) --quiet
	@rm -rf target/new-kind
	$(OPERATOR) new-kind HiveJob target/new-kind --library .
	@sed s/farm-operator/hive-operator/ examples/add-a-framework/Cargo.lock >target/new-kind/Cargo.lock
	cargo test --manifest-path target/new-kind/Cargo.toml --target-dir target --quiet

# Half an hour is for machines that are busy: a minute or two is usual.
test-shells: build ## Check the completions in fish and zsh, which must be installed (not part of make test, which does it in bash)
	tools/test-shells.sh $(OPERATOR)

test-large: simulator ## Run 10,000 jobs of 4 pods, and one of 2,000, to their end on the in-memory API (some minutes, not part of make test)
	timeout 1800 target/sim/sim crowd 10000 --most-memory 6500
	timeout 1800 target/sim/sim crowd 1 --pods 2000 --most-memory 5000

# The costs of rules are those of the newest API server, and so are the words that two tests compare. 1.30 stores no
# status of a job that breaks a rule.
OLDEST = TEST_CONTROL_PLANE=target/control-plane-oldest cargo test --workspace --all-features --quiet

test-oldest: toolchain ## Run the tests about definitions, clients, permissions, exec and take-over on the oldest Kubernetes, 1.30 (builds it for minutes, not part of make test)
	@tests/control-plane/build.sh oldest
	@tools/venv.sh sdk
	@tools/venv.sh sdk-1.9
	@tools/venv.sh mpi
	$(OLDEST) --test cluster -- clients:: testbed:: handover:: install:: kinds:: remote_shell:: \
		admission:: --skip admission::costs:: --skip admission::stored:: \
		--skip admission::bad:: --skip local_cluster::kubectl_prints_the_same

test-upgrade: toolchain ## Hand jobs of every kind from the previous release to this version, back and forth (builds it for minutes, not part of make test)
	@tests/control-plane/build.sh
	@tests/upgrade/build.sh
	PREVIOUS_RELEASE=target/previous cargo test --workspace --all-features --quiet --test cluster -- handover::upgrade::

test-image: toolchain ## Build the image twice, and check its program and its bill of materials (minutes, not part of make test)
	@tests/image/test.sh

test-tensorflow: build ## Train the examples of TensorFlow, also while a worker is killed (a download of about 400 MB, not part of make test)
	@tools/venv.sh tensorflow
	$(OPERATOR) local run --venv .venv/tensorflow examples/tensorflow/mirrored.yaml
	$(OPERATOR) local run --venv .venv/tensorflow examples/tensorflow/servers.yaml
	$(OPERATOR) local run --venv .venv/tensorflow examples/legacy/tfjob.yaml
	tests/tensorflow/killed.sh $(OPERATOR)
	@tests/control-plane/build.sh
	cargo test --workspace --all-features --quiet --test large_training tensorflow::

test-frameworks: build ## Train the examples of PyTorch, JAX and Paddle, also while processes are killed or hang (a download of about 600 MB, not part of make test)
	@tools/venv.sh pytorch
	@tools/venv.sh jax
	@tools/venv.sh paddle
	@tools/venv.sh mxnet
	@tools/venv.sh mpi
	@tools/venv.sh tqdm
	@tests/control-plane/build.sh
	cargo test --workspace --all-features --quiet --test large_training -- local_run:: cluster::

test-ssh: build ## Train an MPIJob v2beta1 whose workers run the sshd of this machine (needs openssh-server, and as root /run/sshd)
	@tools/venv.sh mpi
	SSHD_REQUIRED=1 cargo test --package training-operator --all-features --quiet --test training -- ranks_of_v2beta1

test-schedulers: build ## Run jobs under the real kube-scheduler, coscheduling, Volcano and Kueue (builds them for minutes, not part of make test)
	@tests/control-plane/build.sh
	@tests/schedulers/build.sh
	cargo test --workspace --all-features --quiet --test schedulers

test-consumers: build ## Have Argo CD, Argo Workflows, Flyte, Katib, Kueue and kube-state-metrics read jobs (builds their code for minutes, not part of make test)
	@tests/control-plane/build.sh
	@tests/consumers/build.sh
	cargo test --workspace --all-features --quiet --test consumer_programs

test-alerts: toolchain ## Check alerts and the dashboard with Prometheus's promtool and Grafana's SDK (builds for two minutes, not part of make test)
	@tests/control-plane/build.sh
	@tests/prometheus/build.sh
	@tools/venv.sh dashboard
	cargo test --workspace --all-features --quiet --test alerts

test-release: toolchain ## Run the steps of a release up to a registry of its own (builds the image for minutes, not part of make test)
	tests/release/test.sh

test-helm: build ## Lint, render, install, upgrade and remove the chart with Helm 3 and 4 (builds them for minutes, not part of make test)
	@tests/control-plane/build.sh
	@tests/helm/build.sh
	cargo test --workspace --all-features --quiet --test helm

test-node: build ## Run jobs on real nodes: kubelet, containerd, CoreDNS; needs root and packages of Debian (builds for minutes, not part of make test)
	@tests/node/build.sh $(FRAMEWORKS)
	FRAMEWORKS='$(FRAMEWORKS)' tests/node/run.sh

test-pages: build ## Check the pages of stories with axe-core in headless Chromium, and take the pictures of the docs; needs Node and Debian's package chromium (not part of make test)
	@tests/control-plane/build.sh
	tools/pages/check.sh

##@ Check

# Tests that no other command builds.
ON_REQUEST = large_training schedulers consumer_programs alerts helm node

.PHONY: check deny
check: toolchain deny ## Check formatting, lints, documentation, and the dependencies' licences and sources
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features --quiet -- --deny warnings
	cargo clippy --workspace --all-features --quiet $(addprefix --test ,$(ON_REQUEST)) -- --deny warnings
	cargo clippy --package training-operator --no-default-features --features cluster --quiet -- --deny warnings
	cargo clippy --package training-operator --no-default-features --features local --quiet -- --deny warnings
	cargo fmt --manifest-path examples/add-a-framework/Cargo.toml --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo clippy $(EXAMPLE) --all-targets --quiet -- --deny warnings
	RUSTDOCFLAGS="--deny warnings" cargo doc --workspace --all-features --no-deps --quiet
	RUSTDOCFLAGS="--deny warnings" cargo doc --package training-job-controller --no-default-features --no-deps --quiet
	@rustup target list --installed | grep -q wasm32-unknown-unknown || rustup target add wasm32-unknown-unknown
	cargo check --package training-job --lib --target wasm32-unknown-unknown --features k8s-openapi/latest --quiet
	@tools/smells.py

deny: toolchain ## Check the dependencies by deny.toml: licences, sources, bans, and advisories where there is a network
	@tools/deny.sh

##@ Generate

.PHONY: crds snapshots docs dashboard compat protobuf public-api
crds: build ## Write crds/, the chart's copies and the definition of the example anew
	$(OPERATOR) crd --dir crds
	$(OPERATOR) crd --kind MPIJob --dir crds/mpi
	$(OPERATOR) crd --kind MxJob --kind TfJob --dir crds/mlkube
	UPDATE_SNAPSHOTS=1 cargo test --quiet --package training-operator --test offline chart::
	UPDATE_SNAPSHOTS=1 cargo test $(EXAMPLE) --quiet --test local the_committed_definition_is_current

snapshots: toolchain ## Write snapshots/ anew
	INSTA_UPDATE=always cargo test --quiet $(foreach f,$(wildcard frameworks/*),--package training-job-$(notdir $f)) --test kind snapshots::

docs: toolchain ## Write the code and the figures in docs/ anew, from their sources
	UPDATE_SNAPSHOTS=1 cargo test --quiet --package training-operator --test offline -- docs:: performance::

dashboard: ## Write manifests/monitoring/dashboard.json and the chart's copy anew
	@tools/venv.sh dashboard
	.venv/dashboard/bin/python -I tools/dashboard.py >target/dashboard.json
	@cp target/dashboard.json manifests/monitoring/dashboard.json
	@cp target/dashboard.json manifests/helm/training-operator/files/dashboard.json

compat: toolchain ## Write tests/compat/{replica,default,volcano,coscheduling}/ anew: SCENARIOS='mx-ttl-*' or all
	COMPAT_RECORD='$(or $(SCENARIOS),*)' cargo test --package training-operator --test cluster --quiet -- compat::with_

protobuf: ## Write kube-memory's table of the fields of built-in kinds in protobuf anew, from the Go types; needs Go
	cd tests/control-plane && go run ../../tools/protobuf/fields.go >../../crates/kube-memory/src/request/protobuf.txt

public-api: toolchain ## Write docs/maintainers/public-api.txt anew (builds a tool for minutes; needs a nightly toolchain too)
	@tools/release.sh api

##@ Investigate

.PHONY: coverage
coverage: toolchain ## Print how many lines of the pure core its tests run (builds a tool; needs rustup component add llvm-tools)
	@tools/coverage.sh

.PHONY: sim simulator
simulator: toolchain
	@cargo build --profile sim --package training-job-simulation

sim: simulator ## Simulate: SEEDS=100000 of them, SEED=123 again and smaller, CROWD=10000 jobs at once, else every fault at every call
	@target/sim/sim $(or $(if $(SEED),seed $(SEED)),$(if $(SEEDS),seeds $(SEEDS) --from $(or $(FROM),1)),$(if $(CROWD),crowd $(CROWD)),exhaustive)

# The instrumented build lies beside the others. Without a sanitizer, which looks for what safe Rust has not,
# the usual toolchain does.
FUZZ = cd fuzz && CARGO_TARGET_DIR=../target/fuzz cargo fuzz

.PHONY: fuzz fuzz-corpus fuzz-tool
fuzz: fuzz-tool ## Fuzz TARGET=job, status or watch, or each in turn, for SECONDS=600; needs cargo-fuzz and a C++ compiler
	@for target in $(or $(TARGET),job status watch); do \
		mkdir -p target/fuzz-corpus/$$target; \
		($(FUZZ) run --sanitizer none $$target ../target/fuzz-corpus/$$target corpus/$$target -- -dict=words.dict \
			-max_len=8192 -timeout=20 -rss_limit_mb=4096 -max_total_time=$(or $(SECONDS),600)) || exit 1; \
	done

fuzz-corpus: fuzz-tool ## Make fuzz/corpus/ anew from what make fuzz has found: as few files as reach as much
	@for target in $(or $(TARGET),job status watch); do fuzz/keep.sh $$target || exit 1; done

fuzz-tool: toolchain
	@command -v cargo-fuzz >/dev/null || { echo "make: cargo-fuzz is missing; cargo install cargo-fuzz" >&2; exit 1; }

.PHONY: mutants bench bench-load bench-growth bench-micro bench-instructions
mutants: toolchain ## Change the rules, one thing at a time, and see that the tests notice: AREAS='plan mxnet' or all; SINCE=COMMIT for new lines
	@nice tools/mutants.sh $(AREAS)

# What is shipped is measured.
BENCH = tools/image.sh --programs amd64 && OPERATOR=target/image/bin/amd64/training-operator \
	LOCAL_OPERATOR=target/image/programs/amd64/training-operator cargo run --quiet --release --package training-operator-bench --

bench: toolchain load-tools ## Measure this operator beside the Go operator and a plain writer, `local cluster` beside a real API server, rendering, and `local run`; QUICK=1: some of it, in five minutes
	$(BENCH) $(if $(QUICK),--quick)
ifndef QUICK
	@cp target/performance.json docs/maintainers/performance.json
	@UPDATE_SNAPSHOTS=1 cargo test --quiet --package training-operator --test offline performance::
	cargo bench --quiet --package training-job-mxnet --bench render
	cargo bench --quiet --package training-operator --bench render
	@bench/local/compare.sh
endif

bench-load: toolchain load-tools ## Measure a burst of jobs on a real API server, beside the Go operator: JOBS=100
	$(BENCH) --jobs $(or $(JOBS),100)

bench-growth: simulator ## Measure how the CPU of a change grows with the number of jobs in the cluster; fails if it does
	@target/sim/sim growth

bench-micro: toolchain ## Measure the parts of a reconcile, with their allocations; ONLY=render
	cargo bench --quiet --package training-job-controller --features __fuzzing --bench micro -- $(ONLY)

bench-instructions: toolchain ## Count the instructions of the same at BASE=COMMIT and now; needs valgrind
	@nice tools/instructions.sh $(BASE)

.PHONY: load-tools
load-tools:
	@tests/control-plane/build.sh
	@tests/go-operator/build.sh
	@tests/go-operator/unlimited/build.sh

##@ Release

.PHONY: image release-build release-check
image: toolchain ## Build the image for amd64 and arm64 without a container daemon: target/image/training-operator.tar
	@tools/image.sh

release-build: toolchain ## Build the operator for this machine as it is shipped: target/dist/training-operator
	cargo build --profile dist --locked --package training-operator

release-check: toolchain ## Check that the packages can be published, the interface is docs/maintainers/public-api.txt's, and the version fits
	@tools/release.sh check
