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
	schedulingv1 "k8s.io/api/scheduling/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
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

	// The pool is stated as a CapacityPool or as NodePools. These and the objects are those of
	// the file that a cluster takes as they are.
	pool      *v1alpha1.CapacityPool
	nodePools []*karpv1.NodePool
	objects   []client.Object

	// version is the version of Karpenter in real runs, as in 1.15; the scripted days leave it
	// empty.
	version string

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
	return parse(t, name, file, text)
}

// parse returns the day that manifests state. Errors name the file.
func parse(t testing.TB, name, file string, text []byte) *script {
	t.Helper()
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
	if capacity := s.pool != nil; capacity && len(s.bound.Pools) != 1 || capacity == (len(s.nodePools) > 0) {
		t.Fatalf("%s has %d pools and %d NodePools, want one CapacityPool or only NodePools", file, len(s.bound.Pools), len(s.nodePools))
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
	case "NodePool":
		n := &karpv1.NodePool{}
		if err := yaml.UnmarshalStrict(text, n); err != nil {
			t.Fatal(err)
		}
		s.nodePools = append(s.nodePools, n)
		return
	case "PriorityClass":
		o = &schedulingv1.PriorityClass{}
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

// policy returns a new policy that steers nothing but what the NodePools state.
func (s *script) policy(t testing.TB) policy.Policy {
	t.Helper()
	name := "as-is"
	if s.pool != nil {
		name = s.pool.Spec.Policy.Name
	}
	p, err := registry.New(name, registry.Options{})
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

// markets returns the markets that a pool may buy in, in ascending order.
func (s *script) markets() []policy.MarketID {
	var all []policy.MarketID
	for i := range s.bound.Pools {
		all = append(all, s.bound.Pools[i].Markets...)
	}
	slices.Sort(all)
	return slices.Compact(all)
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

// shrinks returns the time after the start at which the number of wanted replicas first falls.
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
