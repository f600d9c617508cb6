package placement_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

const testGiB = 1 << 30

// solveCase is a cluster of one zone with one node of four cores and offers of four.
func solveCase(t policy.Template, pods int) (*placement.Space, *placement.Batch) {
	t.Namespace, t.Labels = "default", []policy.Label{{Key: "app", Value: "a"}}
	t.Requests = policy.Resources{CPU: 1000, Memory: testGiB, Pods: 1}
	room := policy.Resources{CPU: 4000, Memory: 16 * testGiB, Pods: 20}
	labels := []policy.Label{{Key: "topology.kubernetes.io/zone", Value: "a"}}
	sp := placement.New([]policy.Template{t}, []string{"a"})
	sp.SetNode(&policy.Node{ID: 0, Name: "n", Phase: policy.NodeInitialized, Allocatable: room, Labels: labels})
	b := &placement.Batch{Nodes: []policy.NodeID{0}, Offers: []placement.Offer{{Price: 10, Allocatable: room, Capacity: room, Labels: labels}}}
	for i := range pods {
		b.Pods = append(b.Pods, policy.Pod{ID: policy.PodID(i), Phase: policy.PodPending, Node: policy.None,
			Nominated: policy.None, VolumeZone: policy.None})
	}
	return sp, b
}

func hosts(weight int32) []policy.PodTerm {
	return []policy.PodTerm{{Weight: weight, TopologyKey: "kubernetes.io/hostname", Selector: policy.Selector{
		Requirements: []policy.Requirement{{Key: "app", Op: policy.OpIn, Values: []string{"a"}}},
	}}}
}

func even(key string, least int32) policy.Spread {
	return policy.Spread{TopologyKey: key, MaxSkew: 1, MinDomains: least, Selector: hosts(0)[0].Selector}
}

func team(op policy.Operator, values ...string) policy.Requirement {
	return policy.Requirement{Key: "team", Op: op, Values: values}
}

// A preference counts as required while a place can be bought: three pods that prefer
// hosts of their own get the node and two claims, and share them where nothing is sold.
// Without the preference four of six fit the node, and two a claim. Of two constraints that
// differ in minDomains alone the first holds. A label that must be there, and not be red,
// need not be there; and once a pod has asked that it not be red, it may be blue.
func TestSolve(t *testing.T) {
	zone, host := "topology.kubernetes.io/zone", "kubernetes.io/hostname"
	either := policy.Template{Spread: []policy.Spread{even(zone, 0), even(host, 0)}, Affinity: []policy.NodeTerm{
		{Labels: []policy.Requirement{team(policy.OpNotIn, "red")}}, {Labels: []policy.Requirement{team(policy.OpIn, "blue")}},
	}}
	for name, c := range map[string]struct {
		template           policy.Template
		pods, limit        int
		onNode, bins, left int
		bare               bool // without the node
	}{
		"plain":            {policy.Template{}, 6, 0, 4, 1, 0, false},
		"prefers hosts":    {policy.Template{PodAntiAffinity: hosts(50)}, 3, 0, 1, 2, 0, false},
		"cannot have them": {policy.Template{PodAntiAffinity: hosts(50)}, 3, 4, 2, 1, 0, false},
		"needs hosts":      {policy.Template{PodAntiAffinity: hosts(0)}, 3, 4, 1, 1, 1, false},
		"first minDomains": {policy.Template{Spread: []policy.Spread{even(zone, 0), even(zone, 2)}}, 3, 0, 3, 0, 0, false},
		"minDomains first": {policy.Template{Spread: []policy.Spread{even(zone, 2), even(zone, 0)}}, 3, 0, 1, 0, 2, false},
		"there and not red": {policy.Template{Affinity: []policy.NodeTerm{
			{Labels: []policy.Requirement{team(policy.OpExists), team(policy.OpNotIn, "red")}},
		}}, 3, 0, 3, 0, 0, false},
		"not red, then blue": {either, 2, 4, 0, 1, 0, true},
	} {
		sp, b := solveCase(c.template, c.pods)
		if c.bare {
			b.Nodes = nil
		}
		b.Pools = []placement.Pool{{
			Limits:  policy.Resources{CPU: int64(c.limit) * 1000},
			Domains: []policy.Label{{Key: "team", Value: "blue"}},
		}}
		sol := sp.Solver().Solve(b)
		onNode := 0
		for _, n := range sol.Nodes {
			if n == 0 {
				onNode++
			}
		}
		if onNode != c.onNode || len(sol.Bins) != c.bins || len(sol.Unplaced) != c.left {
			t.Errorf("%s: %d on the node, %d claims, %d left; want %d, %d, %d", name, onNode, len(sol.Bins), len(sol.Unplaced),
				c.onNode, c.bins, c.left)
		}
		first := [...]any{append([]policy.NodeID(nil), sol.Nodes...), sol.Bins, sol.Unplaced}
		again := sp.Solver().Solve(b)
		if second := [...]any{append([]policy.NodeID(nil), again.Nodes...), again.Bins, again.Unplaced}; !reflect.DeepEqual(first, second) {
			t.Errorf("%s: the second run differs: %v, %v", name, first, second)
		}
	}
}

