package placement_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/policytest"
)

var (
	zoneNames = []string{"a", "b", "c"}
	appNames  = []string{"web", "db", "job"}
	keyNames  = []string{"topology.kubernetes.io/zone", hostKey, "rack"}
)

func drawRequirement(t *rapid.T, keys, values []string) policy.Requirement {
	r := policy.Requirement{
		Key: rapid.SampledFrom(keys).Draw(t, "key"),
		Op:  policy.Operator(rapid.IntRange(0, 5).Draw(t, "op")),
	}
	r.Values = []string{rapid.SampledFrom(values).Draw(t, "value")}
	if r.Op <= policy.OpNotIn && rapid.Bool().Draw(t, "two") {
		r.Values = append(r.Values, rapid.SampledFrom(values).Draw(t, "second"))
	}
	return r
}

func drawSelector(t *rapid.T) policy.Selector {
	switch rapid.IntRange(0, 9).Draw(t, "selector") {
	case 0:
		return policy.Selector{}
	case 1:
		return policy.Selector{Everything: true}
	case 2:
		return policy.Selector{Requirements: []policy.Requirement{drawRequirement(t, []string{"app", "tier"}, append(appNames, "1", "2"))}}
	}
	return policy.Selector{Requirements: []policy.Requirement{{Key: "app", Values: []string{rapid.SampledFrom(appNames).Draw(t, "app")}}}}
}

func drawTerms(t *rapid.T, name string) []policy.PodTerm {
	var terms []policy.PodTerm
	if rapid.IntRange(0, 2).Draw(t, name) != 0 {
		return nil
	}
	for range rapid.IntRange(1, 2).Draw(t, "terms") {
		term := policy.PodTerm{Selector: drawSelector(t), TopologyKey: rapid.SampledFrom(keyNames).Draw(t, "key")}
		switch rapid.IntRange(0, 5).Draw(t, "spaces") {
		case 0:
			term.AllSpaces = true
		case 1:
			term.Namespaces = []string{"two"}
		case 2:
			term.Weight = 10
		}
		terms = append(terms, term)
	}
	return terms
}

func drawTemplate(t *rapid.T, id int) policy.Template {
	few := func(name string) bool { return rapid.IntRange(0, 4).Draw(t, name) == 0 }
	x := policy.Template{
		ID: policy.TemplateID(id), Workload: policy.None, Name: fmt.Sprint("t", id),
		Namespace: rapid.SampledFrom([]string{"one", "one", "two"}).Draw(t, "namespace"),
		Requests:  policy.Resources{CPU: rapid.Int64Range(0, 3).Draw(t, "cpu"), Memory: rapid.Int64Range(0, 3).Draw(t, "memory"), Pods: 1},
		Labels:    []policy.Label{{Key: "app", Value: rapid.SampledFrom(appNames).Draw(t, "app")}},
		DaemonSet: few("daemon"),
	}
	if few("tier") {
		x.Labels = append(x.Labels, policy.Label{Key: "tier", Value: rapid.SampledFrom([]string{"1", "2"}).Draw(t, "tierValue")})
	}
	if few("gpu") {
		x.Requests.GPU, x.GPUResource = 1, "nvidia.com/gpu"
	}
	if few("storage") {
		x.Requests.Storage = 2
	}
	if few("nodeSelector") {
		x.NodeSelector = []policy.Label{{Key: rapid.SampledFrom(keyNames).Draw(t, "key"),
			Value: rapid.SampledFrom([]string{"a", "n0", "1"}).Draw(t, "value")}}
	}
	if few("affinity") {
		for range rapid.IntRange(1, 2).Draw(t, "terms") {
			term := policy.NodeTerm{}
			for range rapid.IntRange(0, 2).Draw(t, "requirements") {
				term.Labels = append(term.Labels, drawRequirement(t, keyNames, []string{"a", "b", "n1", "1", "2"}))
			}
			if few("field") {
				term.Fields = []policy.Requirement{{Key: "metadata.name", Op: policy.Operator(rapid.IntRange(0, 1).Draw(t, "op")),
					Values: []string{"n1"}}}
			}
			x.Affinity = append(x.Affinity, term)
		}
	}
	drawNeighbours(t, &x)
	return x
}

