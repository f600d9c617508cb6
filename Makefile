# Everything that is done to this project by hand or in CI. Only Go and a C
# compiler (for -race) are needed. A target whose line ends in "## words" is listed by
# make help, which is what make does without a target.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
GO      ?= go
BIN     := bin/spotter
LAB     := .ci/tools/lab
LINT    := bin/golangci-lint

# What fails once is tried RERUNS times more, since servers and processes are real and
# the machine may be busy: a fault of ours fails again. A data race is never tried again.
# What was skipped or tried again is listed at the end. The last word of a call of
# gotestsum names the file in TIMES that it writes for test-times.
RERUNS    ?= 1
TIMES     := dist/tests
gotestsum  = env $(COMPILE) run gotest.tools/gotestsum@v1.13.0 --format standard-quiet --rerun-fails=$(RERUNS) --rerun-fails-max-failures=6 \
  --rerun-fails-abort-on-data-race --jsonfile $(if $(filter /%,$(1)),,$(TIMES)/)$(1).json

# The parts of Kubernetes that tests of the live side run against: built from
# pinned modules, or taken from KUBEBUILDER_ASSETS where that is set.
TESTENV     := bin/testenv
KUBERNETES  := v1.35.4
KUBE_LDFLAGS := -s -w \
  -X k8s.io/component-base/version.gitVersion=$(KUBERNETES) -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=35 \
  -X k8s.io/client-go/pkg/version.gitVersion=$(KUBERNETES)

# The version is given by the linker and not taken from the checkout, so that
# a build from an archive works as one from a clone.
# What is built here shares its flags, so that a package is compiled once for all of
# it. DWARF is left out, a sixth of the work: go build by itself keeps it for debuggers.
#
# grpcnotrace leaves a page about requests out of gRPC, which tools of the tests link and
# spotter does not. It is a template of html/template: a program that can run templates keeps
# every exported method of everything it links, and is twice as large for it.
export GOFLAGS := -buildvcs=false -trimpath -gcflags=all=-dwarf=false -tags=grpcnotrace $(GOFLAGS)

# The compiler collects its own garbage less often, which saves a fifth of its time, and
# so do tests and the servers that they start.
COMPILE := GOGC=400 $(GO)

# Symbols and DWARF are left out, a third of the program's size. What go version -m says
# stays, as do the names of functions and the lines in a panic, a profile and a stack.
LDFLAGS := -s -w -X main.version=$(VERSION)

.DEFAULT_GOAL := help
.PHONY: help build spotter run results acceptance test check test-tools test-rights test-alone test-raced test-raced-commands test-plain test-beside test-charts test-lab test-times nightly play mutations same pictures web site site-check bench bench-compare lint fmt vulncheck generate testenv charttools onnxruntime train train-forecaster train-q image image-test image-lock snapshot install-test install-yaml karpenterdiff karpenterawsdiff schedulerdiff kueuediff e2e fidelity whatif clean

help: ## list the targets
	@sed -nE 's/^([a-z0-9-]+):[^#]*## (.*)/\1\t\2/p' Makefile | expand -t 20

build: spotter ## bin/spotter and bin/spotter-lab
	cd $(LAB) && $(COMPILE) build -ldflags '$(LDFLAGS)' -o ../../../$(BIN)-lab .

spotter: ## bin/spotter alone
	$(COMPILE) build -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/spotter

# run builds bin/spotter alone: no default policy needs spotter-lab or ONNX Runtime.
run: spotter ## compare the default policies over twelve recorded weeks
	$(BIN) eval

# results makes docs/results.md again: every policy in every embedded scenario, over twelve
# recorded weeks with one seed each, which intervals need with so many policies.
results: build ## write docs/results.md
	$(BIN) eval all --policies all,spotvortex:compat=true --baseline spotvortex --seeds 1 --yes --format markdown --out docs/results.md
	sed -i '1s/^# \(.*\)/# Results\n\nWhat every policy saves in every embedded [scenario](scenarios.md), and what outages it has: \1./; /no gate was asked for/,+1d' docs/results.md

# acceptance holds the policy portfolio to what docs/acceptance.md asks of it,
# on recorded weeks: make acceptance TRACE1=us-east-1 TRACE2=us-east-2.
acceptance: build ## hold portfolio to docs/acceptance.md on recorded weeks: TRACE1= TRACE2=
	SPOTTER=$(BIN) eval/acceptance.sh '$(TRACE1)' '$(TRACE2)'

