package karpenter_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/sim/karpenter"
)

// now is the instant of every test.
const now = policy.Time(100 * time.Hour / time.Millisecond)

// A fixture is a cluster made by hand, and the view of it. All that is sold is sold to
// every pool; nodes are of the size of their type.
type fixture struct {
	karpenter.Cluster
	cores     []int64 // by type
	prices    []policy.Money
	events    map[policy.NodeID]policy.Time
	nominated map[policy.NodeID]policy.Time
	spot      bool // spot is sold, and pools allow it
}

// newFixture returns a cluster of some pools without nodes, in which on-demand nodes are
// sold and no spot.
func newFixture(pools int) *fixture {
	f := &fixture{events: map[policy.NodeID]policy.Time{}, nominated: map[policy.NodeID]policy.Time{}}
	f.Now = now
	for p := range pools {
		f.Pools = append(f.Pools, policy.Pool{ID: policy.PoolID(p), Name: fmt.Sprint("pool-", p), Provisioner: policy.ProvisionerKarpenter})
		f.Consolidation = append(f.Consolidation, policy.WhenEmptyOrUnderutilized)
	}
	return f
}

// sell adds an instance type with one market. Prices are in cents.
func (f *fixture) sell(cores int64, capacity policy.CapacityType, cents int64) policy.MarketID {
	f.cores = append(f.cores, cores)
	return f.market(policy.TypeID(len(f.cores)-1), capacity, cents)
}

// market adds a market of a type.
func (f *fixture) market(t policy.TypeID, capacity policy.CapacityType, cents int64) policy.MarketID {
	m := policy.Market{ID: policy.MarketID(len(f.Markets)), Type: t, Capacity: capacity}
	f.Markets, f.prices = append(f.Markets, m), append(f.prices, policy.Money(cents*10_000))
	f.spot = f.spot || capacity == policy.Spot
	return m.ID
}

// node adds an initialized node that was left alone for an hour.
func (f *fixture) node(pool policy.PoolID, m policy.MarketID) *policy.Node {
	id := policy.NodeID(len(f.Nodes))
	f.Nodes = append(f.Nodes, policy.Node{ID: id, Name: fmt.Sprintf("n%03d", id), Pool: pool, Market: m, Phase: policy.NodeInitialized,
		Allocatable: f.size(m), Labels: f.labels(pool, m), Initialized: now.Add(-time.Hour)})
	f.Order = append(f.Order, id)
	return &f.Nodes[id]
}

// pod adds a pod to the newest node, which edits change.
func (f *fixture) pod(milli int64, edits ...func(*policy.Pod, *policy.Template)) {
	t := policy.Template{ID: policy.TemplateID(len(f.Templates)), Workload: policy.WorkloadID(len(f.Templates)), Namespace: "default",
		Requests: policy.Resources{CPU: milli, Memory: 1 << 20, Pods: 1}}
	p := policy.Pod{ID: policy.PodID(len(f.Pods)), Name: fmt.Sprint("default/", len(f.Pods)), Template: t.ID, Phase: policy.PodReady,
		Node: policy.NodeID(len(f.Nodes) - 1), Nominated: policy.None, VolumeZone: policy.None}
	for _, edit := range edits {
		edit(&p, &t)
	}
	f.Templates, f.Pods, f.Kinds = append(f.Templates, t), append(f.Pods, p), append(f.Kinds, policy.KindDeployment)
}

// ready fills the space and returns the cluster.
func (f *fixture) ready() *karpenter.Cluster {
	f.View, f.Space = view{f}, placement.New(f.Templates, []string{"z"})
	for i := range f.Nodes {
		f.Space.SetNode(&f.Nodes[i])
	}
	for i := range f.Pods {
		if p := &f.Pods[i]; p.Node != policy.None {
			f.Space.Bind(p, p.Node)
		} else {
			f.Pending = append(f.Pending, p.ID)
		}
	}
	return &f.Cluster
}

func (f *fixture) size(m policy.MarketID) policy.Resources {
	return policy.Resources{CPU: f.cores[f.Markets[m].Type] * 1000, Memory: 1 << 40, Pods: 1000}
}

func (f *fixture) labels(pool policy.PoolID, m policy.MarketID) []policy.Label {
	return []policy.Label{
		{Key: "karpenter.sh/capacity-type", Value: f.Markets[m].Capacity.String()}, {Key: "karpenter.sh/nodepool", Value: f.Pools[pool].Name},
		{Key: "node.kubernetes.io/instance-type", Value: fmt.Sprint("t", f.Markets[m].Type)}, {Key: "topology.kubernetes.io/zone", Value: "z"},
	}
}

// A view answers for a fixture.
type view struct{ f *fixture }

func (v view) Price(_ policy.PoolID, m policy.MarketID) policy.Money { return v.f.prices[m] }

func (v view) LastPodEvent(n policy.NodeID) policy.Time {
	if t := v.f.events[n]; t != 0 {
		return t
	}
	return v.f.Nodes[n].Initialized
}

func (v view) NominatedUntil(n policy.NodeID) policy.Time { return v.f.nominated[n] }

func (v view) Offers() (list []placement.Offer, version uint64) {
	for p := range v.f.Pools {
		for m := range v.f.Markets {
			id := policy.MarketID(m)
			list = append(list, placement.Offer{Pool: policy.PoolID(p), Market: id, Price: v.f.prices[m],
				Allocatable: v.f.size(id), Capacity: v.f.size(id), Labels: v.f.labels(policy.PoolID(p), id)})
		}
	}
	return list, 0
}

func (v view) Pools([]policy.NodeID) (list []placement.Pool) {
	for p := range v.f.Pools {
		list = append(list, placement.Pool{ID: policy.PoolID(p)})
	}
	return list
}

func (v view) CapacityTypes(policy.PoolID) (spot, onDemand bool) { return v.f.spot, true }

func (v view) PodsVersion(policy.NodeID) uint64 { return 0 }

// nodesOf returns the nodes of a command, ascending; none for nil.
func nodesOf(cmd *karpenter.Command) []policy.NodeID {
	if cmd == nil {
		return nil
	}
	var ids []policy.NodeID
	for _, x := range cmd.Candidates {
		ids = append(ids, x.Node)
	}
	slices.Sort(ids)
	return ids
}

// find has a new disruptor look.
func (f *fixture) find(m karpenter.Method) *karpenter.Command {
	var d karpenter.Disruptor
	return d.Find(f.ready(), m)
}

// wantNodes fails unless a command is of these nodes.
func wantNodes(t *testing.T, name string, cmd *karpenter.Command, want ...policy.NodeID) {
	t.Helper()
	if got := nodesOf(cmd); !slices.Equal(got, want) {
		t.Errorf("%s: nodes %v, want %v", name, got, want)
	}
}

// wantAlike fails unless two commands are the same, or both nil.
func wantAlike(t *rapid.T, got, want *karpenter.Command) {
	t.Helper()
	if (got == nil) != (want == nil) || got != nil && (!slices.Equal(got.Candidates, want.Candidates) ||
		!reflect.DeepEqual(got.Replacement, want.Replacement) || !slices.Equal(got.Targets, want.Targets)) {
		t.Fatalf("found %+v, want %+v", got, want)
	}
}