// New nodes of a pool share their host ports where the batch says so.
func TestSolveSharedPorts(t *testing.T) {
	for shared, bins := range map[bool]int{false: 3, true: 1} {
		sp, b := solveCase(policy.Template{HostPorts: []policy.HostPort{{Port: 80}}}, 3)
		b.Nodes, b.SharedPorts = nil, shared
		if sol := sp.Solver().Solve(b); len(sol.Bins) != bins || len(sol.Unplaced) != 3-bins {
			t.Errorf("shared %v: %d claims, %d left, want %d claims", shared, len(sol.Bins), len(sol.Unplaced), bins)
		}
	}
}

// A DaemonSet that some node of the pool may run takes room on each new one, and its host
// ports, where the batch says so. Here it takes that of the second pod on a
// node of two cores; where its port is wanted too, no node is bought.
func TestSolveSharedDaemons(t *testing.T) {
	port := []policy.HostPort{{Port: 80}}
	label := func(key, value string) []policy.Label { return []policy.Label{{Key: key, Value: value}} }
	for name, c := range map[string]struct {
		daemon      policy.Template
		ports       []policy.HostPort
		rules       []policy.Requirement
		taints      []policy.Taint
		own, shared int // claims for two pods
	}{
		"every node":   {policy.Template{}, nil, nil, nil, 2, 2},
		"another zone": {policy.Template{NodeSelector: label("topology.kubernetes.io/zone", "b")}, nil, nil, nil, 1, 2},
		"a zone ruled out": {policy.Template{NodeSelector: label("topology.kubernetes.io/zone", "b")}, nil,
			[]policy.Requirement{{Key: "topology.kubernetes.io/zone", Op: policy.OpIn, Values: []string{"a"}}}, nil, 1, 1},
		"an architecture":    {policy.Template{NodeSelector: label("kubernetes.io/arch", "arm64")}, nil, nil, nil, 1, 2},
		"another family":     {policy.Template{NodeSelector: label("family", "m")}, nil, nil, nil, 1, 2},
		"another team":       {policy.Template{NodeSelector: label("team", "red")}, nil, nil, nil, 1, 1},
		"a label of no pool": {policy.Template{NodeSelector: label("rack", "r1")}, nil, nil, nil, 1, 1},
		"not that label":     {policy.Template{Affinity: []policy.NodeTerm{{Labels: []policy.Requirement{{Key: "rack", Op: policy.OpNotIn, Values: []string{"r1"}}}}}}, nil, nil, nil, 2, 2},
		"one of two terms":   {policy.Template{Affinity: []policy.NodeTerm{{Labels: []policy.Requirement{team(policy.OpIn, "red")}}, {Labels: []policy.Requirement{{Key: "family", Op: policy.OpIn, Values: []string{"m"}}}}}}, nil, nil, nil, 1, 2},
		"a taint": {policy.Template{NodeSelector: label("kubernetes.io/arch", "arm64")}, nil, nil,
			[]policy.Taint{{Key: "t", Effect: policy.NoSchedule}}, 1, 1},
		"a port": {policy.Template{NodeSelector: label("kubernetes.io/arch", "arm64"),
			HostPorts: port}, port, nil, nil, 2, 0},
		"a port of none of its nodes": {policy.Template{NodeSelector: label("rack", "r1"), HostPorts: port}, port, nil, nil, 2, 2},
	} {
		pod := policy.Template{Requests: policy.Resources{CPU: 1000, Pods: 1}, HostPorts: c.ports,
			Tolerations: []policy.Toleration{{Key: "t", Exists: true}}}
		c.daemon.ID, c.daemon.DaemonSet, c.daemon.Requests = 1, true, policy.Resources{CPU: 500, Pods: 1}
		sp := placement.New([]policy.Template{pod, c.daemon}, []string{"a"})
		b := &placement.Batch{Pools: []placement.Pool{{Requirements: c.rules}}}
		for i, family := range []string{"c", "r"} {
			b.Offers = append(b.Offers, placement.Offer{Market: policy.MarketID(i), Price: 10, Taints: c.taints,
				Allocatable: policy.Resources{CPU: 2000, Pods: 20},
				Labels: []policy.Label{{Key: "family", Value: family}, {Key: "kubernetes.io/arch", Value: "amd64"},
					{Key: "team", Value: "blue"}, {Key: "topology.kubernetes.io/zone", Value: "a"}}})
		}
		for i := range 2 {
			b.Pods = append(b.Pods, policy.Pod{ID: policy.PodID(i), Phase: policy.PodPending, Node: policy.None,
				Nominated: policy.None, VolumeZone: policy.None})
		}
		for shared, bins := range map[bool]int{false: c.own, true: c.shared} {
			b.SharedDaemons = shared
			if sol := sp.Solver().Solve(b); len(sol.Bins) != bins {
				t.Errorf("%s, shared %v: %d claims, want %d", name, shared, len(sol.Bins), bins)
			}
		}
	}
}

