package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/sim/karpenter"
)

// A disruptionView is a state as the simulated Karpenter is given it when it disrupts.
type disruptionView struct {
	*view
	cluster karpenter.Cluster
	drawn   bool // a domain was drawn among equal ones
}

func newDisruptionView(s *State) *disruptionView {
	v := &disruptionView{view: newView(s, nil)}
	c := &v.cluster
	c.Version, c.Now, c.Space, c.View = version, policy.Time(now.UnixMilli()), v.space, v
	for i := range s.Types {
		for k := range s.Types[i].Offerings {
			m := policy.Market{ID: policy.MarketID(len(c.Markets)), Type: policy.TypeID(i), Capacity: policy.OnDemand}
			switch s.Types[i].Offerings[k].Capacity {
			case "spot":
				m.Capacity = policy.Spot
			case "reserved":
				m.Capacity = policy.Reserved
			}
			c.Markets = append(c.Markets, m)
		}
	}
	v.addPools()
	for i := range s.PDBs {
		c.PDBs = append(c.PDBs, policy.PDB{ID: policy.PDBID(i), Allowed: s.PDBs[i].Allowed})
	}
	c.Templates = s.templates()
	for i := range c.Templates {
		t := &c.Templates[i]
		t.Workload = policy.WorkloadID(i)
		c.Kinds = append(c.Kinds, policy.KindDeployment)
		for k := range s.PDBs {
			if labelsMatch(s.Workloads[i].Labels, s.PDBs[k].Match) {
				t.PDBs = append(t.PDBs, policy.PDBID(k))
			}
		}
	}
	for i := range s.Nodes {
		c.Nodes = append(c.Nodes, *v.disrupted(i))
		c.Order = append(c.Order, policy.NodeID(i))
	}
	slices.SortFunc(c.Order, func(a, b policy.NodeID) int { return cmp.Compare(s.Nodes[a].Name, s.Nodes[b].Name) })
	for i := range s.Pods {
		c.Pods = append(c.Pods, v.pod(i))
		if s.Pods[i].Node == "" {
			c.Pending = append(c.Pending, policy.PodID(i))
		}
	}
	return v
}

func labelsMatch(labels, match map[string]string) bool {
	for k, x := range match {
		if labels[k] != x {
			return false
		}
	}
	return true
}

func (v *disruptionView) addPools() {
	c := &v.cluster
	for i := range v.s.Pools {
		p := &v.s.Pools[i]
		x := policy.Pool{
			ID: policy.PoolID(i), Name: p.Name, Provisioner: policy.ProvisionerKarpenter, ExpireAfter: time.Duration(p.ExpireAfter) * time.Second,
		}
		mode := policy.ConsolidateNever
		if p.ConsolidateAfter >= 0 {
			x.ConsolidateAfter = time.Duration(p.ConsolidateAfter) * time.Second
			mode = map[string]policy.Consolidation{"WhenEmpty": policy.WhenEmpty, "Balanced": policy.Balanced}[p.Policy]
		}
		c.Consolidation = append(c.Consolidation, mode)
		for _, b := range p.Budgets {
			x.Budgets = append(x.Budgets, budgetOf(&b))
		}
		c.Pools = append(c.Pools, x)
	}
}

func budgetOf(b *Budget) policy.DisruptionBudget {
	x := policy.DisruptionBudget{Nodes: policy.Quantity{Set: true}, Schedule: b.Schedule,
		Duration: time.Duration(b.Duration) * time.Second}
	x.Active = kube.InForce(&x, policy.Time(now.UnixMilli()))
	for _, r := range b.Nodes {
		if r == '%' {
			x.Nodes.Percent = true
		} else {
			x.Nodes.N = 10*x.Nodes.N + r - '0'
		}
	}
	for _, r := range b.Reasons {
		x.Reasons = append(x.Reasons, map[string]policy.DisruptionReason{
			"Empty": policy.Empty, "Underutilized": policy.Underutilized, "Drifted": policy.Drifted}[r])
	}
	return x
}

// disrupted is a node as disruption sees it. One that goes away is in Karpenter's hands.
func (v *disruptionView) disrupted(i int) *policy.Node {
	n, s := v.node(i), &v.s.Nodes[i]
	n.Pool = policy.PoolID(slices.IndexFunc(v.s.Pools, func(p Pool) bool { return p.Name == s.Pool }))
	n.Market = v.marketOf(s)
	if s.Deleting {
		n.ActedBy = policy.ActorKarpenter
		n.Phase = map[string]policy.NodePhase{"launching": policy.NodeLaunching, "registered": policy.NodeRegistered,
			"initialized": policy.NodeDraining}[s.Phase]
	}
	n.Launched, n.Initialized = policy.Time(now.UnixMilli()-s.Age*1000), policy.Time(now.UnixMilli()-s.Initialized*1000)
	return n
}

