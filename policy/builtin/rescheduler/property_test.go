package rescheduler_test

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/builtin/rescheduler"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// byChoice returns the drains of plan that the policy need not have made, in the
// pools that a provisioner consolidates itself.
func byChoice(plan *policy.Plan) []policy.Drain {
	return slices.DeleteFunc(slices.Clone(plan.Drains), func(d policy.Drain) bool {
		return d.Why.Reason != rescheduler.ReasonFreeCapacity && d.Why.Reason != policy.ReasonCheaper
	})
}

// drawSnapshot draws clusters of on-demand and Spot nodes shared by pods of six kinds, some with a
// disruption budget, some that must stay.
func drawSnapshot(t *rapid.T) *policy.Snapshot {
	var b strings.Builder
	b.WriteString("type a.2 2\ntype b.4 4\n")
	for _, size := range []string{"a.2", "b.4"} {
		fmt.Fprintf(&b, "market y %s on-demand 0.20\nmarket y %s spot %s\n", size, size,
			rapid.SampledFrom([]string{"0.05", "0.10", "0.18"}).Draw(t, "price"))
	}
	for _, size := range []string{"a.2", "b.4"} {
		fmt.Fprintf(&b, "market z %s on-demand 0.20\nmarket z %s spot 0.15\n", size, size)
	}
	fmt.Fprintf(&b, "pool web steer=1 max=%s %s\n", rapid.SampledFrom([]string{"1", "0.5"}).Draw(t, "max"),
		rapid.SampledFrom([]string{"", "budget=2"}).Draw(t, "budget"))
	apps := []string{"one 1", "half 0.5 pdb=1", "far 0.5 zone=z", "fat 0.5 memory=6", "fixed 0.5 safe-to-evict=false", "idle 0.5 priority=-1"}
	for _, a := range apps {
		b.WriteString("app " + a + "\n")
	}
	var pods strings.Builder
	for i := range rapid.IntRange(2, 9).Draw(t, "nodes") {
		kind := rapid.SampledFrom([]string{"on-demand", "spot"}).Draw(t, "kind")
		zone := rapid.SampledFrom([]string{"y", "z"}).Draw(t, "zone")
		fmt.Fprintf(&b, "node n%d web %s b.4 %s\n", i, zone, kind)
		for _, a := range apps {
			name, _, _ := strings.Cut(a, " ")
			if (name != "far" || zone == "z") && rapid.IntRange(0, 2).Draw(t, name) == 2 {
				fmt.Fprintf(&pods, "pod %s n%d\n", name, i)
			}
		}
	}
	s, _, err := policytest.Parse(b.String() + pods.String())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestOnlyWhatPays holds for every plan: what is emptied stands on demand and is
// allowed to go, and what is bought costs less. The plan is that of its arguments.
func TestOnlyWhatPays(t *testing.T) {
	moved, bought := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		drains := rapid.SampledFrom([]string{"one", "budget"}).Draw(t, "drains")
		p, err := build("drains=" + drains)
		if err != nil {
			t.Fatal(err)
		}
		before := policytest.Clone(t, s)
		plan, _ := p.Decide(s, policy.Memory{})
		if again, _ := p.Decide(before, policy.Memory{}); again.Format(s) != plan.Format(s) ||
			!reflect.DeepEqual(policytest.Clone(t, s), before) {
			t.Fatalf("the plan is not that of the snapshot:\n%s\n%s", plan.Format(s), again.Format(s))
		}
		if err := policytest.Check(s, &plan); err != nil {
			t.Fatal(err)
		}
		chosen := byChoice(&plan)
		if drains == "one" && len(chosen) > 1 {
			t.Fatalf("%d nodes in a round:\n%s", len(chosen), plan.Format(s))
		}
		for _, d := range chosen {
			if err := sound(s, &plan, &d); err != nil {
				t.Fatalf("%s: %v\n%s", s.Nodes[d.Node].Name, err, plan.Format(s))
			}
		}
		moved += len(chosen)
		bought += len(plan.Launches)
	})
	if moved == 0 || bought == 0 {
		t.Errorf("%d nodes emptied and %d bought: nothing was tested", moved, bought)
	}
}

