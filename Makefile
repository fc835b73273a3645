# A fresh machine needs git, Go and make. `make help` lists what there is.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

BIN := $(CURDIR)/.bin
GOLANGCI_VERSION := v2.15.0
GOVULNCHECK_VERSION := v1.9.0
# One binary per version and Go release, so that neither can be stale.
GO_RELEASE := $(shell go env GOVERSION)
GOLANGCI := $(BIN)/golangci-lint-$(GOLANGCI_VERSION)-$(GO_RELEASE)
GOVULNCHECK := $(BIN)/govulncheck-$(GOVULNCHECK_VERSION)-$(GO_RELEASE)

# Go needs a home for its caches; a bare container may have none.
ifeq ($(HOME),)
export HOME := $(BIN)/home
endif
# The version comes from the release build, not from git: a clone of another owner must build too.
export GOFLAGS := $(GOFLAGS) -buildvcs=false

# Packages with goroutines that share something: they are tested a second time under the race detector.
RACE := ./record/... ./engine/... ./internal/crew/... ./internal/watch/... ./internal/run/... ./examples/chandlery/... ./internal/replay/...
# Packages whose tests put load on a service and read the clock: each is tested alone, so that no other
# package's tests are what it measures.
ALONE := . ./engine/... ./internal/run/... ./internal/cli/... ./examples/...

.PHONY: help demo build test test-race test-long check lint vuln generate generated bench bench-peers clean setup

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: ## build the example, put production-shaped load on it, show the verdict
	go run ./cmd/seatrial demo

build: ## build ./seatrial
	CGO_ENABLED=0 go build -trimpath -o seatrial ./cmd/seatrial

setup: ## install what the tests need, where that is allowed
	./scripts/setup-test.sh

test: setup check test-race ## everything that must hold before a change is merged
	go test $$(go list ./... | grep -vxF "$$(go list $(ALONE))")
	go test -p 1 $(ALONE)

test-race: setup ## the concurrent packages under the race detector
	CGO_ENABLED=1 go test -race -short $$(go list -e $(RACE))

test-long: setup ## the full sizes of the statistical and timing tests, and every fuzz target for a while
	SEATRIAL_LONG=1 go test -p 1 -timeout 150m ./...
	./scripts/fuzz.sh 30s

check: generated lint vuln ## format, vet, lint, vulnerabilities, generated files
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$unformatted" ]; then echo "gofmt: $$unformatted"; exit 1; fi
	go vet ./...

lint: $(GOLANGCI) ## golangci-lint at its pinned version
	$(GOLANGCI) run ./...

vuln: $(GOVULNCHECK) ## known vulnerabilities, where the database can be reached
	./scripts/vulncheck.sh $(GOVULNCHECK)

generate: ## write the pages under docs/ that are made from the code
	go run ./cmd/seatrial docs --out docs

# Compared in a folder of its own, so that a check changes nothing.
generated: ## are those pages up to date?
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	go run ./cmd/seatrial docs --out "$$dir"; \
	for f in "$$dir"/*; do \
		cmp -s "$$f" "docs/$$(basename "$$f")" || { echo "docs/$$(basename "$$f") is out of date: run make generate"; exit 1; }; \
	done; echo "generated pages: up to date"

bench: ## benchmarks of the hot paths, with allocations
	go test -run '^$$' -bench . -benchmem ./traffic/... ./schedule/... ./record/... ./engine/... ./compare/... ./plan/...

bench-peers: ## the engine beside the load generators that are installed; needs nginx
	go run ./bench/peers

clean: ## remove what was built; keeps .bin, the tools
	rm -rf seatrial dist examples/chandlery/bin examples/chandlery/storefront/bin
	go clean

$(GOLANGCI):
	@mkdir -p $(BIN)/install
	GOFLAGS= GOBIN=$(BIN)/install go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv $(BIN)/install/golangci-lint $@

$(GOVULNCHECK):
	@mkdir -p $(BIN)/install
	GOFLAGS= GOBIN=$(BIN)/install go install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)
	@mv $(BIN)/install/govulncheck $@