// drawNeighbours draws what the pods of x want of other pods.
func drawNeighbours(t *rapid.T, x *policy.Template) {
	few := func(name string) bool { return rapid.IntRange(0, 4).Draw(t, name) == 0 }
	x.PodAffinity, x.PodAntiAffinity = drawTerms(t, "podAffinity"), drawTerms(t, "podAntiAffinity")
	if rapid.IntRange(0, 2).Draw(t, "spread") == 0 {
		for range rapid.IntRange(1, 2).Draw(t, "constraints") {
			x.Spread = append(x.Spread, policy.Spread{
				TopologyKey: rapid.SampledFrom(keyNames).Draw(t, "key"), MaxSkew: rapid.Int32Range(1, 2).Draw(t, "skew"),
				MinDomains: rapid.Int32Range(0, 3).Draw(t, "minDomains"), Soft: few("soft"), Selector: drawSelector(t),
				IgnoreAffinity: rapid.Bool().Draw(t, "ignore"), HonorTaints: rapid.Bool().Draw(t, "honor"),
			})
		}
	}
	if few("tolerates") {
		x.Tolerations = []policy.Toleration{rapid.SampledFrom([]policy.Toleration{
			{Exists: true}, {Key: "k", Exists: true}, {Key: "k", Value: "v"}, {Key: "k", Value: "w", Effect: policy.NoExecute},
			{Key: "node.kubernetes.io/not-ready", Exists: true},
		}).Draw(t, "toleration")}
	}
	if few("port") {
		x.HostPorts = []policy.HostPort{{
			IP: rapid.SampledFrom([]string{"", "0.0.0.0", "10.0.0.1", "10.0.0.2"}).Draw(t, "ip"), Port: 80,
			Protocol: rapid.SampledFrom([]string{"", "TCP", "UDP"}).Draw(t, "protocol"),
		}}
	}
	if few("volume") {
		for range rapid.IntRange(1, 2).Draw(t, "volumes") {
			x.Volumes = append(x.Volumes, policy.Volume{
				Zonal: rapid.Bool().Draw(t, "zonal"), Once: few("once"), Claim: rapid.SampledFrom([]string{"", "c1", "c2"}).Draw(t, "claim"),
			})
		}
	}
}

func drawNode(t *rapid.T, id int) policy.Node {
	n := policy.Node{
		ID: policy.NodeID(id), Name: fmt.Sprint("n", id), Pool: policy.None, Market: policy.None,
		Phase: rapid.SampledFrom([]policy.NodePhase{
			policy.NodeInitialized, policy.NodeInitialized, policy.NodeInitialized, policy.NodeLaunching,
			policy.NodeRegistered, policy.NodeDraining, policy.NodeDeleting,
		}).Draw(t, "phase"),
		NotReady: rapid.IntRange(0, 7).Draw(t, "notReady") == 0,
		Allocatable: policy.Resources{
			CPU: rapid.Int64Range(1, 8).Draw(t, "cpu"), Memory: rapid.Int64Range(1, 8).Draw(t, "memory"),
			Storage: rapid.Int64Range(0, 5).Draw(t, "storage"), Pods: rapid.Int64Range(1, 6).Draw(t, "pods"),
		},
		VolumesMax: rapid.Int32Range(0, 3).Draw(t, "volumesMax"),
	}
	if rapid.Bool().Draw(t, "gpu") {
		n.Allocatable.GPU, n.GPUResource = 2, rapid.SampledFrom([]string{"nvidia.com/gpu", "amd.com/gpu"}).Draw(t, "gpuName")
	}
	if rapid.Bool().Draw(t, "hostLabel") {
		n.Labels = append(n.Labels, policy.Label{Key: hostKey, Value: n.Name})
	}
	if rapid.IntRange(0, 2).Draw(t, "racked") > 0 {
		n.Labels = append(n.Labels, policy.Label{Key: "rack", Value: rapid.SampledFrom([]string{"1", "2"}).Draw(t, "rack")})
	}
	if rapid.IntRange(0, 5).Draw(t, "zoned") > 0 {
		n.Labels = append(n.Labels, policy.Label{Key: "topology.kubernetes.io/zone", Value: rapid.SampledFrom(zoneNames).Draw(t, "zone")})
	}
	if rapid.IntRange(0, 3).Draw(t, "tainted") == 0 {
		n.Taints = []policy.Taint{{
			Key: "k", Value: rapid.SampledFrom([]string{"v", "w"}).Draw(t, "value"),
			Effect: policy.TaintEffect(rapid.IntRange(1, 3).Draw(t, "effect")),
		}}
	}
	return n
}

// A checkedCluster is a Space and a plain cluster, changed together.
type checkedCluster struct {
	plain
	space *placement.Space
}

func drawCluster(t *rapid.T) *checkedCluster {
	w := &checkedCluster{plain: plain{zones: zoneNames}}
	for i := range rapid.IntRange(1, 5).Draw(t, "templates") {
		w.templates = append(w.templates, drawTemplate(t, i))
	}
	for i := range rapid.IntRange(1, 5).Draw(t, "nodes") {
		w.nodes = append(w.nodes, drawNode(t, i))
	}
	for i := range rapid.IntRange(1, 12).Draw(t, "pods") {
		w.pods = append(w.pods, policy.Pod{
			ID: policy.PodID(i), Name: fmt.Sprint("p", i), Phase: policy.PodPending, Node: policy.None, Nominated: policy.None,
			Template:   policy.TemplateID(rapid.IntRange(0, len(w.templates)-1).Draw(t, "template")),
			VolumeZone: policy.ZoneID(rapid.IntRange(-1, 2).Draw(t, "volumeZone")),
		})
	}
	w.space = placement.New(w.templates, w.zones)
	for i := range w.nodes {
		w.space.SetNode(&w.nodes[i])
	}
	return w
}

