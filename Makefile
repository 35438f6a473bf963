# Tidemark. `make` alone lists the targets; `make demo` and `make test` are the two to know.

SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS   += --no-print-directory
.DEFAULT_GOAL := help

BIN  := $(CURDIR)/bin
# The tools have a module file of their own, so that they pull nothing into the product's.
TOOL := go tool -modfile=$(CURDIR)/go.tools.mod

# A tag v1.2.3, else the commit, else (outside of a clone) "dev".
VERSION ?= $(shell git describe --tags --match 'v*' --always --dirty 2>/dev/null || echo dev)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null)
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)

# The race detector needs a C compiler. Without one the tests still run, and say what they lack.
RACE := $(shell command -v "$$(go env CC | cut -d' ' -f1)" >/dev/null 2>&1 && echo -race)

# Passed on to `go test`, for example: make test TESTFLAGS='-run Rollback -v'
TESTFLAGS ?=
TIMEOUT   ?= 45m
# How many processes share the random steps of a long run.
SHARDS ?= 2
# Modules of their own that are tested and linted as the product is: the public library, what proves it beside the product, and what
# holds the alerts to Prometheus' own tools.
MODULES := loaded test/agreement test/alerts
# How long each fuzz target is fuzzed.
FUZZTIME ?= 10m
# ONCE=1 ends the demo when it has been played; otherwise the cluster stays up for the reader.
ONCE ?=

##@ Use

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: build lab ## Watch the incidents happen on a real Kubernetes, then not happen (ONCE=1: end by itself)
	@go build -buildvcs=false -o $(BIN)/demo ./test/demo
	@ONCE=$(ONCE) $(BIN)/demo

.PHONY: build
build: ## Build bin/tidemark, bin/kubectl-tidemark and bin/tidemark-controller
	@mkdir -p $(BIN)
	go build -buildvcs=false -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/...
	@ln -sf tidemark $(BIN)/kubectl-tidemark

.PHONY: lab
lab: ## Build bin/lab, the Kubernetes cluster in one process, bin/kubectl, bin/argo-rollouts and bin/helm (about 10 minutes the first time)
	@hack/build-lab.sh -buildvcs=false

##@ Prove

# Without vet, which `make lint` runs: for lab/cluster it reads all of Kubernetes' source, and once is enough.
.PHONY: test
test: lab build ## Run every test of every module, with the race detector
	@$(if $(RACE),,echo 'make test: no C compiler, so the race detector is off' >&2)
	go test $(RACE) -vet=off -timeout $(TIMEOUT) $(TESTFLAGS) ./...
	@set -e; for module in $(MODULES); do echo "go test $$module"; (cd $$module && go test $(RACE) -vet=off -timeout $(TIMEOUT) $(TESTFLAGS) ./...); done
	cd lab/cluster && go test -vet=off -timeout $(TIMEOUT) $(TESTFLAGS) ./...

.PHONY: soak
soak: lab build ## Run the long versions of the tests that have one, then fuzz (half a day)
	RACE='$(RACE)' hack/soak.sh $(SHARDS)
	hack/fuzz.sh $(FUZZTIME)

.PHONY: fuzz
fuzz: ## Fuzz each target for FUZZTIME (10m); `make test` runs their seeds
	hack/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: lab build ## Measure against a bare client-go loop; writes docs/benchmarks.md
	go run ./test/bench -write

.PHONY: lint
lint: ## Check format, style and the arrows between packages
	@unformatted=$$(gofmt -l $$(go list -f '{{.Dir}}' ./...) $(MODULES) lab/cluster); \
	  if [ -n "$$unformatted" ]; then echo "gofmt differs:"; echo "$$unformatted"; exit 1; fi
	$(TOOL) golangci-lint run ./...
	@set -e; for module in $(MODULES); do echo "golangci-lint $$module"; (cd $$module && $(TOOL) golangci-lint run ./...); done
	cd lab/cluster && go vet ./...

##@ Keep current

.PHONY: generate
generate: ## Write what is generated: RBAC roles, the alerts for the operator, docs/commands.md
	hack/generate.sh .

.PHONY: verify
verify: ## Prove that what is generated is current, and that the module files are tidy
	hack/verify.sh

.PHONY: clean
clean: ## Remove bin/
	rm -rf $(BIN)
