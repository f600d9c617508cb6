package rescheduler

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// goldenNode is a node of the vectors, with the CPU of its pods in thousandths.
type goldenNode struct {
	Name     string
	Capacity int64
	Pods     []int64
}

type goldenOrder struct {
	Node      string
	Requested int64
	Pods      int
}

// goldenCases are the vectors of the K8s Spot Rescheduler.
type goldenCases struct {
	LabelMatch []struct {
		NodeLabels map[string]string `json:"node_labels"`
		Flag       string
		Match      bool
	} `json:"label_match"`
	LabelValidation []struct {
		OnDemand string `json:"on_demand"`
		Spot     string
		Error    *string
	} `json:"label_validation"`
	FindSpotNode struct {
		Nodes           []goldenNode
		NodeMemoryBytes int64 `json:"node_memory_bytes"`
		NodeMaxPods     int64 `json:"node_max_pods"`
		Cases           []struct {
			Pod  int64
			Want *string
		}
	} `json:"find_spot_node"`
	CanDrain struct {
		Nodes []goldenNode `json:"spot_nodes_in_order"`
		Cases []struct {
			Pods      []int64
			Drainable bool
		}
	} `json:"can_drain"`
	NodeMap struct {
		OnDemand       []goldenOrder `json:"on_demand_order_least_requested_first"`
		Spot           []goldenOrder `json:"spot_order_most_requested_first"`
		PodsWithinNode string        `json:"pods_within_node"`
	} `json:"node_map"`
	AddPod []struct {
		Capacity, Requested, Free int64
		Adds                      []int64
	} `json:"add_pod"`
}

// golden returns the vectors. A test over the lists in them must not pass
// because one of them is empty.
func golden(t *testing.T) *goldenCases {
	t.Helper()
	var g goldenCases
	if err := json.Unmarshal(policytest.Golden(t, "rescheduler_cases.json"), &g); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{
		len(g.LabelMatch), len(g.LabelValidation), len(g.FindSpotNode.Cases), len(g.CanDrain.Cases),
		len(g.NodeMap.OnDemand), len(g.NodeMap.Spot), len(g.AddPod),
	} {
		if n == 0 {
			t.Fatal("a part of the vectors is empty")
		}
	}
	return &g
}

// A cluster is a snapshot that grows by spot and on-demand nodes.
type cluster struct {
	s      policy.Snapshot
	memory int64
	pods   int64
}

func newCluster(memory, pods int64) *cluster {
	c := &cluster{memory: memory, pods: pods, s: policy.Snapshot{Now: policytest.Epoch, Zones: []string{"z"}}}
	size := policy.Resources{CPU: 1000, Memory: memory, Pods: pods}
	c.s.Types = []policy.InstanceType{{Name: "x", Provider: "aws", Arch: "amd64", VCPU: 1, Capacity: size, Allocatable: size, VolumesMax: 25}}
	for i, kind := range []policy.CapacityType{policy.OnDemand, policy.Spot} {
		c.s.Markets = append(c.s.Markets, policy.Market{
			ID: policy.MarketID(i), Name: "aws/r/z/x/" + kind.String(), Provider: "aws", Region: "r", Capacity: kind,
			Offered: true, Price: policy.Dollar, OnDemand: policy.Dollar, Band: policy.BandUnknown, PlacementScore: -1,
		})
	}
	c.s.Pools = []policy.Pool{{Name: "web", Mode: policy.ModeActive, Provisioner: policy.ProvisionerKarpenter,
		Share: policy.ShareRange{Max: 1}, Markets: []policy.MarketID{0, 1}}}
	return c
}

func (c *cluster) node(name string, kind policy.CapacityType, cpu int64, pods []int64) {
	id := policy.NodeID(len(c.s.Nodes))
	c.s.Nodes = append(c.s.Nodes, policy.Node{
		ID: id, Name: name, Market: policy.MarketID(kind), Phase: policy.NodeInitialized,
		Allocatable: policy.Resources{CPU: cpu, Memory: c.memory, Pods: c.pods},
	})
	for _, cpu := range pods {
		c.pod(cpu, id)
	}
}

// pod adds a pod on n, with a controller of its own.
func (c *cluster) pod(cpu int64, n policy.NodeID) *policy.Pod {
	id := len(c.s.Pods)
	name := fmt.Sprintf("default/p%d", id)
	c.s.Workloads = append(c.s.Workloads, policy.Workload{ID: policy.WorkloadID(id), Name: name,
		Kind: policy.KindDeployment, Replicas: 1, Ready: 1})
	c.s.Templates = append(c.s.Templates, policy.Template{
		ID: policy.TemplateID(id), Workload: policy.WorkloadID(id), Name: name, Namespace: "default",
		Requests: policy.Resources{CPU: cpu, Pods: 1}, OutagePenalty: -1, MigrationTier: -1,
	})
	c.s.Pods = append(c.s.Pods, policy.Pod{
		ID: policy.PodID(id), Name: name + "-0", Template: policy.TemplateID(id), Phase: policy.PodReady, Node: n,
		Nominated: policy.None, VolumeZone: policy.None, Created: policytest.Epoch, Bound: policytest.Epoch, ReadySince: policytest.Epoch,
	})
	return &c.s.Pods[id]
}