# test runs every test, with the race detector where it can find something: it sees two
# goroutines that meet without a lock, and costs five to ten times the time. First it builds,
# once, what tests run against: a real control plane and the tools of the charts (test-tools).
# Its last line says how many tests passed, failed and were skipped, and why.
#
# PURE packages start no goroutine, nor do their tests, and run plain. Of MIXED packages
# RACED_TESTS are raced, in which runs share a prepared scenario, a weather, a catalog or a timeline,
# and all of them run plain. COMMANDS call what is raced in its own package: of their tests
# RACED_COMMANDS are raced, which run the controller or stop what runs, and all others run
# plain. Tests of APART packages run other programs, and run plain, too. Everything else is
# raced, but for PLAIN_TESTS. A test in policy holds this division, so that what begins to
# start goroutines is raced again.
#
# Plain tests compute. They run beside the raced ones, which wait for servers much of the
# time, and give way to them. TestRunKarpenter has the machine to itself, since it holds a
# node under notice to 30 s. All random tests of a run share one seed, and play fewer
# cases than in make nightly: see test/nightly.
PURE  := ./policy/... ./sim/cluster ./sim/controller ./sim/engine ./sim/fleet ./sim/groups ./sim/karpenter ./sim/kueue ./sim/machines ./sim/nodepools ./sim/result ./sim/scheduler \
  ./models ./eval/bill ./eval/chart ./eval/oracle ./eval/report ./eval/shard ./eval/stats ./scenarios/catalog ./scenarios/chance \
  ./scenarios/weather ./scenarios/trace ./scenarios/trace/measure ./scenarios/trace/importer \
  ./cmd/spotter/internal/capture ./cmd/spotter/internal/catalog ./cmd/spotter/internal/convert \
  ./cmd/spotter/internal/sim ./cmd/spotter/internal/try ./cmd/spotter/internal/tui/draw ./live/aws/wire ./test/e2e/bill
MIXED := ./cmd/spotter/internal/history ./cmd/spotter/internal/tui ./cmd/spotter/internal/tui/screen ./eval ./eval/format ./eval/timeline ./internal/input \
  ./scenarios ./scenarios/trace/generate ./sim ./test/fidelity
COMMANDS := ./cmd/spotter
APART    := ./charts
RACED_TESTS    := ^Test(Parallel.*|RandomScenarios|LibraryUnderEveryPolicy|AtNeverChanges|BindConcurrently|Prefixes|AvailabilityLikeRecorded|SameBytes|StopDoesNotWaitForBounds|TrainEnds|PartIsBoundAsTheWhole|Choose|Stream|Read|Real|Random)$$
RACED_COMMANDS := ^Test(Run.*|Rule.*|Right.*|AWSRights.*|Live.*|Reload|Follow|Cleanup(AWS)?|CaptureCluster|TryCluster|Commands.*|Metrics.*|TraceRecord.*|Interrupted|PipeIsLeft|CompareStopped|Eval(OnTerminal|Stopped)|WindowsBegin|MCP(Cancel|Cluster|Progress)|Azure(EvictionDrains|Shadow)|GCP(PreemptionDrains|Shadow))$$
PLAIN_TESTS    := ^Test(MemoryIsBounded|SavingsDoNotDependOnReadings)$$

# MOST_TESTS play fewer seeds under the race detector than without it. make nightly runs
# them without it too, and every property (rapid) twenty times as often as a commit does, by
# SPOTTER_NIGHTLY and RAPID_CHECKS.
MOST_TESTS    := ^Test(Rule16Rival|RandomDrains|KilledAtRandomPoints|Rule11Killed|NoLeak)$$

# The longest stand first, so that nothing is left to be waited for alone.
LONGEST = $(addprefix $(shell $(GO) list -m)/,live/karpenter live/rackspace live/drain live/asg)
RACED   = $(LONGEST) $(filter-out $(LONGEST) $(shell $(GO) list $(PURE) $(MIXED) $(COMMANDS) $(APART)),$(shell $(GO) list ./...))

# Tests with a real API server write down which rights were used. At the end these are
# held against those that are granted. A suite that fails keeps none from running.
RIGHTS := $(CURDIR)/bin/rights