// A node within consolidateAfter takes pods that are pending and none that move.
func TestSolveResting(t *testing.T) {
	for _, phase := range []policy.PodPhase{policy.PodPending, policy.PodReady} {
		sp, b := solveCase(policy.Template{}, 1)
		b.Pods[0].Phase, b.Resting = phase, []bool{true}
		if sol := sp.Solver().Solve(b); (sol.Nodes[0] == 0) != (phase == policy.PodPending) {
			t.Errorf("a %v pod came onto node %d", phase, sol.Nodes[0])
		}
	}
}

// Attempts on a batch that was prepared once find what a space finds that solves each batch from
// scratch: with nodes left out, more pods than at first, and topology that counts.
func TestAttempt(t *testing.T) {
	for name, template := range map[string]policy.Template{
		"plain": {}, "needs hosts": {PodAntiAffinity: hosts(0)},
		"spread": {Spread: []policy.Spread{{MaxSkew: 1, TopologyKey: "topology.kubernetes.io/zone", Selector: hosts(0)[0].Selector}}},
	} {
		sp, b := solveCase(template, 6)
		pods := b.Pods
		for i := range pods {
			pods[i].ID = policy.PodID((i + 1) * 5 % 7) // the later ones are tried among the first
		}
		b.Pods = pods[:1]
		sp.Solver().Prepare(b)
		for _, x := range []struct {
			pods    int
			without []int
		}{{6, nil}, {3, []int{0}}, {1, nil}, {6, []int{0}}, {6, nil}} {
			b.Pods, b.Without = pods[:x.pods], x.without
			got := fmt.Sprint(sp.Solver().Attempt())
			fresh, anew := solveCase(template, x.pods)
			anew.Pods, anew.Without = pods[:x.pods], x.without
			if want := fmt.Sprint(fresh.Solver().Solve(anew)); got != want {
				t.Errorf("%s, %d pods without %v: %s, want %s", name, x.pods, x.without, got, want)
			}
		}
	}
}

// A run that is aborted leaves nothing behind.
func TestAbort(t *testing.T) {
	sp, b := solveCase(policy.Template{PodAntiAffinity: hosts(0)}, 3)
	want := fmt.Sprint(sp.Solver().Solve(b))
	b.Abort = func(_ int, n policy.NodeID, claims int) bool { return n == policy.None && claims == 1 }
	if sol := sp.Solver().Solve(b); !sol.Aborted {
		t.Errorf("a claim was opened: %+v", sol)
	}
	b.Abort = nil
	if got := fmt.Sprint(sp.Solver().Solve(b)); got != want {
		t.Errorf("after an aborted run: %s, want %s", got, want)
	}
}

// Offers of another version are listed by their new prices.
func TestOffersVersion(t *testing.T) {
	sp, b := solveCase(policy.Template{}, 8)
	first := b.Offers[0]
	for version, prices := range [][]policy.Money{{3, 1, 2}, {1, 2, 3}, {2, 3, 1}} {
		b.Offers, b.OffersVersion = nil, uint64(version+1)
		for m, price := range prices {
			o := first
			o.Market, o.Price = policy.MarketID(m), price
			o.Allocatable.CPU += int64(m)
			b.Offers = append(b.Offers, o)
		}
		var got []policy.Money
		for _, i := range sp.Solver().Solve(b).Bins[0].Offers {
			got = append(got, b.Offers[i].Price)
		}
		if !slices.IsSorted(got) || len(got) != 3 {
			t.Errorf("prices %v: listed as %v", prices, got)
		}
	}
}
