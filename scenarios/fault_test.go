package scenarios

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// trainer is a job of a pod with one device, init containers to be added, and the
// budget that counts it.
const trainer = `
apiVersion: batch/v1
kind: Job
metadata: {name: train, annotations: {spotter.dev/duration: 1h}}
spec:
  template:
    metadata: {labels: {app: train}}
    spec:
      initContainers: [%s]
      containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]
---
apiVersion: spotter.dev/v1alpha1
kind: GPUBudget
metadata: {name: training}
spec:
  selector: {matchLabels: {app: train}}
  quota: {gpuHours: 10, windowHours: 24}
`

// TestFaultSidecarsNotCounted reads the devices that budgets count for a pod: a sidecar, which is
// an init container that always restarts, holds its own in addition to those of the containers, and
// what an init container needs is held from the start.
func TestFaultSidecarsNotCounted(t *testing.T) {
	container := func(name string, devices int, sidecar bool) string {
		always := ""
		if sidecar {
			always = ", restartPolicy: Always"
		}
		return fmt.Sprintf("{name: %s, resources: {limits: {nvidia.com/gpu: %d}}%s}", name, devices, always)
	}
	for _, c := range []struct {
		name, containers string
		want             int64 // thousandths of a device
	}{
		{"no init container", "", 1000},
		{"one that ends", container("fetch", 1, false), 1000},
		{"a sidecar", container("cache", 1, true), 2000},
		{"one that ends and needs three", container("fetch", 3, false), 3000},
		{"and a sidecar before it", container("cache", 1, true) + ", " + container("fetch", 3, false), 4000},
		{"and a sidecar after it", container("fetch", 3, false) + ", " + container("cache", 1, true), 3000},
	} {
		sc, err := Parse("scenario.yaml", []byte(fmt.Sprintf(trainer, c.containers)+rest))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := sc.GPUBudgets[0].Counts(&sc.templates[0]); got != c.want {
			t.Errorf("%s: %d thousandths of a device are counted, want %d", c.name, got, c.want)
		}
	}
}

// TestFaultOtherRegionsRecommended binds a pool of a cloudspace where machines cost
// less elsewhere: it has one region, so none of the others is its market.
func TestFaultOtherRegionsRecommended(t *testing.T) {
	tr := classes()
	for i := range tr.Series {
		if tr.Series[i].Region == "aus-syd-1" {
			for k := range tr.Series[i].Spot {
				tr.Series[i].Spot[k] = policy.BidStep
			}
		}
	}
	for _, c := range []struct{ markets, region string }{
		{"{}", "us-east-iad-1"},
		{"{categories: [General Purpose]}", "us-east-iad-1"},
		{"{regions: [aus-syd-1]}", "aus-syd-1"},
	} {
		sc, err := Parse("test.yaml", fmt.Appendf(nil, auctionScenario, c.markets, "{}"))
		if err != nil {
			t.Fatal(err)
		}
		w, err := Bind(sc, tr, BindOptions{From: newDay + 24*hours})
		if err != nil {
			t.Fatalf("%s: %v", c.markets, err)
		}
		for _, m := range w.Pools[0].Markets {
			if got := w.Markets[m].Region; got != c.region {
				t.Errorf("%s: %s is a market of the pool, which lies in %s", c.markets, w.Markets[m].Name, c.region)
			}
		}
		if len(w.Pools[0].Markets) == 0 || !strings.Contains(strings.Join(w.Warnings, "\n"), "cloudspace shop is in "+c.region) {
			t.Errorf("%s: %d markets; %q", c.markets, len(w.Pools[0].Markets), w.Warnings)
		}
	}
}