test nightly: export SPOTTER_SEED ?= $(shell date +%s)
test nightly: export SPOTTER := $(CURDIR)/$(BIN)
test test-alone test-raced test-raced-commands test-plain test-charts test-lab nightly e2e: export SPOTTER_RIGHTS_USED := $(RIGHTS)
test nightly: export SPOTTER_TESTENV := required
test: build test-tools $(RIGHTS)/begun ## build what tests need, then go vet and all tests
	@rm -rf $(TIMES)
	$(COMPILE) vet ./...
	@echo 'compiling all packages with the race detector'
	@$(COMPILE) build -race $(shell $(GO) list -f '{{if ne .Name "main"}}{{.ImportPath}}{{end}}' ./...)
	cd $(LAB) && $(COMPILE) vet ./...
	@if [ -e bin/libonnxruntime.so.1 ]; then export SPOTTER_MODELS=required; fi; failed=0; \
	$(MAKE) -k -j4 --no-print-directory test-raced test-raced-commands test-plain test-beside || failed=1; \
	$(MAKE) --no-print-directory test-alone || failed=1; \
	$(MAKE) --no-print-directory test-rights || failed=1; \
	$(GO) run ./.ci/tools/testsummary $(TIMES)/*.json || failed=1; exit $$failed

# What tests run against is built from pinned modules, some 26 CPU-minutes the first time,
# seconds afterwards.
test-tools:
	@.ci/tools/onnxruntime/fetch --optional
	@$(MAKE) --no-print-directory testenv charttools

test-rights:
	$(call gotestsum,rights) --packages ./live/rights -- -vet=off -run '^TestGrantedIsUsed$$'

test-rights: export SPOTTER_RIGHTS_COLLECTED := $(RIGHTS)

# check is the quick loop of a contributor: it needs Go alone, and no more than three minutes
# once packages are compiled. Properties have the usual hundred cases: -short takes a fifth.
CHECKED := ./policy/... ./sim/... ./models ./scenarios/... ./eval/format ./eval/report ./eval/stats ./internal/... ./cmd/spotter/internal/... ./live/permit ./live/rights

check: export RAPID_CHECKS ?= 500
check: ## go vet and the quick tests, within three minutes
	$(COMPILE) vet ./...
	$(GO) test -short $(CHECKED)
	@echo 'check: passed. Left out: eval, oracle and the embedded scenarios, the commands as a whole, tests against a control plane, charts, trained models, spotter-lab, and the race detector: make test'

$(RIGHTS)/begun:
	@mkdir -p $(RIGHTS) && touch $@

# test-beside runs what mostly waits for programs and servers, or computes on one processor.
test-beside:
	@$(MAKE) -k --no-print-directory test-charts test-lab

test-alone:
	@mkdir -p $(TIMES)
	$(call gotestsum,alone) --packages '$(COMMANDS)' -- -vet=off -run '^TestRunKarpenter$$' -timeout 20m

# A program under the race detector would wait a second at its end.
test-raced test-raced-commands: export GORACE ?= atexit_sleep_ms=100
test-raced test-raced-commands: export RAPID_CHECKS ?= 30
test-raced:
	@mkdir -p $(TIMES)
	@failed=0; $(call gotestsum,raced) --packages '$(RACED)' -- -vet=off -race -skip '$(PLAIN_TESTS)' -timeout 40m || failed=1; \
	$(call gotestsum,raced-mixed) --packages '$(MIXED)' -- -vet=off -race -run '$(RACED_TESTS)' -timeout 20m || failed=1; exit $$failed

test-raced-commands:
	@mkdir -p $(TIMES)
	@$(call gotestsum,raced-commands) --packages '$(COMMANDS)' -- -vet=off -race -run '$(RACED_COMMANDS)' -timeout 20m

test-plain: export RAPID_CHECKS ?= 50
test-plain:
	@mkdir -p $(TIMES)
	@failed=0; nice $(call gotestsum,plain) --packages '$(PURE) $(MIXED) ./.ci/tools/testsummary ./.ci/tools/mutations' -- -vet=off -timeout 30m || failed=1; \
	nice $(call gotestsum,plain-commands) --packages '$(COMMANDS)' -- -vet=off -skip '$(RACED_COMMANDS)' -timeout 30m || failed=1; \
	nice $(call gotestsum,plain-live) --packages ./live -- -vet=off -run '$(PLAIN_TESTS)' -timeout 30m || failed=1; exit $$failed

test-charts:
	@mkdir -p $(TIMES)
	@$(call gotestsum,plain-apart) --packages '$(APART)' -- -vet=off -timeout 30m

# test-lab tests the module of spotter-lab, plain, and once more with the race detector
# what draws or trains at once.
test-lab:
	@mkdir -p $(TIMES)
	@failed=0; cd $(LAB); nice $(call gotestsum,$(CURDIR)/$(TIMES)/lab) --packages ./... -- -p 1 -timeout 30m || failed=1; \
	nice $(call gotestsum,$(CURDIR)/$(TIMES)/lab-raced) --packages './fit ./forecaster ./qnet' -- -race -p 1 -run '$(RACED_TESTS)' -timeout 20m || failed=1; exit $$failed

test-times: ## the slowest tests of the last run
	@cat $(TIMES)/*.json | $(GO) run gotest.tools/gotestsum@v1.13.0 tool slowest --threshold 2s

# nightly tries nothing twice, so that a test that passes only now and then is seen.
nightly: export RERUNS := 0
nightly: export SPOTTER_NIGHTLY := 1
nightly: export RAPID_CHECKS := 1000
nightly: test ## what make test runs, with every seed and nothing tried twice
	$(call gotestsum,most) --packages './live/asg ./live/drain ./live/rackspace ./models/onnx' -- -p 1 -run '$(MOST_TESTS)' -timeout 60m

# play has faults happen at random to two replicas of the controller beside a real
# Karpenter, watched from outside, after make testenv: N plays of FOR each, from SEED on,
# with a mark to stand for QUIET at most, as in make play SEED=3 N=100 FOR=3m. One that
# fails says how it is repeated.
N     ?= 1
FOR   ?= 3m
QUIET ?= 60s

play: ## random faults beside a real Karpenter: SEED= N= FOR=
	$(if $(SEED),SPOTTER_SEED=$(SEED)) SPOTTER_TESTENV=required $(GO) test -run '^TestRunKarpenterPlay$$' -count 1 -v -timeout 24h ./cmd/spotter -play.n=$(N) -play.for=$(FOR) -play.quiet=$(QUIET)

# mutations breaks one line at a time, some forty of them, and fails where no test
# notices, after make testenv: .ci/tools/mutations. MUTATION chooses some by parts of
# their names. With RANDOM it breaks as many lines of guarding code, drawn by SEED, and
# fails where more than a tenth goes unnoticed.
MUTATION ?=
RANDOM   ?=

mutations: ## break lines one at a time and see a test fail: MUTATION=, RANDOM= SEED=
	$(COMPILE) run ./.ci/tools/mutations $(if $(RANDOM),--random $(RANDOM) --seed $(or $(SEED),$(shell date +%j)),$(MUTATION))

# same runs equal weeks with builds for several machines and compares hashes.
same: build ## equal hashes over builds for several machines
	.ci/same

# pictures makes those of README.md and docs/ci.md, by tmux and Chromium.
pictures: build ## the pictures of README.md and docs/ci.md
	.ci/pictures

# site makes a version of the documents' site into the folder SITE, beside those that are
# there. A link to a page or a heading that is not there fails it. site-check opens it in
# Chromium. Hugo takes some 3 CPU-minutes the first time.
SITE         ?= dist/site
SITE_VERSION ?= main
HUGO         := bin/hugo

$(HUGO): .ci/tools/hugo/go.mod .ci/tools/hugo/go.sum
	cd .ci/tools/hugo && CGO_ENABLED=0 $(COMPILE) build -ldflags '-s -w' -o '$(abspath $@)' github.com/gohugoio/hugo

# web builds what the page web.html runs in a browser, and the part of Go's own that loads it.
web: ## the program of the site's page web.html
	@mkdir -p dist/web
	GOOS=js GOARCH=wasm $(COMPILE) build -ldflags '-s -w' -o dist/web/week.wasm ./cmd/web
	gzip -9nc dist/web/week.wasm >dist/web/week.wasm.gz
	cp "$$($(GO) env GOROOT)/lib/wasm/wasm_exec.js" dist/web/

site: $(HUGO) web ## the documents as a site: SITE= SITE_VERSION=
	HUGO_PARAMS_VERSION='$(SITE_VERSION)' $(HUGO) --source docs/site --destination '$(abspath $(SITE))/$(SITE_VERSION)' --cleanDestinationDir \
	  --cacheDir '$(abspath dist)/hugo' --panicOnWarning
	cp dist/web/week.wasm.gz dist/web/wasm_exec.js '$(SITE)/$(SITE_VERSION)/'
	build/site-versions '$(SITE)'

site-check: $(HUGO) spotter ## open the site in Chromium
	.ci/site

# bench measures whole processes (CPU seconds, resident memory, the costly policies beside
# spotvortex; those of the controller beside a cluster of ten thousand pods, and when all
# nodes are reclaimed at once, after make testenv), the decisions of every policy, the oracle, the reader of traces, the generator, timelines,
# the frames of the terminal, and the reader of metrics of a past year. Its figures are those of an idle machine.
bench: export SPOTTER := $(CURDIR)/$(BIN)
bench: build ## measure whole processes and hot paths, on an idle machine
	$(GO) test -run '^$$' -bench '^BenchmarkProcess(Sim|Linear|Policies)' -benchtime 5x -timeout 30m ./cmd/spotter
	$(GO) test -run '^$$' -bench '^BenchmarkProcess(Eval|Scale|Year)' -benchtime 1x -timeout 30m ./cmd/spotter
	$(GO) test -run '^$$' -bench '^BenchmarkProcessRun' -benchtime 1x -timeout 90m ./cmd/spotter
	SPOTTER_TESTENV=required $(GO) test -run '^$$' -bench '^BenchmarkMassReclaim' -benchtime 1x -timeout 30m ./cmd/spotter
	$(GO) test -run '^$$' -bench '^Benchmark(Read|Open)' -benchtime 5x -timeout 15m ./scenarios/trace
	$(GO) test -run '^$$' -bench '^Benchmark(Decide|Oracle)' -benchtime 1x -timeout 30m ./eval ./eval/oracle
	$(GO) test -run '^$$' -bench '^Benchmark(At|Fill)' -benchtime 5x -timeout 15m ./eval/timeline
	$(GO) test -run '^$$' -bench '^Benchmark(View|Scrub|Frame)' -benchtime 100x -timeout 15m ./cmd/spotter/internal/tui/...
	$(GO) test -run '^$$' -bench '^BenchmarkGenerate' -benchtime 3x -timeout 15m ./scenarios/trace/generate
	$(GO) test -run '^$$' -bench '^BenchmarkHistoryYear' -benchtime 1x -timeout 30m ./cmd/spotter/internal/history

# bench-compare fails when processor time or memory of whole processes has grown by more
# than a tenth since a commit, which is built beside this tree, as in make bench-compare
# BASE=main. It takes some minutes.
bench-compare: ## hold processor time and memory against a commit: BASE=
	$(GO) run ./.ci/tools/benchcompare '$(BASE)'

# The linter is a module of its own: what it requires is not what we require.
$(LINT): .ci/tools/golangci-lint/go.mod .ci/tools/golangci-lint/go.sum
	cd .ci/tools/golangci-lint && $(COMPILE) build -o ../../../$(LINT) github.com/golangci/golangci-lint/v2/cmd/golangci-lint

# testenv builds kube-apiserver, kube-controller-manager, kube-scheduler, kubectl,
# etcd, kwok and Karpenter on kwok's nodes, some 18 CPU-minutes the first time, seconds
# afterwards; charttools what the charts are held with: Helm of two major versions,
# jsonnet, kubeconform, promtool and the definitions of Flux, Argo CD and the Prometheus operator,
# some 8 CPU-minutes.
#
# Each of them is a module of its own. Those that have most of their packages in common
# are built in one workspace, in which these have one version and are compiled once.
KUBE    := kube-apiserver kube-controller-manager kube-scheduler kubectl
CLUSTER := cluster etcd karpenter kubernetes
CHARTS  := charts helm helm3 jsonnet kubeconform kwok promtool

testenv: $(addprefix $(TESTENV)/,$(KUBE) etcd karpenter-kwok kwok) ## the parts of Kubernetes that tests run against
charttools: bin/helm bin/helm3 bin/jsonnet bin/kubeconform bin/promtool bin/crds ## what tests of the charts run

# workspace lists what a workspace is made of; tool builds a package in one.
workspace = $(patsubst %,.ci/tools/%.work,$(firstword $(1))) $(patsubst %,.ci/tools/%.work.sum,$(firstword $(1))) \
  $(foreach m,$(wordlist 2,9,$(1)),$(wildcard .ci/tools/$(m)/*))
tool = @echo 'building $@ for the tests, once' && cd .ci/tools && GOWORK=$(CURDIR)/.ci/tools/$(firstword $(1)).work CGO_ENABLED=0 $(COMPILE) build

$(addprefix $(TESTENV)/,$(KUBE)) &: $(call workspace,$(CLUSTER))
	@mkdir -p $(TESTENV)
	$(call tool,$(CLUSTER)) -ldflags '$(KUBE_LDFLAGS)' -o ../../$(TESTENV)/ $(addprefix k8s.io/kubernetes/cmd/,$(KUBE))

$(TESTENV)/etcd: $(call workspace,$(CLUSTER))
	$(call tool,$(CLUSTER)) -ldflags '-s -w' -o ../../$@ go.etcd.io/etcd/server/v3

$(TESTENV)/karpenter-kwok: $(call workspace,$(CLUSTER))
	$(call tool,$(CLUSTER)) -ldflags '-s -w' -o ../../$@ ./karpenter

# toolchain has the module file $$mod built with the Go that it asks for where ours is older.
toolchain = case $$($(GO) list -m -modfile $$mod 2>&1) in *'requires go >='*) export GOTOOLCHAIN=go$$(sed -n 's/^go //p' $$mod);; esac

# karpenter-kwok-1.15 is the same with another version of Karpenter, some 5 CPU-minutes each.
$(TESTENV)/karpenter-kwok-%: $(wildcard .ci/tools/karpenter/*)
	@mkdir -p $(TESTENV)
	@echo 'building $@, once' && cd .ci/tools/karpenter && export GOWORK=off CGO_ENABLED=0 && mod=$$(echo go.$*.*.mod) && $(toolchain) && \
	  $(COMPILE) build -modfile $$mod -tags grpcnotrace,karpenter$(subst .,,$*) -ldflags '-s -w' -o ../../../$@ .

$(TESTENV)/kwok: $(call workspace,$(CHARTS))
	$(call tool,$(CHARTS)) -ldflags '-s -w' -o ../../$@ sigs.k8s.io/kwok/cmd/kwok

$(TESTENV)/prometheus $(TESTENV)/kube-state-metrics &: $(wildcard .ci/tools/metrics/*)
	@mkdir -p $(TESTENV)
	cd .ci/tools/metrics && GOWORK=off CGO_ENABLED=0 $(COMPILE) build -tags remove_all_sd -ldflags '-s -w' -o ../../../$(TESTENV)/ tool

bin/crds: .ci/tools/crds/fetch.go
	@mkdir -p bin
	$(GO) run .ci/tools/crds/fetch.go $@

bin/helm: $(call workspace,$(CHARTS))
	$(call tool,$(CHARTS)) -ldflags '-s -w' -o ../../$@ helm.sh/helm/v4/cmd/helm

# By default Helm 3 renders for the Kubernetes that it is told of as it is built.
HELM3_LDFLAGS := -s -w $(foreach p,chartutil lint/rules,-X helm.sh/helm/v3/pkg/$(p).k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/$(p).k8sVersionMinor=35)

bin/helm3: $(call workspace,$(CHARTS))
	$(call tool,$(CHARTS)) -ldflags '$(HELM3_LDFLAGS)' -o ../../$@ helm.sh/helm/v3/cmd/helm

bin/jsonnet: $(call workspace,$(CHARTS))
	$(call tool,$(CHARTS)) -ldflags '-s -w' -o ../../$@ github.com/google/go-jsonnet/cmd/jsonnet

bin/kubeconform: $(call workspace,$(CHARTS))
	$(call tool,$(CHARTS)) -ldflags '-s -w' -o ../../$@ github.com/yannh/kubeconform/cmd/kubeconform

bin/promtool: $(call workspace,$(CHARTS))
	$(call tool,$(CHARTS)) -tags remove_all_sd -ldflags '-s -w' -o ../../$@ github.com/prometheus/prometheus/cmd/promtool

# onnxruntime puts the library that runs trained models into bin/: some 90 MB by npm
# the first time, nothing afterwards. Without it such policies are skipped.
onnxruntime: ## fetch the library that runs trained models
	.ci/tools/onnxruntime/fetch

# train makes both bundles that are shipped anew, side by side and on one thread each,
# some 20 minutes: byte for byte the same on one kind of processor. DATA is the folder
# with the recordings of availability (docs/models.md).
DATA       ?= $(or $(SPOTTER_DATA),../shared/data)
RECORDED   := availability/1-node/aws-02-15-2023 preemption/1-node/aws-04-19-2023 preemption/1-node/aws-04-22-2023

recorded: ## make the embedded recorded prices again: DATA=
	cd $(LAB) && $(GO) run ./embedded/gen.go '$(abspath $(DATA))'

train: build ## make both model bundles anew: DATA=
	@test -d '$(DATA)/availability/skypilot' || { echo '$(DATA)/availability/skypilot is not there: name the folder of recordings by DATA' >&2; exit 2; }
	@rm -rf dist/recorded; mkdir -p dist/recorded
	@for day in $(RECORDED); do $(BIN) trace import $(DATA)/availability/skypilot/$$day/*.json --out dist/recorded/$${day##*/} || exit; done
	$(MAKE) -j 2 train-forecaster train-q RECORDINGS='$(addprefix dist/recorded/,$(notdir $(RECORDED)))'

