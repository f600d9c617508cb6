package sim

import (
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// staticPool is a NodePool of a fixed number of nodes, more than pods need, in addition to
// another NodePool.
const staticPool = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: fixed}
spec:
  replicas: 5
  template:
    spec:
      expireAfter: 30h
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: k}
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}
        - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.xlarge, c5.xlarge]}
        - {key: topology.kubernetes.io/region, operator: In, values: [us-east-1]}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: other}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: k}
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
        - {key: topology.kubernetes.io/region, operator: In, values: [us-east-1]}
---
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: k}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: p}
spec:
  replicas: 6
  selector: {matchLabels: {app: p}}
  template: {metadata: {labels: {app: p}}, spec: {containers: [{name: main, image: x, resources: {requests: {cpu: 1, memory: 1Gi}}}]}}
---
apiVersion: spotter.dev/v1alpha1
kind: Scenario
metadata: {name: s}
spec: {duration: 72h}
`

// TestStaticPool keeps the number of nodes of a static NodePool whatever pods need and whichever
// policy runs: what expires or is reclaimed is replaced at once, and nothing is consolidated.
func TestStaticPool(t *testing.T) {
	p := mustPrepare(t, boundText(t, staticPool))
	for _, spec := range []string{"as-is", "on-demand", "portfolio", "rescheduler"} {
		events, _ := ownEvents(t, p, spec)
		nodes, launches := map[string]bool{}, 0
		for i, e := range events {
			if !strings.HasPrefix(e.node, "fixed-") {
				continue
			}
			switch e.kind {
			case "launch":
				nodes[e.node] = true
				launches++
			case "draining":
				delete(nodes, e.node)
			default:
				continue
			}
			last := i == len(events)-1 || !events[i+1].at.Equal(e.at) // of this instant
			if last && len(nodes) != 5 && launches >= 5 {
				t.Errorf("%s: %d nodes stay at %v, want 5", spec, len(nodes), e.at)
			}
			if !strings.HasSuffix(e.market, "/spot") {
				t.Errorf("%s: %s is bought in %s", spec, e.node, e.market)
			}
		}
		if others := slices.ContainsFunc(events, func(e nodeEvent) bool { return strings.HasPrefix(e.node, "other-") }); others || launches < 15 {
			t.Errorf("%s: %d nodes were launched, want those of 96 h that live 30; nodes of the other pool: %v", spec, launches, others)
		}
	}
}

// TestStaticPoolLimit never holds more nodes than limits.nodes, also while one is replaced.
func TestStaticPoolLimit(t *testing.T) {
	p := mustPrepare(t, boundText(t, strings.Replace(staticPool, "replicas: 5", "replicas: 5\n  limits: {nodes: 4}", 1)))
	events, _ := ownEvents(t, p, "as-is")
	nodes, most := 0, 0
	for _, e := range events {
		switch {
		case !strings.HasPrefix(e.node, "fixed-"):
		case e.kind == "launch":
			nodes++
		case e.kind == "deleted":
			nodes--
		}
		most = max(most, nodes)
	}
	if most != 4 {
		t.Errorf("%d nodes at most, want 4", most)
	}
}

// TestStaticPoolSeeds counts the nodes that the scenario states, and refuses more than there are replicas.
func TestStaticPoolSeeds(t *testing.T) {
	seeded := func(n string) string {
		return strings.Replace(staticPool, "spec: {duration: 72h}", "spec: {duration: 72h, nodes: [{pool: fixed, count: "+n+"}]}", 1)
	}
	p := mustPrepare(t, boundText(t, seeded("3")))
	events, _ := ownEvents(t, p, "as-is")
	begun := 0
	for _, e := range events {
		if e.kind == "launch" && e.at.Equal(policy.Time.Std(p.Begin)) && strings.HasPrefix(e.node, "fixed-") {
			begun++
		}
	}
	if begun != 5 {
		t.Errorf("the run begins with %d nodes, want 5", begun)
	}
	sc, err := scenarios.Parse("s.yaml", []byte(seeded("6")))
	if err != nil {
		t.Fatal(err)
	}
	tr, err := trace.Synthetic()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scenarios.Bind(sc, tr, scenarios.BindOptions{}); err == nil ||
		!strings.Contains(err.Error(), "has 6 nodes at the start, more than its 5 replicas") {
		t.Errorf("six nodes of five: %v", err)
	}
}
