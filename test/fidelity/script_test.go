package fidelity

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/sim"
)

// days are the scripted days, the shortest first, and cases what is asked about one rule
// each: files in the folder days.
var (
	days  = []string{"reclaims", "growth", "prices"}
	cases = []string{"case-zonal", "case-apart", "case-shrink", "case-late"}
)

// A script is a scripted day: what is wanted and what the market does, over time.
type script struct {
	name  string
	bound *scenarios.BoundScenario
	stage *sim.Prepared

	// pool and the objects are those of the file that a cluster takes as they are.
	pool    *v1alpha1.CapacityPool
	objects []client.Object

	// digest covers the file and the prices: runs of another script do not compare.
	digest string
}

// load reads a scripted day.
func load(t testing.TB, name string) *script {
	t.Helper()
	file := filepath.Join("days", name+".yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sc, err := scenarios.Parse(file, text)
	if err != nil {
		t.Fatal(err)
	}
	prices, err := trace.Synthetic()
	if err != nil {
		t.Fatal(err)
	}
	s := &script{name: name}
	if s.bound, err = scenarios.Bind(sc, prices, scenarios.BindOptions{}); err != nil {
		t.Fatal(err)
	}
	if s.stage, err = sim.Prepare(s.bound); err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	sum.Write(s.bound.Digest[:])
	sum.Write(s.bound.TraceDigest[:])
	s.digest = fmt.Sprintf("%x", sum.Sum(nil)[:8])
	for part := range bytes.SplitSeq(text, []byte("\n---\n")) {
		s.decode(t, part)
	}
	if s.pool == nil || len(s.bound.Pools) != 1 {
		t.Fatalf("%s has %d pools, want one", file, len(s.bound.Pools))
	}
	return s
}

// decode keeps an object of the file that the cluster takes.
func (s *script) decode(t testing.TB, text []byte) {
	t.Helper()
	var kind struct{ Kind string }
	if err := yaml.Unmarshal(text, &kind); err != nil {
		t.Fatal(err)
	}
	var o client.Object
	switch kind.Kind {
	case "CapacityPool":
		s.pool = &v1alpha1.CapacityPool{}
		if err := yaml.UnmarshalStrict(text, s.pool); err != nil {
			t.Fatal(err)
		}
		s.pool.Default()
		return
	case "Deployment":
		o = &appsv1.Deployment{}
	case "PodDisruptionBudget":
		o = &policyv1.PodDisruptionBudget{}
	case "Scenario":
		return
	default:
		t.Fatalf("%s: a %s is not played", s.name, kind.Kind)
	}
	if err := yaml.UnmarshalStrict(text, o); err != nil {
		t.Fatal(err)
	}
	s.objects = append(s.objects, o)
}

// policy returns a policy that steers nothing but what the pool's NodePools say, anew.
func (s *script) policy(t testing.TB) policy.Policy {
	t.Helper()
	p, err := registry.New(s.pool.Spec.Policy.Name, registry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// capacities returns the capacity types that the pool buys, the preferred one first: as
// many NodePools there are, in the order of their weights.
func (s *script) capacities() []policy.CapacityType {
	if s.pool.Spec.Policy.Name == "on-demand" {
		return []policy.CapacityType{policy.OnDemand}
	}
	return []policy.CapacityType{policy.Spot, policy.OnDemand}
}

// market returns the ID of a market by its parts.
func (s *script) market(typ, zone, capacity string) (policy.MarketID, bool) {
	i := slices.IndexFunc(s.bound.Markets, func(m policy.Market) bool {
		return s.bound.Types[m.Type].Name == typ && s.bound.Zones[m.Zone] == zone && m.Capacity.String() == capacity
	})
	return policy.MarketID(i), i >= 0
}

// marketName is how the provider of a real run calls a market.
func (s *script) marketName(m policy.MarketID) string {
	x := &s.bound.Markets[m]
	return s.bound.Types[x.Type].Name + "/" + s.bound.Zones[x.Zone] + "/" + x.Capacity.String()
}

// shrinks returns when the number of wanted replicas first falls, after the begin.
func (s *script) shrinks() time.Duration {
	first := s.bound.Duration
	for i := range s.bound.Workloads {
		steps := s.bound.Workloads[i].Schedule
		for k := 1; k < len(steps); k++ {
			if at := steps[k].At.Sub(s.bound.Start); steps[k].Replicas < steps[k-1].Replicas {
				first = min(first, at)
			}
		}
	}
	return first
}

// workloadOf returns the workload of a pod of a Deployment by the pod's label.
func workloadOf(name string) string { return strings.TrimPrefix(name, "default/") }