func (v *disruptionView) marketOf(n *Node) policy.MarketID {
	at := 0
	for i := range v.s.Types {
		for k := range v.s.Types[i].Offerings {
			if &v.s.Types[i].Offerings[k] == v.s.offering(n) {
				return policy.MarketID(at)
			}
			at++
		}
	}
	return policy.None
}

func (v *disruptionView) offeringOf(m policy.MarketID) *Offering {
	t := &v.s.Types[v.cluster.Markets[m].Type]
	first := slices.IndexFunc(v.cluster.Markets, func(x policy.Market) bool { return x.Type == v.cluster.Markets[m].Type })
	return &t.Offerings[int(m)-first]
}

// Price is what an offering costs, open or not.
func (v *disruptionView) Price(_ policy.PoolID, m policy.MarketID) policy.Money {
	return policy.Money(v.offeringOf(m).Price)
}

// LastPodEvent is what the NodeClaim says.
func (v *disruptionView) LastPodEvent(id policy.NodeID) policy.Time {
	n := &v.s.Nodes[id]
	ago := n.LastPodEvent
	if ago == 0 {
		ago = n.Initialized
	}
	return policy.Time(now.UnixMilli() - ago*1000)
}

// NominatedUntil is after now where the node is nominated.
func (v *disruptionView) NominatedUntil(id policy.NodeID) policy.Time {
	if v.s.Nodes[id].Nominated {
		return v.cluster.Now + 1
	}
	return 0
}

// Offers are those of the state.
func (v *disruptionView) Offers() ([]placement.Offer, uint64) { return v.offers, 1 }

// Pools are those of the state without the nodes.
func (v *disruptionView) Pools(without []policy.NodeID) []placement.Pool {
	list := slices.Clone(v.rules)
	for i := range list {
		p, nodes := &v.s.Pools[list[i].ID], int64(0)
		for k := range v.s.Nodes {
			n := &v.s.Nodes[k]
			if n.Pool != p.Name || n.Deleting {
				continue
			}
			if slices.Contains(without, policy.NodeID(k)) {
				list[i].Used = list[i].Used.Minus(v.s.typ(n.Type).capacity().resources())
			} else {
				nodes++
			}
		}
		list[i].NodesFull = p.NodesMax > 0 && nodes >= p.NodesMax
	}
	return list
}

// CapacityTypes is what the requirements of a pool allow.
func (v *disruptionView) CapacityTypes(id policy.PoolID) (spot, onDemand bool) {
	spot, onDemand = true, true
	for _, r := range v.s.Pools[id].Requirements {
		if r.Key == "karpenter.sh/capacity-type" {
			spot, onDemand = spot && slices.Contains(r.Values, "spot"), onDemand && slices.Contains(r.Values, "on-demand")
		}
	}
	return spot, onDemand
}

// PodsVersion never changes: nothing does.
func (v *disruptionView) PodsVersion(policy.NodeID) uint64 { return 0 }

// act returns what Spotter's method does: with ties as in the order of guide, the pools
// in turn, and domains by draw.
func (v *disruptionView) act(m karpenter.Method, guide *action, turns []policy.PoolID, draw int) *action {
	c := &v.cluster
	rank := map[string]int{}
	for i, name := range guide.order {
		rank[name] = i
	}
	c.Tie = func(a, b policy.NodeID) int {
		return cmp.Compare(rank[v.s.Nodes[a].Name], rank[v.s.Nodes[b].Name])
	}
	c.Turns, v.drawn = turns, false
	c.Draw = func(pod policy.PodID, _ string, ties []string) int {
		v.drawn = true
		return draw * (int(pod) + 1) % len(ties)
	}
	var d karpenter.Disruptor
	a := new(action)
	for _, x := range d.Candidates(c, m) {
		a.candidates = append(a.candidates, v.s.Nodes[x.Node].Name)
	}
	cmd := d.Find(c, m)
	if cmd == nil {
		return a
	}
	for _, x := range cmd.Candidates {
		a.nodes = append(a.nodes, v.s.Nodes[x.Node].Name)
	}
	slices.Sort(a.nodes)
	if r := cmd.Replacement; r != nil {
		a.replaces = true
		for _, t := range r.Types {
			a.types = append(a.types, v.s.Types[t].Name)
		}
		slices.Sort(a.types)
		a.cheapest = int64(r.Price)
	}
	return a
}

// saves is what an action saves an hour.
func (v *disruptionView) saves(a *action) (sum int64) {
	for _, name := range a.nodes {
		at := slices.IndexFunc(v.s.Nodes, func(n Node) bool { return n.Name == name })
		sum += v.s.offering(&v.s.Nodes[at]).Price
	}
	return sum - a.cheapest
}

// permutation returns the nth order of the first pools.
func permutation(pools, n int) []policy.PoolID {
	rest := make([]policy.PoolID, pools)
	for i := range rest {
		rest[i] = policy.PoolID(i)
	}
	var out []policy.PoolID
	for len(rest) > 0 {
		at := n % len(rest)
		n /= len(rest)
		out, rest = append(out, rest[at]), slices.Delete(rest, at, at+1)
	}
	return out
}