func (c *cluster) board(t *testing.T) *board {
	t.Helper()
	if err := c.s.Validate(); err != nil {
		t.Fatal(err)
	}
	e, err := New(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	return e.newBoard(&c.s, &policy.Plan{})
}

// byID puts the targets of b into the order of their ids.
func (b *board) byID() {
	slices.SortFunc(b.fullestFirst(), func(x, y policy.NodeID) int { return int(x - y) })
}

func TestGoldenLabels(t *testing.T) {
	g := golden(t)
	for _, c := range g.LabelMatch {
		var labels []policy.Label
		for k, v := range c.NodeLabels {
			labels = append(labels, policy.Label{Key: k, Value: v})
		}
		if got := hasLabel(labels, c.Flag); got != c.Match {
			t.Errorf("%v has %s: %v", c.NodeLabels, c.Flag, got)
		}
	}
	for _, c := range g.LabelValidation {
		err := checkLabel("on demand", c.OnDemand)
		if err == nil {
			err = checkLabel("spot", c.Spot)
		}
		if (err == nil) != (c.Error == nil) || err != nil && err.Error() != *c.Error {
			t.Errorf("%s, %s: %v", c.OnDemand, c.Spot, err)
		}
	}
}

func TestGoldenFindSpotNode(t *testing.T) {
	g := golden(t).FindSpotNode
	for _, want := range g.Cases {
		c := newCluster(g.NodeMemoryBytes, g.NodeMaxPods)
		for _, n := range g.Nodes {
			c.node(n.Name, policy.Spot, n.Capacity, n.Pods)
		}
		c.node("away", policy.OnDemand, want.Pod, nil)
		away := policy.NodeID(len(g.Nodes))
		c.pod(want.Pod, away)
		b := c.board(t)
		b.byID() // the vectors give the order of the nodes
		p := &c.s.Pods[len(c.s.Pods)-1]
		b.e.space.Unbind(p, away)
		switch found := b.settle(p); {
		case found != (want.Want != nil):
			t.Errorf("pod of %d: found a node %v", want.Pod, found)
		case found:
			if got := c.s.Nodes[b.placed[len(b.placed)-1].Node].Name; got != *want.Want {
				t.Errorf("pod of %d goes to %s, want %s", want.Pod, got, *want.Want)
			}
		}
	}
}

func TestGoldenCanDrain(t *testing.T) {
	all := golden(t)
	g := all.CanDrain
	for _, want := range g.Cases {
		c := newCluster(all.FindSpotNode.NodeMemoryBytes, all.FindSpotNode.NodeMaxPods)
		for _, n := range g.Nodes {
			c.node(n.Name, policy.Spot, n.Capacity, n.Pods)
		}
		total := int64(0)
		for _, cpu := range want.Pods {
			total += cpu
		}
		c.node("source", policy.OnDemand, total, want.Pods)
		b := c.board(t)
		b.byID()                 // the vectors give the order of the nodes
		b.pools[0].tight = false // the vectors know no guardrails
		hold := b.move(&c.s.Nodes[len(g.Nodes)])
		if got := len(b.plan.Drains) == 1; got != want.Drainable {
			t.Errorf("pods %v: drained %v (%s)", want.Pods, got, hold.Text)
		}
	}
}

func TestGoldenNodeMap(t *testing.T) {
	g := golden(t).NodeMap
	// The vectors state the sums only: the pods of a node differ by one.
	parts := func(o goldenOrder) []int64 {
		pods := make([]int64, o.Pods)
		left := o.Requested
		for i := range pods {
			pods[i] = left / int64(o.Pods-i)
			left -= pods[i]
		}
		return pods
	}
	c := newCluster(1<<31, 100)
	for _, o := range slices.Backward(g.OnDemand) {
		c.node(o.Node, policy.OnDemand, 2000, parts(o))
	}
	for _, o := range slices.Backward(g.Spot) {
		c.node(o.Node, policy.Spot, 2000, parts(o))
	}
	b := c.board(t)
	sources := b.e.sources(&c.s, &policy.Memory{})
	placement.EmptiestFirst(&c.s, &b.e.space, sources)
	for _, x := range []struct {
		kind string
		got  []policy.NodeID
		want []goldenOrder
	}{{"on-demand", sources, g.OnDemand}, {"spot", b.fullestFirst(), g.Spot}} {
		if len(x.got) != len(x.want) {
			t.Fatalf("%d %s nodes, want %d", len(x.got), x.kind, len(x.want))
		}
		for i := range x.got {
			n := x.got[i]
			if name, sum := c.s.Nodes[n].Name, b.e.space.Requested(n).CPU; name != x.want[i].Node || sum != x.want[i].Requested {
				t.Errorf("%s node %d is %s with %d, want %s with %d", x.kind, i, name, sum, x.want[i].Node, x.want[i].Requested)
			}
			pods, _, _ := b.leavers(&c.s.Nodes[n])
			if !slices.IsSortedFunc(pods, func(p, q policy.Pod) int {
				return int(c.s.Templates[q.Template].Requests.CPU - c.s.Templates[p.Template].Requests.CPU)
			}) {
				t.Errorf("the pods of %s do not stand by falling request", c.s.Nodes[n].Name)
			}
		}
	}
}

func TestGoldenAddPod(t *testing.T) {
	for _, want := range golden(t).AddPod {
		c := newCluster(1<<31, 100)
		c.node("n", policy.Spot, want.Capacity, want.Adds)
		b := c.board(t)
		if got, free := b.e.space.Requested(0).CPU, b.e.space.Free(0).CPU; got != want.Requested || free != want.Free {
			t.Errorf("%v on %d: %d requested and %d free, want %d and %d", want.Adds, want.Capacity, got, free, want.Requested, want.Free)
		}
	}
}