# train-forecaster makes the forecaster of models/builtin anew, some 10 CPU-minutes:
# make train-forecaster RECORDINGS='v100 later', each a trace with recorded availability.
# It needs Debian's PyTorch; nothing else needs Python.
PYTHON     ?= /usr/bin/python3
RECORDINGS ?=
FORECASTER := dist/forecaster

train-forecaster: build
	@$(PYTHON) -c 'import torch, numpy' || { echo 'PyTorch is not here: apt-get install -y python3-torch libopenblas0-pthread python3-numpy' >&2; exit 2; }
	@test -n '$(RECORDINGS)' || { echo 'RECORDINGS is empty: name traces with recorded availability' >&2; exit 2; }
	rm -rf $(FORECASTER)
	$(BIN) models dataset $(RECORDINGS:%=--recorded %) --out $(FORECASTER)/data
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PYTHON) $(LAB)/forecaster/train.py $(FORECASTER)/data $(FORECASTER)/bundle
	$(BIN) models evaluate $(FORECASTER)/data --bundle $(FORECASTER)/bundle --write
	cp $(FORECASTER)/bundle/forecaster.onnx $(FORECASTER)/bundle/MODEL_MANIFEST.json models/builtin/

# train-q makes the network of the policy model anew, in models/qnet, some 10 CPU-minutes.
train-q: build
	rm -rf dist/qnet
	$(BIN) models train --out dist/qnet
	cp dist/qnet/actions.onnx dist/qnet/MODEL_MANIFEST.json models/qnet/