// change makes one random change to both.
func (w *checkedCluster) change(t *rapid.T) {
	n := policy.NodeID(rapid.IntRange(0, len(w.nodes)-1).Draw(t, "node"))
	p := &w.pods[rapid.IntRange(0, len(w.pods)-1).Draw(t, "pod")]
	switch rapid.IntRange(0, 7).Draw(t, "change") {
	case 0: // what runs there stays
		w.nodes[n] = drawNode(t, int(n))
		w.space.SetNode(&w.nodes[n])
	case 1:
		for i := range w.pods {
			if w.pods[i].Node == n {
				w.pods[i].Node, w.pods[i].Phase = policy.None, policy.PodPending
			}
		}
		w.nodes[n].Phase = policy.NodeGone
		w.space.RemoveNode(n)
	case 2:
		if p.Node >= 0 && p.Phase != policy.PodTerminating {
			w.space.MarkTerminating(p, p.Node)
			p.Phase = policy.PodTerminating
		}
	default:
		if p.Node >= 0 {
			w.space.Unbind(p, p.Node)
			p.Node, p.Phase = policy.None, policy.PodPending
		} else if w.nodes[n].Live() {
			p.Node, p.Phase = n, policy.PodReady
			w.space.Bind(p, n)
		}
	}
}

func (w *checkedCluster) snapshot() *policy.Snapshot {
	return &policy.Snapshot{Now: 1, Zones: w.zones, Nodes: w.nodes, Templates: w.templates, Pods: w.pods}
}

// compare holds every answer of a space against the plain cluster.
func (w *checkedCluster) compare(t *rapid.T, name string, sp *placement.Space) {
	for n := range w.nodes {
		id := policy.NodeID(n)
		for i := range w.pods {
			if got, want := sp.Check(&w.pods[i], id), w.check(&w.pods[i], id); got != want {
				t.Fatalf("%s: pod %d (template %d) on node %d: %v, want %v", name, i, w.pods[i].Template, n, got, want)
			}
		}
		if !w.nodes[n].Live() {
			continue
		}
		if got, want := sp.Free(id), w.free(&w.nodes[n]); got != want {
			t.Fatalf("%s: free on node %d: %+v, want %+v", name, n, got, want)
		}
		var pods []policy.PodID
		for _, p := range w.on(id) {
			pods = append(pods, p.ID)
		}
		if !slices.Equal(sp.Pods(id), pods) {
			t.Fatalf("%s: pods on node %d: %v, want %v", name, n, sp.Pods(id), pods)
		}
	}
}

// TestSpaceAgreesWithPlainCluster changes a cluster at random and asks after
// every change whether each pod fits each node.
func TestSpaceAgreesWithPlainCluster(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawCluster(t)
		for range rapid.IntRange(0, 12).Draw(t, "changes") {
			w.change(t)
			w.compare(t, "kept", w.space)
		}
		w.compare(t, "rebuilt", placement.FromSnapshot(w.snapshot()))
		other := drawCluster(t)
		for range 4 {
			other.change(t)
		}
		sp := other.space
		for _, s := range []*policy.Snapshot{other.snapshot(), w.snapshot()} {
			sp.Load(s)
		}
		w.compare(t, "loaded over another cluster", sp)
	})
}

// TestReserveLeavesNoTrace reserves places and releases them.
func TestReserveLeavesNoTrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawCluster(t)
		for range rapid.IntRange(0, 8).Draw(t, "changes") {
			w.change(t)
		}
		for i := range w.pods {
			if n := policy.NodeID(rapid.IntRange(0, len(w.nodes)-1).Draw(t, "node")); w.pods[i].Node < 0 && w.nodes[n].Live() {
				w.space.Reserve(&w.pods[i], n)
			}
		}
		w.space.Release()
		w.compare(t, "released", w.space)
	})
}

