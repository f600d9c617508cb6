# Everything that is done to this project by hand or in CI. Only Go and a C
# compiler (for -race) are needed.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
GO      ?= go
BIN     := bin/spotter
LINT    := bin/golangci-lint
GOTESTSUM := $(GO) run gotest.tools/gotestsum@v1.13.0 --format standard-quiet --rerun-fails=1 --rerun-fails-max-failures=6 --rerun-fails-abort-on-data-race

# The parts of Kubernetes that tests of the live side run against: built from
# pinned modules, or taken from KUBEBUILDER_ASSETS where that is set.
TESTENV     := bin/testenv
KUBERNETES  := v1.35.4
KUBE_LDFLAGS := -s -w \
  -X k8s.io/component-base/version.gitVersion=$(KUBERNETES) -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=35 \
  -X k8s.io/client-go/pkg/version.gitVersion=$(KUBERNETES)

# The version is given by the linker and not taken from the checkout, so that
# a build from an archive works as one from a clone.
export GOFLAGS := -buildvcs=false $(GOFLAGS)

LDFLAGS := -X main.version=$(VERSION)

.PHONY: build run results acceptance test play same bench lint fmt generate testenv charttools onnxruntime train train-forecaster train-q image image-test image-lock install-yaml e2e clean

build:
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/spotter

# run compares the default policies over 20 seeds on the embedded week.
run: build
	@.ci/tools/onnxruntime/fetch --optional
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
# on purpose, a controller beside a real Karpenter, and 800 random worlds. All random
# tests of a run share one seed. What fails once is tried once more, since servers and
# processes are real and the machine may be busy: a fault of ours fails again. What was
# skipped or tried again is listed at the end.
test: export SPOTTER_SEED ?= $(shell date +%s)
test:
	@.ci/tools/onnxruntime/fetch --optional
	$(GO) vet ./...
	$(GOTESTSUM) --packages './...' -- -race -timeout 40m
	$(GO) test -run 'Record|Import|Refit|Preset|Figures|Like' -timeout 20m ./scenarios/trace/...
	$(GO) test -run '^TestLibrary' -timeout 20m ./eval
	$(GOTESTSUM) --packages ./cmd/spotter -- -run '^Test(Gate|RunKarpenter)$$' -timeout 20m
	$(GO) test -run '^TestNoLeak$$' -timeout 20m ./models/onnx
	$(GO) test -run '^Test(RandomWorlds|Observe)$$' -timeout 20m ./sim

# play has things happen at random to a controller beside a real Karpenter, after make
# testenv: SPOTTER_SEED=3 make play PLAY=-play.for=2m.
play:
	$(GO) test -run '^TestRunKarpenterPlay$$' -count 1 -v -timeout 30m ./cmd/spotter $(PLAY)

# same runs equal weeks with builds for several machines and compares hashes.
same:
	.ci/same

# bench measures whole processes (CPU seconds, resident memory; those of the
# controller beside a cluster of ten thousand pods, after make testenv), the decisions
# of every policy, the reader of traces, the generator, timelines and the frames of the
# terminal. Its figures are those of an idle machine.
bench: build
	$(GO) test -run '^$$' -bench '^BenchmarkProcess(Sim|Linear)' -benchtime 5x -timeout 30m ./cmd/spotter
	$(GO) test -run '^$$' -bench '^BenchmarkProcessEval' -benchtime 1x -timeout 30m ./cmd/spotter
	SPOTTER=$(CURDIR)/$(BIN) $(GO) test -run '^$$' -bench '^BenchmarkProcessRun' -benchtime 1x -timeout 90m ./cmd/spotter
	$(GO) test -run '^$$' -bench '^Benchmark(Read|Open)' -benchtime 5x -timeout 15m ./scenarios/trace
	$(GO) test -run '^$$' -bench '^BenchmarkDecide' -benchtime 1x -timeout 30m ./eval
	$(GO) test -run '^$$' -bench '^Benchmark(At|Fill)' -benchtime 5x -timeout 15m ./eval/timeline
	$(GO) test -run '^$$' -bench '^Benchmark(View|Scrub|Frame)' -benchtime 100x -timeout 15m ./cmd/spotter/tui/...
	$(GO) test -run '^$$' -bench '^BenchmarkGenerate' -benchtime 3x -timeout 15m ./scenarios/trace/generate

# The linter is a module of its own: what it requires is not what we require.
$(LINT): .ci/tools/golangci-lint/go.mod .ci/tools/golangci-lint/go.sum
	cd .ci/tools/golangci-lint && $(GO) build -o ../../../$(LINT) github.com/golangci/golangci-lint/v2/cmd/golangci-lint

# testenv builds kube-apiserver, kube-controller-manager, kube-scheduler, kubectl,
# etcd, kwok and Karpenter on kwok's nodes: some 21 CPU-minutes the first time,
# seconds afterwards.
testenv: $(addprefix $(TESTENV)/,kube-apiserver kube-controller-manager kube-scheduler kubectl etcd kwok karpenter-kwok)

$(addprefix $(TESTENV)/,kube-apiserver kube-controller-manager kube-scheduler kubectl): .ci/tools/kubernetes/go.mod .ci/tools/kubernetes/go.sum
	cd .ci/tools/kubernetes && CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(KUBE_LDFLAGS)' -o ../../../$@ k8s.io/kubernetes/cmd/$(@F)

$(TESTENV)/etcd: .ci/tools/etcd/go.mod .ci/tools/etcd/go.sum
	cd .ci/tools/etcd && CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o ../../../$@ go.etcd.io/etcd/server/v3