# image makes the container image without a container engine: an OCI layout in dist/,
# of packages of Debian 12, ONNX Runtime and the program, with a bill of materials
# beside it. It needs a Debian 12. IMAGE_ARCH=amd64,arm64 makes it for both. image-test
# runs what is in it, and makes it once more; image-lock pins the newest packages.
IMAGE_VERSION ?= $(VERSION:v%=%)
IMAGE_ARCH    ?= $(shell $(GO) env GOARCH)
IMAGE_FLAGS   ?=
IMAGE         := dist/spotter-$(IMAGE_VERSION).oci.tar

image: bin/imagetool ## the container image, as an OCI archive in dist/
	bin/imagetool build --arch $(IMAGE_ARCH) --version $(IMAGE_VERSION) --out $(IMAGE) $(IMAGE_FLAGS)

image-test: image ## run what is in the image
	cd .ci/tools/image && SPOTTER_IMAGE=$(CURDIR)/$(IMAGE) SPOTTER_IMAGE_FLAGS='$(IMAGE_FLAGS)' $(GO) test -count 1 -v -timeout 20m .

image-lock: bin/imagetool
	bin/imagetool lock $(IMAGE_FLAGS)

bin/imagetool: $(wildcard .ci/tools/image/*)
	cd .ci/tools/image && CGO_ENABLED=0 $(COMPILE) build -o ../../../$@ .

# These hold the simulator against the real code of Karpenter, of its provider for AWS, of
# kube-scheduler and of Kueue, on STATES random states, half of them from fixed seeds and half from
# fresh ones or from SEED on: docs/fidelity.md. What differs is written to a file, and
# STATE repeats one. Each is a module of its own, and stands alone: our requirements change
# versions of what testenv is built with.
#
# KARPENTER lists versions, among which STATES are divided. Each has a go.<version>.mod
# beside go.mod but for that of go.mod itself; go mod tidy -modfile keeps them. One that
# wants a newer Go than ours is built with that, or left out where it cannot be fetched.
# SIDE is scheduling or disruption.
STATES    ?= 1000
SEED      ?=
STATE     ?=
SIDE      ?= scheduling disruption
KARPENTER ?= 1.12.1 1.13.0 1.14.1 1.15.0
DIFFER    := dist/differences
repeat     = $(if $(STATE),-state '$(abspath $(STATE))',-n $(1) $(if $(SEED),-seed $(SEED)) -out '$(abspath $(DIFFER))')

karpenterdiff: ## hold sim/karpenter against the real Karpenter: STATES=
	@mkdir -p $(DIFFER)
	@cd .ci/tools/karpenterdiff && export GOWORK=off CGO_ENABLED=0 && for v in $(KARPENTER); do ( \
	  mod=go.mod; test ! -e go.$$v.mod || mod=go.$$v.mod; \
	  $(toolchain); $(GO) version >/dev/null 2>&1 || { echo "Karpenter $$v: not compared, since $$GOTOOLCHAIN cannot be fetched"; exit 0; }; \
	  minor=$${v#1.}; \
	  $(COMPILE) build -modfile $$mod -tags grpcnotrace,karpenter1$${minor%%.*} -o ../../../bin/karpenterdiff-$$v . || exit; \
	  for side in $(SIDE); do echo "Karpenter $$v: $$side"; \
	    ../../../bin/karpenterdiff-$$v -side $$side $(call repeat,$$(($(STATES) / $(words $(KARPENTER))))) || exit; done; \
	) || exit; done

schedulerdiff: ## hold sim/scheduler against kube-scheduler: STATES=
	@mkdir -p $(DIFFER)
	cd .ci/tools/schedulerdiff && GOWORK=off CGO_ENABLED=0 $(COMPILE) build -o ../../../bin/schedulerdiff .
	bin/schedulerdiff $(call repeat,$(STATES))

kueuediff: ## hold sim/kueue against Kueue's scheduler: STATES=
	@mkdir -p $(DIFFER)
	cd .ci/tools/kueuediff && GOWORK=off CGO_ENABLED=0 $(COMPILE) build -o ../../../bin/kueuediff .
	bin/kueuediff $(call repeat,$(STATES))

karpenterawsdiff: ## hold sim/fleet against Karpenter's provider for AWS: STATES=
	cd .ci/tools/karpenterawsdiff && $(COMPILE) test -count 1 -v -timeout 30m . -args -n $(STATES) $(if $(SEED),-seed $(SEED))

# e2e plays two compressed days on the real stack, beside each other: docs/e2e.md.
# E2E takes flags of go test, as in make e2e E2E='-run TestDay/Warned'.
E2E ?=

e2e: build testenv bin/helm $(RIGHTS)/begun ## two compressed days on the real stack
	SPOTTER=$(CURDIR)/$(BIN) SPOTTER_E2E=1 SPOTTER_TESTENV=required $(GO) test -count 1 -v -timeout 40m $(E2E) ./test/e2e

# fidelity plays scripted days on the real control plane and in the simulator from the same
# manifests, offers, prices and weather, beside each other, and compares them: docs/fidelity.md.
# DAYS names some of reclaims, growth and prices, N is how many runs of each, and KEEP a
# folder for their records, as in make fidelity DAYS=reclaims N=3 KEEP=test/fidelity/testdata.
#
# RANDOM=n plays n random days instead, of the seeds from SEED on, twice each, under the versions
# of KARPENTER, such as 1.15 (else 1.14), STACKS clusters beside each other. What is in KEEP is not
# played again. The published days are made by, and then shown in docs by
# go test ./test/fidelity -run TestPages -rewrite:
#   make fidelity RANDOM=30 SEED=1 KEEP=test/fidelity/testdata/random
#   make fidelity RANDOM=10 SEED=1 KARPENTER='1.12 1.13 1.15' KEEP=test/fidelity/testdata/random
PLAYED := $(if $(filter file,$(origin KARPENTER)),1.14,$(KARPENTER))
fidelity: testenv $(if $(RANDOM),$(addprefix $(TESTENV)/karpenter-kwok-,$(filter-out 1.14,$(PLAYED)))) ## scripted or random days on the real stack and in the simulator: DAYS= or RANDOM= SEED=
	$(if $(RANDOM),SPOTTER_FIDELITY_RANDOM=$(RANDOM) SPOTTER_FIDELITY_KARPENTER='$(PLAYED)' \
	  SPOTTER_FIDELITY_COMMIT=$$(git describe --always --exclude '*' --abbrev=40 --dirty) $(if $(SEED),SPOTTER_SEED=$(SEED)), \
	  SPOTTER_FIDELITY=1 SPOTTER_FIDELITY_DAYS='$(DAYS)' SPOTTER_FIDELITY_N=$(or $(N),1)) \
	  SPOTTER_TESTENV=required SPOTTER_FIDELITY_KEEP='$(abspath $(KEEP))' $(GO) test -count 1 -v -parallel $(or $(STACKS),$(if $(RANDOM),4,16)) \
	  -timeout $(if $(RANDOM),24h,60m) -run '$(if $(RANDOM),TestRandom$$,TestReal)' ./test/fidelity

# whatif plays two hours of deploys on four real stacks beside each other, captures the first of
# them by the metrics that a real Prometheus kept, and holds what whatif says of three changes
# against what they did: docs/fidelity.md. FOR is how long is played, one hour at least for the
# comparison, and KEEP a folder for its recording, as KEEP=test/whatif/testdata.
whatif: build testenv $(TESTENV)/prometheus $(TESTENV)/kube-state-metrics ## what whatif says beside what real stacks do: FOR=
	SPOTTER=$(CURDIR)/$(BIN) SPOTTER_WHATIF_FOR=$(or $(FOR),2h) SPOTTER_TESTENV=required SPOTTER_WHATIF_KEEP='$(abspath $(KEEP))' \
	  $(GO) test -count 1 -v -timeout 4h -run TestReal ./test/whatif

# snapshot makes what a release has besides image and charts, in dist/release and by
# .goreleaser.yaml: archives, packages, bills of materials, sums, and the manifests of
# Homebrew and krew; unsigned, and published nowhere. SNAPSHOT_OS and SNAPSHOT_ARCH narrow
# it, since each platform takes some CPU-minutes the first time. install-test makes it for
# this machine alone, runs what is in it, and follows the README from nothing.
GORELEASER     := bin/goreleaser
SNAPSHOT_OS    ?= linux, darwin
SNAPSHOT_ARCH  ?= amd64, arm64
SNAPSHOT_FLAGS ?= --snapshot

$(GORELEASER): .ci/tools/goreleaser/go.mod .ci/tools/goreleaser/go.sum
	cd .ci/tools/goreleaser && CGO_ENABLED=0 $(COMPILE) build -ldflags '-s -w' -o ../../../$@ github.com/goreleaser/goreleaser/v2

snapshot: $(GORELEASER) bin/imagetool ## archives and packages of a release, unsigned: SNAPSHOT_OS= SNAPSHOT_ARCH=
	@mkdir -p dist
	sed -E 's/^(    goos: \[).*\]/\1$(SNAPSHOT_OS)]/; s/^(    goarch: \[).*\]/\1$(SNAPSHOT_ARCH)]/' .goreleaser.yaml >dist/goreleaser.yaml
	GOGC=400 $(GORELEASER) release --clean --parallelism 1 --skip publish,announce --config dist/goreleaser.yaml $(SNAPSHOT_FLAGS)

bin/krew: .ci/tools/krew/go.mod .ci/tools/krew/go.sum
	cd .ci/tools/krew && CGO_ENABLED=0 $(COMPILE) build -ldflags '-s -w' -o ../../../$@ sigs.k8s.io/krew/cmd/krew

install-test: SNAPSHOT_OS = $(shell $(GO) env GOOS)
install-test: SNAPSHOT_ARCH = $(shell $(GO) env GOARCH)
install-test: snapshot bin/krew ## what the README says of installing, with a release made here
	CGO_ENABLED=0 $(GO) test -count 1 ./models/onnx
	SPOTTER_RELEASE=$(CURDIR)/dist/release $(GO) test -count 1 -v ./test/install

# install-yaml renders the chart for those without Helm. DIGEST=sha256:… pins the image.
CHART ?= charts/spotter

install-yaml: bin/helm ## render the chart for those without Helm
	build/install-yaml $(CHART) dist/install.yaml $(DIGEST)

lint: $(LINT) ## golangci-lint
	$(LINT) run
	cd $(LAB) && ../../../$(LINT) run --config ../../../.golangci.yml

fmt: $(LINT) ## gofmt
	$(LINT) fmt . $(LAB)

vulncheck: ## known vulnerabilities in what we call; needs vuln.go.dev
	$(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...
	cd $(LAB) && $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...

generate: ## everything that is generated from code
	$(GO) generate ./...
	$(GO) generate ./charts

clean: ## remove bin and dist
	rm -rf bin dist