// TestReservedPlacesCountInTheFirstDomain reserves places on a node on its way
// and lets another of its zone join: the zone is then the only domain, and
// what is reserved there counts.
func TestReservedPlacesCountInTheFirstDomain(t *testing.T) {
	web := policy.Template{Namespace: "n", Workload: policy.None, Requests: policy.Resources{Pods: 1},
		Labels: []policy.Label{{Key: "app", Value: "web"}},
		Spread: []policy.Spread{{TopologyKey: "topology.kubernetes.io/zone", MaxSkew: 1,
			Selector: policy.Selector{Requirements: []policy.Requirement{{Key: "app", Values: []string{"web"}}}}}}}
	sp := placement.New([]policy.Template{web}, zoneNames)
	n := policy.Node{Name: "n", Phase: policy.NodeLaunching, Allocatable: policy.Resources{Pods: 10},
		Labels: []policy.Label{{Key: "topology.kubernetes.io/zone", Value: "a"}}}
	sp.SetNode(&n)
	second := n
	second.ID, second.Name = 1, "second"
	for i := range 2 {
		p := policy.Pod{ID: policy.PodID(i)}
		if v := sp.CheckExpected(&p, 0); v != placement.OK {
			t.Fatalf("pod %d: %v", i, v)
		}
		sp.Reserve(&p, 0)
	}
	second.Phase = policy.NodeInitialized
	sp.SetNode(&second)
	if v := sp.Check(&policy.Pod{ID: 2}, 1); v != placement.OK {
		t.Errorf("the third pod in the only zone: %v, want ok", v)
	}
}

// TestCheckAllocatesNothing guards the hot path.
func TestCheckAllocatesNothing(t *testing.T) {
	sp, pods := fleet(50, 200, true)
	if n := policytest.Allocations(100, func() {
		for i := range pods[:20] {
			for n := range policy.NodeID(50) {
				sp.Check(&pods[i], n)
			}
		}
	}); n != 0 {
		t.Errorf("1,000 checks allocate %v times, want 0", n)
	}
	if n := policytest.Allocations(100, func() {
		p := &pods[0]
		sp.Unbind(p, p.Node)
		sp.Bind(p, p.Node)
	}); n != 0 {
		t.Errorf("unbinding and binding again allocates %v times, want 0", n)
	}
}

// fleet returns the snapshot's space of a cluster with pods spread over it.
func fleet(nodes, pods int, topology bool) (*placement.Space, []policy.Pod) {
	s := fleetSnapshot(nodes, pods, topology)
	return placement.FromSnapshot(s), s.Pods
}

func fleetSnapshot(nodes, pods int, topology bool) *policy.Snapshot {
	const templates = 40
	s := &policy.Snapshot{Now: 1, Zones: zoneNames}
	for i := range templates {
		app := fmt.Sprint("app", i)
		t := policy.Template{
			ID: policy.TemplateID(i), Workload: policy.WorkloadID(i), Namespace: "default", Name: app,
			Labels:   []policy.Label{{Key: "app", Value: app}},
			Requests: policy.Resources{CPU: 250 + int64(i)*50, Memory: (512 + int64(i)*100) << 20, Pods: 1},
		}
		if topology {
			t.Spread = []policy.Spread{{
				TopologyKey: "topology.kubernetes.io/zone", MaxSkew: 1,
				Selector: policy.Selector{Requirements: []policy.Requirement{{Key: "app", Values: []string{app}}}},
			}}
		}
		s.Templates = append(s.Templates, t)
	}
	labels := make([][]policy.Label, 60)
	for i := range labels {
		labels[i] = []policy.Label{
			{Key: "karpenter.sh/capacity-type", Value: []string{"spot", "on-demand"}[i%2]},
			{Key: "kubernetes.io/arch", Value: "amd64"},
			{Key: "node.kubernetes.io/instance-type", Value: fmt.Sprint("type", i/6)},
			{Key: "topology.kubernetes.io/zone", Value: zoneNames[i%3]},
		}
	}
	for i := range nodes {
		s.Nodes = append(s.Nodes, policy.Node{
			ID: policy.NodeID(i), Name: fmt.Sprint("node", i), Phase: policy.NodeInitialized, Pool: policy.None, Market: policy.None,
			Allocatable: policy.Resources{CPU: 15_000, Memory: 60 << 30, Storage: 40 << 30, Pods: 110}, Labels: labels[i%60],
		})
	}
	for i := range pods {
		s.Pods = append(s.Pods, policy.Pod{
			ID: policy.PodID(i), Template: policy.TemplateID(i % templates), Phase: policy.PodReady,
			Node: policy.NodeID(i % nodes), VolumeZone: policy.None, Nominated: policy.None,
		})
	}
	return s
}

func BenchmarkCheck(b *testing.B) {
	for _, topology := range []bool{false, true} {
		b.Run(fmt.Sprintf("topology=%v", topology), func(b *testing.B) {
			sp, pods := fleet(2000, 8000, topology)
			i := 0
			for b.Loop() {
				sp.Check(&pods[i&4095], policy.NodeID(i%2000))
				i++
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, topology := range []bool{false, true} {
		b.Run(fmt.Sprintf("topology=%v", topology), func(b *testing.B) {
			s := fleetSnapshot(2000, 8000, topology)
			b.ReportAllocs()
			var sp placement.Space
			for b.Loop() {
				sp.Load(s)
			}
		})
	}
}