// TestComesToRest carries plans out at once, round after round: what is on demand
// becomes ever less until nothing is moved any more.
func TestComesToRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		for i := range s.Pods {
			if s.Templates[s.Pods[i].Template].Priority < 0 {
				s.Pods[i] = gone(&s.Pods[i])
			}
		}
		p, err := build("drains=budget;scale_up=false")
		if err != nil {
			t.Fatal(err)
		}
		for range len(s.Nodes) + 1 {
			plan, _ := p.Decide(s, policy.Memory{})
			chosen := byChoice(&plan)
			if len(chosen) == 0 {
				return
			}
			targets := spotNodes(s)
			for _, d := range chosen {
				if !moveTo(s, d.Node, targets) {
					t.Fatalf("the pods of %s have no place on spot:\n%s", s.Nodes[d.Node].Name, plan.Format(s))
				}
			}
		}
		t.Fatal("it does not come to rest")
	})
}

// gone returns the slot of p without it.
func gone(p *policy.Pod) policy.Pod {
	return policy.Pod{ID: p.ID, Template: p.Template, Node: policy.None, Nominated: policy.None, VolumeZone: policy.None}
}

// spotNodes returns the Spot nodes that take pods, the fullest first: a round keeps the order that
// they have at its start.
func spotNodes(s *policy.Snapshot) []policy.NodeID {
	sp := placement.FromSnapshot(s)
	var nodes []policy.NodeID
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Usable() && n.ActedBy == policy.ActorNone && n.Recommended == 0 && s.Markets[n.Market].Capacity == policy.Spot {
			nodes = append(nodes, n.ID)
		}
	}
	share := func(n policy.NodeID) float64 { return sp.Requested(n).LargestShare(sp.Allocatable(n)) }
	slices.SortFunc(nodes, func(a, b policy.NodeID) int {
		return cmp.Or(cmp.Compare(share(b), share(a)), cmp.Compare(s.Nodes[a].Name, s.Nodes[b].Name))
	})
	return nodes
}

// moveTo puts the pods of node from on targets, the largest first and each on the
// first that takes it, takes the node away and reports whether they all found a place.
func moveTo(s *policy.Snapshot, from policy.NodeID, targets []policy.NodeID) bool {
	sp := placement.FromSnapshot(s)
	var pods []*policy.Pod
	for _, id := range slices.Clone(sp.Pods(from)) {
		sp.Unbind(&s.Pods[id], from)
		pods = append(pods, &s.Pods[id])
	}
	slices.SortStableFunc(pods, func(a, b *policy.Pod) int {
		x, y := &s.Templates[a.Template].Requests, &s.Templates[b.Template].Requests
		return cmp.Or(cmp.Compare(y.CPU, x.CPU), cmp.Compare(y.Memory, x.Memory), cmp.Compare(a.ID, b.ID))
	})
	for _, p := range pods {
		to := slices.IndexFunc(targets, func(n policy.NodeID) bool { return sp.Check(p, n) == placement.OK })
		if to < 0 {
			return false
		}
		p.Node = targets[to]
		sp.Bind(p, p.Node)
	}
	s.Nodes[from] = policy.Node{ID: from}
	return true
}

// sound returns what is wrong with the drain d.
func sound(s *policy.Snapshot, plan *policy.Plan, d *policy.Drain) error {
	n := &s.Nodes[d.Node]
	if s.Markets[n.Market].Capacity != policy.OnDemand || n.DoNotDisrupt || !n.Usable() || n.ActedBy != policy.ActorNone {
		return fmt.Errorf("it is not one to be emptied: %+v", n)
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		t := &s.Templates[p.Template]
		if p.Node != n.ID || p.Phase == policy.PodTerminating || t.DaemonSet {
			continue
		}
		if p.DoNotDisrupt || t.NotSafeToEvict || s.Workloads[t.Workload].Kind == policy.KindBare {
			return fmt.Errorf("pod %s must stay", p.Name)
		}
		for _, id := range t.PDBs {
			if len(t.PDBs) > 1 || s.PDBs[id].Allowed == 0 && p.Phase == policy.PodReady {
				return fmt.Errorf("pod %s cannot go", p.Name)
			}
		}
	}
	cost := policy.Money(0)
	for i := range plan.Launches {
		l := &plan.Launches[i]
		if l.Replaces != n.ID {
			continue
		}
		for _, m := range l.Markets {
			if s.Markets[m].Capacity != policy.Spot {
				return fmt.Errorf("%s is bought for it", s.Markets[m].Name)
			}
		}
		cost += s.Markets[l.Markets[len(l.Markets)-1]].Charge()
	}
	if before := s.Markets[n.Market].Charge(); float64(cost) > 0.85*float64(before)+1 {
		return fmt.Errorf("what is bought in its place may cost %v and it costs %v", cost, before)
	}
	return nil
}

