# Everything that is done to this project by hand or in CI. Only Go and a C
# compiler (for -race) are needed.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
GO      ?= go
BIN     := bin/spotter
LINT    := bin/golangci-lint

# The version is given by the linker and not taken from the checkout, so that
# a build from an archive works as one from a clone.
export GOFLAGS := -buildvcs=false $(GOFLAGS)

LDFLAGS := -X main.version=$(VERSION)

.PHONY: build run results acceptance test same bench lint fmt generate clean

build:
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/spotter

# run compares the default policies over 20 seeds on the embedded week.
run: build
	$(BIN) eval

# results makes docs/results.md anew: every policy in every embedded world.
results: build
	$(BIN) eval all --policies all,spotvortex:compat=true --seeds 5 --format markdown --out docs/results.md

# acceptance holds the policy portfolio to what docs/acceptance.md asks of it,
# on recorded weeks: make acceptance TRACE1=us-east-1 TRACE2=us-east-2.
acceptance: build
	SPOTTER=$(BIN) eval/acceptance.sh '$(TRACE1)' '$(TRACE2)'

# test races everything, and then runs without the race detector what it cuts
# short: whole recordings, all embedded worlds to their ends, builds that are worse
# on purpose, and 800 random worlds.
test:
	$(GO) vet ./...
	$(GO) test -race -timeout 20m ./...
	$(GO) test -run 'Record|Import|Refit|Preset|Figures|Like' -timeout 20m ./scenarios/trace/...
	$(GO) test -run '^TestLibrary' -timeout 20m ./eval
	$(GO) test -run '^TestGate$$' -timeout 20m ./cmd/spotter
	$(GO) test -run '^Test(RandomWorlds|Observe)$$' -timeout 20m ./sim

# same runs equal weeks with builds for several machines and compares hashes.
same:
	.ci/same

# bench measures whole processes (CPU seconds, resident memory), the decisions
# of every policy, the reader of traces, the generator, timelines and the frames of the
# terminal. Its figures are those of an idle machine.
bench: build
	$(GO) test -run '^$$' -bench '^BenchmarkProcess(Sim|Linear)' -benchtime 5x -timeout 30m ./cmd/spotter
	$(GO) test -run '^$$' -bench '^BenchmarkProcessEval' -benchtime 1x -timeout 30m ./cmd/spotter
	$(GO) test -run '^$$' -bench '^Benchmark(Read|Open)' -benchtime 5x -timeout 15m ./scenarios/trace
	$(GO) test -run '^$$' -bench '^BenchmarkDecide' -benchtime 1x -timeout 30m ./eval
	$(GO) test -run '^$$' -bench '^Benchmark(At|Fill)' -benchtime 5x -timeout 15m ./eval/timeline
	$(GO) test -run '^$$' -bench '^Benchmark(View|Scrub|Frame)' -benchtime 100x -timeout 15m ./cmd/spotter/tui/...
	$(GO) test -run '^$$' -bench '^BenchmarkGenerate' -benchtime 3x -timeout 15m ./scenarios/trace/generate

# The linter is a module of its own: what it requires is not what we require.
$(LINT): .ci/tools/golangci-lint/go.mod .ci/tools/golangci-lint/go.sum
	cd .ci/tools/golangci-lint && $(GO) build -o ../../../$(LINT) github.com/golangci/golangci-lint/v2/cmd/golangci-lint

lint: $(LINT)
	$(LINT) run

fmt: $(LINT)
	$(LINT) fmt

generate:
	$(GO) generate ./...

clean:
	rm -rf bin