$(TESTENV)/kwok: .ci/tools/kwok/go.mod .ci/tools/kwok/go.sum
	cd .ci/tools/kwok && CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o ../../../$@ sigs.k8s.io/kwok/cmd/kwok

$(TESTENV)/karpenter-kwok: $(wildcard .ci/tools/karpenter/*)
	cd .ci/tools/karpenter && CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o ../../../$@ .

# charttools builds what the charts are held with: Helm, kubeconform, promtool and the
# definitions of Flux, Argo CD and the Prometheus operator, some 25 CPU-minutes the first
# time, seconds afterwards.
charttools: bin/helm bin/kubeconform bin/promtool bin/crds

bin/crds: .ci/tools/crds/fetch.go
	@mkdir -p bin
	$(GO) run .ci/tools/crds/fetch.go $@

bin/helm: .ci/tools/helm/go.mod .ci/tools/helm/go.sum
	cd .ci/tools/helm && CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o ../../../$@ helm.sh/helm/v4/cmd/helm

bin/kubeconform: .ci/tools/kubeconform/go.mod .ci/tools/kubeconform/go.sum
	cd .ci/tools/kubeconform && CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o ../../../$@ github.com/yannh/kubeconform/cmd/kubeconform

bin/promtool: .ci/tools/promtool/go.mod .ci/tools/promtool/go.sum
	cd .ci/tools/promtool && CGO_ENABLED=0 $(GO) build -tags remove_all_sd -trimpath -ldflags '-s -w' -o ../../../$@ github.com/prometheus/prometheus/cmd/promtool

# onnxruntime puts the library that runs trained models into bin/: some 90 MB by npm
# the first time, nothing afterwards. Without it such policies are skipped.
onnxruntime:
	.ci/tools/onnxruntime/fetch

# train makes both bundles that are shipped anew, side by side and on one thread each,
# some 20 minutes: byte for byte the same on one kind of processor. DATA is the folder
# with the recordings of availability (docs/models.md).
DATA       ?= $(or $(SPOTTER_DATA),../shared/data)
RECORDED   := availability/1-node/aws-02-15-2023 preemption/1-node/aws-04-19-2023 preemption/1-node/aws-04-22-2023

train: build
	@test -d '$(DATA)/availability/skypilot' || { echo '$(DATA)/availability/skypilot is not there: name the folder of recordings by DATA' >&2; exit 2; }
	@rm -rf dist/recorded; mkdir -p dist/recorded
	@for day in $(RECORDED); do $(BIN) trace import $(DATA)/availability/skypilot/$$day/*.json -o dist/recorded/$${day##*/} || exit; done
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
	$(BIN) models dataset $(RECORDINGS:%=--recorded %) -o $(FORECASTER)/data
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PYTHON) models/train/forecaster/train.py $(FORECASTER)/data $(FORECASTER)/bundle
	$(BIN) models evaluate $(FORECASTER)/data --bundle $(FORECASTER)/bundle --write
	cp $(FORECASTER)/bundle/forecaster.onnx $(FORECASTER)/bundle/MODEL_MANIFEST.json models/builtin/

# train-q makes the network of the policy model anew, in models/qnet, some 10 CPU-minutes.
train-q: build
	rm -rf dist/qnet
	$(BIN) models train -o dist/qnet
	cp dist/qnet/actions.onnx dist/qnet/MODEL_MANIFEST.json models/qnet/

# image makes the container image without a container engine: an OCI layout in dist/,
# of packages of Debian 12, ONNX Runtime and the program, with a bill of materials
# beside it. It needs a Debian 12. IMAGE_ARCH=amd64,arm64 makes it for both. image-test
# runs what is in it, and makes it once more; image-lock pins the newest packages.
IMAGE_VERSION ?= $(VERSION:v%=%)
IMAGE_ARCH    ?= $(shell $(GO) env GOARCH)
IMAGE_FLAGS   ?=
IMAGE         := dist/spotter-$(IMAGE_VERSION).oci.tar

image: bin/imagetool
	bin/imagetool build --arch $(IMAGE_ARCH) --version $(IMAGE_VERSION) --out $(IMAGE) $(IMAGE_FLAGS)

image-test: image
	cd .ci/tools/image && SPOTTER_IMAGE=$(CURDIR)/$(IMAGE) SPOTTER_IMAGE_FLAGS='$(IMAGE_FLAGS)' $(GO) test -count 1 -v -timeout 20m .

image-lock: bin/imagetool
	bin/imagetool lock

bin/imagetool: $(wildcard .ci/tools/image/*)
	cd .ci/tools/image && CGO_ENABLED=0 $(GO) build -trimpath -o ../../../$@ .

# e2e plays two compressed days on the real stack, some fifteen minutes: docs/e2e.md.
# E2E takes flags of go test, as in make e2e E2E='-run TestDay/Warned'.
E2E ?=

e2e: build testenv bin/helm
	SPOTTER=$(CURDIR)/$(BIN) SPOTTER_E2E=1 SPOTTER_TESTENV=required $(GO) test -count 1 -v -timeout 40m $(E2E) ./test/e2e

# install-yaml renders the chart for those without Helm. DIGEST=sha256:… pins the image.
CHART ?= charts/spotter

install-yaml: bin/helm
	build/install-yaml $(CHART) dist/install.yaml $(DIGEST)

lint: $(LINT)
	$(LINT) run

fmt: $(LINT)
	$(LINT) fmt

generate:
	$(GO) generate ./...
	$(GO) generate ./charts

clean:
	rm -rf bin dist