// large returns a cluster of 1,000 nodes, half of them on demand, 10,000 pods and 300 markets. With
// full Spot nodes no attempt finds free capacity there, and new nodes are too expensive.
func large(full bool) *policy.Snapshot {
	s := &policy.Snapshot{Now: policytest.Epoch.Add(time.Hour), Zones: []string{"a", "b", "c"}}
	for i := range 50 {
		vcpu := int64(4 << (i % 3))
		r := policy.Resources{CPU: vcpu * 1000, Memory: vcpu << 32, Pods: 110, Storage: 20 << 30}
		s.Types = append(s.Types, policy.InstanceType{
			ID: policy.TypeID(i), Provider: "aws", Arch: "amd64", Name: fmt.Sprintf("t%02d",
				i), VCPU: vcpu, Capacity: r, Allocatable: r, VolumesMax: 25,
		})
		for z := range s.Zones {
			for _, capacity := range []policy.CapacityType{policy.OnDemand, policy.Spot} {
				m := policy.Market{
					ID: policy.MarketID(len(s.Markets)), Name: fmt.Sprintf("m%04d", len(s.Markets)), Provider: "aws", Zone: policy.ZoneID(z),
					Type: policy.TypeID(i), Capacity: capacity, Offered: true, Price: policy.Money(vcpu) * 50_000, OnDemand: policy.Money(vcpu) * 50_000,
				}
				if capacity == policy.Spot {
					m.Price = m.OnDemand*9/10 + policy.Money(i)
					if full {
						m.Price *= 5
					}
				}
				s.Markets = append(s.Markets, m)
			}
		}
	}
	p := policy.Pool{Name: "web", Provisioner: policy.ProvisionerKarpenter, Mode: policy.ModeActive, Share: policy.ShareRange{Max: 1}}
	for m := range s.Markets {
		p.Markets = append(p.Markets, policy.MarketID(m))
	}
	s.Pools = []policy.Pool{p}
	for i := range 40 {
		name := fmt.Sprintf("default/w%02d", i)
		app := policy.Label{Key: "app", Value: name}
		s.Workloads = append(s.Workloads, policy.Workload{ID: policy.WorkloadID(i), Name: name, Kind: policy.KindDeployment, Replicas: 250})
		s.Templates = append(s.Templates, policy.Template{
			ID: policy.TemplateID(i), Workload: policy.WorkloadID(i), Name: name, Namespace: "default", Labels: []policy.Label{app},
			Requests: policy.Resources{CPU: 250, Memory: 1 << 28, Pods: 1}, OutagePenalty: -1, MigrationTier: -1,
			Spread: []policy.Spread{{TopologyKey: "topology.kubernetes.io/zone", MaxSkew: 100, Selector: policy.Selector{
				Requirements: []policy.Requirement{{Key: app.Key, Values: []string{app.Value}}},
			}}},
		})
	}
	for i := range 1000 {
		m := &s.Markets[i%len(s.Markets)]
		r := s.Types[m.Type].Allocatable
		if full && m.Capacity == policy.Spot {
			r.CPU = 2500
		}
		s.Nodes = append(s.Nodes, policy.Node{
			ID: policy.NodeID(i), Name: fmt.Sprintf("n%04d", i), Market: m.ID, Phase: policy.NodeInitialized, Allocatable: r,
			Labels: []policy.Label{{Key: "topology.kubernetes.io/zone",
				Value: s.Zones[m.Zone]}}, Launched: policytest.Epoch, Initialized: policytest.Epoch,
		})
	}
	for i := range 10_000 {
		s.Pods = append(s.Pods, policy.Pod{
			ID: policy.PodID(i), Name: fmt.Sprintf("default/p%d", i), Template: policy.TemplateID(i % 40), Phase: policy.PodReady,
			Node: policy.NodeID(i % 1000), Nominated: policy.None, VolumeZone: policy.None, Bound: policytest.Epoch, ReadySince: policytest.Epoch,
		})
	}
	return s
}

// BenchmarkDecide measures a round on a large cluster: one that finds room at
// once, and one in which everything is tried in vain.
func BenchmarkDecide(b *testing.B) {
	for _, full := range []bool{false, true} {
		for _, spec := range []string{"drains=one", "drains=budget"} {
			b.Run(fmt.Sprintf("full=%v/%s", full, spec), func(b *testing.B) {
				p, err := build(spec)
				if err != nil {
					b.Fatal(err)
				}
				s := large(full)
				b.ReportAllocs()
				for b.Loop() {
					p.Decide(s, policy.Memory{})
				}
			})
		}
	}
}
