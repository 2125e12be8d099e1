# Every check that CI makes, by name. `make` alone lists them.

GO      ?= go
TOOL    := $(GO) tool -modfile=.ci/tools.mod
TESTRUN  = $(GO) run ./.ci/testrun

# What must stay correct under any interleaving, or feeds what does.
CORE    := ./engine/... ./protocol/... ./sdk/... ./host/...

# The programs under .ci are no part of the module's packages.
CI      := ./.ci/testrun

# Where .ci/install puts Node if the machine's is too old.
export PATH := $(CURDIR)/.ci/node/bin:$(PATH)

FUZZTIME ?= 30s

.DEFAULT_GOAL := help
.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1\t\2/' | expand -t 18

.PHONY: check
check: fmt-check vet lint arch tidy-check test-go planted race ## the fast part: what must pass before a commit

.PHONY: test
test: install check test-js bundle-check browser ## everything, browser included; installs what is missing

.PHONY: install
install: ## install what the browser tests lack: Chromium, Node, npm packages
	@.ci/install

.PHONY: test-go
test-go: ## the Go tests
	$(TESTRUN) go ./... $(CI)

.PHONY: planted
planted: ## plant faults in the engine, each of which the oracle test must find
	$(TESTRUN) go -tags planted -run '^TestPlanted$$' ./engine/oracle

.PHONY: oracle
oracle: ## the oracle test at length: 100,000 random programs, and clingo on 10,000
	$(GO) test -count 1 -timeout 2h -run '^Test(Oracle|Clingo)$$' -v ./engine/oracle \
		-oracle.programs 100000 -oracle.clingo 10000

.PHONY: race
race: ## the Go tests of the core under the race detector, with invariants checked
	$(TESTRUN) go -race -tags invariants $(CORE)

.PHONY: test-js
test-js: install ## the tests of sdk/js under Node
	@if [ -f sdk/js/package.json ]; then $(TESTRUN) npm sdk/js test; fi

.PHONY: browser
browser: install ## the tests that drive Chromium
	$(TESTRUN) go -tags browser -run '^TestBrowser' -timeout 8m ./host/...
	@if grep -qs '"test:browser"' sdk/js/package.json; then $(TESTRUN) npm sdk/js test:browser; fi

.PHONY: bundle-check
bundle-check: install ## build the demo page's script again and compare it with the committed one
	@if [ -d .ci/bundle ]; then cd .ci/bundle && $(GO) run . -check; fi

.PHONY: bundle
bundle: install ## build the demo page's script
	cd .ci/bundle && $(GO) run .

.PHONY: fmt
fmt: ## format the Go code
	$(TOOL) gofumpt -l -w $(GO_DIRS)

.PHONY: fmt-check
fmt-check: ## fail if Go code is not formatted
	@out=$$($(TOOL) gofumpt -l $(GO_DIRS)); \
	if [ -n "$$out" ]; then echo "not formatted (make fmt):"; echo "$$out"; exit 1; fi

# Every directory of ours with Go code: node_modules may hold some of others.
GO_DIRS = $(shell git ls-files --cached --others --exclude-standard '*.go' | cut -d/ -f1 | sort -u)

.PHONY: vet
vet: ## go vet, the browser tests included
	$(GO) vet ./... $(CI)
	$(GO) vet -tags browser ./host/...
	@if [ -d .ci/bundle ]; then cd .ci/bundle && $(GO) vet .; fi

.PHONY: lint
lint: ## staticcheck and the modernisers of go fix
	$(TOOL) staticcheck ./... $(CI)
	@out=$$($(GO) fix -diff ./... $(CI) 2>&1); \
	if [ -n "$$out" ]; then printf "%s\n" "$$out" "go fix would change this"; exit 1; fi

.PHONY: arch
arch: ## who imports whom, banned calls, comments, sizes
	$(TESTRUN) go -count=1 -run '^Test(Import|Banned|Package|Exported|Sizes)' ./host

.PHONY: tidy-check
tidy-check: ## fail if go.mod is not what the code needs
	$(GO) mod tidy -diff

.PHONY: fuzz
fuzz: ## each fuzz target in turn, FUZZTIME each
	@$(GO) list ./... | while read -r pkg; do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			echo "$$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
		done; \
	done

.PHONY: golden
golden: ## rewrite golden files; read the difference as code
	$(GO) test $$(grep -rlE 'flag\.Bool\("update"' --include='*_test.go' . | xargs -rn1 dirname | sort -u) -update

.PHONY: bench
bench: ## Go benchmarks, ten runs, by benchstat
	$(GO) test -run '^$$' -bench . -count 10 ./... | $(TOOL) benchstat -

.PHONY: generate
generate: ## go generate, then fail if the tree changed
	$(GO) generate ./...
	git diff --exit-code

.PHONY: cover
cover: ## the share of the code that the Go tests reach
	$(GO) test -coverprofile=cover.prof ./...
	$(GO) tool cover -func=cover.prof | tail -n 1

.PHONY: run
run: ## the demo
	$(GO) run . demo

.PHONY: tools
tools: ## build the pinned tools once
	@for t in staticcheck gofumpt benchstat; do $(TOOL) -n $$t >/dev/null; done

.PHONY: clean
clean: ## remove what builds leave behind
	rm -rf heddle cover.prof sdk/js/node_modules .ci/node
