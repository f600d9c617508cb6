package main

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A view is the state as Spotter sees it. Ids are positions in the state.
type view struct {
	s      *State
	space  *placement.Space
	pools  []int // positions of pools in the order in which Karpenter tries them
	offers []placement.Offer
	rules  []placement.Pool
	zones  []string
}

// newView fills a view with the nodes and bound pods of s, except for the pods in batch,
// which it must place.
func newView(s *State, batch []int) *view {
	v := &view{s: s}
	for i := range s.Types {
		for _, o := range s.Types[i].Offerings {
			if !slices.Contains(v.zones, o.Zone) {
				v.zones = append(v.zones, o.Zone)
			}
		}
	}
	for i := range s.Pods {
		if zone := s.Pods[i].VolumeZone; zone != "" && !slices.Contains(v.zones, zone) {
			v.zones = append(v.zones, zone)
		}
	}
	v.space = placement.New(s.templates(), v.zones)
	for i := range s.Nodes {
		v.space.SetNode(v.node(i))
	}
	for i := range s.Pods {
		if s.Pods[i].Node != "" && !slices.Contains(batch, i) {
			p := v.pod(i)
			v.space.Bind(&p, p.Node)
		}
	}
	v.orderPools()
	for _, p := range v.pools {
		v.offer(p)
	}
	return v
}

func labelList(labels map[string]string) []policy.Label {
	var list []policy.Label
	for k, x := range labels {
		list = append(list, policy.Label{Key: k, Value: x})
	}
	slices.SortFunc(list, func(a, b policy.Label) int { return cmp.Compare(a.Key, b.Key) })
	return list
}

func effectOf(effect string) policy.TaintEffect {
	switch effect {
	case "NoSchedule":
		return policy.NoSchedule
	case "PreferNoSchedule":
		return policy.PreferNoSchedule
	case "NoExecute":
		return policy.NoExecute
	}
	return policy.EffectAny
}

func taintList(list []Taint) []policy.Taint {
	var out []policy.Taint
	for _, t := range list {
		out = append(out, policy.Taint{Key: t.Key, Value: t.Value, Effect: effectOf(t.Effect)})
	}
	return out
}

func requirementList(list []Requirement) []policy.Requirement {
	ops := map[string]policy.Operator{
		"In": policy.OpIn, "NotIn": policy.OpNotIn, "Exists": policy.OpExists, "DoesNotExist": policy.OpDoesNotExist,
	}
	var out []policy.Requirement
	for _, r := range list {
		out = append(out, policy.Requirement{Key: r.Key, Op: ops[r.Op], Values: r.Values})
	}
	return out
}

func selectorOf(match map[string]string) policy.Selector {
	var s policy.Selector
	for _, l := range labelList(match) {
		s.Requirements = append(s.Requirements, policy.Requirement{Key: l.Key, Op: policy.OpIn, Values: []string{l.Value}})
	}
	return s
}

func termList(list []Term) []policy.PodTerm {
	var out []policy.PodTerm
	for _, t := range list {
		out = append(out, policy.PodTerm{Weight: t.Weight, Selector: selectorOf(t.Match), TopologyKey: t.Key})
	}
	return out
}

func (s *State) templates() []policy.Template {
	var out []policy.Template
	for i := range s.Workloads {
		w := &s.Workloads[i]
		t := policy.Template{
			ID: policy.TemplateID(i), Namespace: "default", Labels: labelList(w.Labels), Priority: w.Priority, DaemonSet: w.Daemon,
			Requests: w.requests().resources().Plus(policy.Resources{Pods: 1}), GPUResource: w.GPUResource,
			NodeSelector: labelList(w.Selector), PodAffinity: termList(w.Affinity), PodAntiAffinity: termList(w.Anti),
		}
		for _, r := range w.Required {
			t.Affinity = append(t.Affinity, policy.NodeTerm{Labels: requirementList(r)})
		}
		for _, p := range w.Preferred {
			t.Preferred = append(t.Preferred, policy.PreferredNodeTerm{Weight: p.Weight,
				Term: policy.NodeTerm{Labels: requirementList(p.Term)}})
		}
		for _, x := range w.Spread {
			t.Spread = append(t.Spread, policy.Spread{
				TopologyKey: x.Key, MaxSkew: x.MaxSkew, MinDomains: x.MinDomains, Soft: x.Soft, Selector: selectorOf(x.Match),
				IgnoreAffinity: x.IgnoreAffinity, HonorTaints: x.HonorTaints,
			})
		}
		for _, x := range w.Tolerations {
			t.Tolerations = append(t.Tolerations, policy.Toleration{Key: x.Key, Exists: x.Op == "Exists", Value: x.Value,
				Effect: effectOf(x.Effect)})
		}
		for _, p := range w.HostPorts {
			t.HostPorts = append(t.HostPorts, policy.HostPort{IP: p.IP, Port: p.Port, Protocol: p.Protocol})
		}
		for _, x := range w.Volumes {
			t.Volumes = append(t.Volumes, policy.Volume{Zonal: x.Zonal, Claim: x.Claim, Once: x.Once})
		}
		out = append(out, t)
	}
	return out
}

func (a Amount) resources() policy.Resources {
	return policy.Resources{CPU: a.CPU, Memory: a.Memory << 20, Storage: a.Storage << 20, Pods: a.Pods, GPU: a.GPUs}
}

func (v *view) node(i int) *policy.Node {
	n := &v.s.Nodes[i]
	p, t := v.s.pool(n.Pool), v.s.typ(n.Type)
	x := &policy.Node{
		ID: policy.NodeID(i), Name: n.Name, Phase: policy.NodeInitialized, Allocatable: t.allocatable().resources(),
		VolumesMax: int32(t.VolumesMax), GPUResource: t.GPUResource, NotReady: n.NotReady,
		Labels: labelList(v.s.labelsOn(n)), Taints: taintList(p.Taints), DoNotDisrupt: n.DoNotDisrupt,
	}
	if n.Phase == "initialized" {
		x.Taints = taintList(v.s.taintsOn(n))
	}
	switch {
	case n.Deleting && n.Phase != "launching":
		x.Phase = policy.NodeDraining
	case n.Phase == "launching":
		x.Phase = policy.NodeLaunching
	case n.Phase == "registered":
		x.Phase = policy.NodeRegistered
	}
	return x
}

func (v *view) pod(i int) policy.Pod {
	p := &v.s.Pods[i]
	x := policy.Pod{
		ID: policy.PodID(i), Template: policy.TemplateID(p.Workload), Phase: policy.PodPending, Node: policy.None, Nominated: policy.None,
		VolumeZone: policy.None, Created: policy.Time(now.UnixMilli() - p.Age*1000), DoNotDisrupt: p.DoNotDisrupt, DeletionCost: p.DeletionCost,
	}
	if p.Node != "" {
		x.Phase = policy.PodReady
		x.Node = policy.NodeID(slices.IndexFunc(v.s.Nodes, func(n Node) bool { return n.Name == p.Node }))
	}
	if p.Terminating {
		x.Phase = policy.PodTerminating
	}
	if p.VolumeZone != "" {
		x.VolumeZone = policy.ZoneID(slices.Index(v.zones, p.VolumeZone))
	}
	return x
}

func (v *view) orderPools() {
	for i := range v.s.Pools {
		v.pools = append(v.pools, i)
	}
	slices.SortFunc(v.pools, func(a, b int) int {
		x, y := &v.s.Pools[a], &v.s.Pools[b]
		return cmp.Or(cmp.Compare(y.Weight, x.Weight), cmp.Compare(y.Name, x.Name))
	})
}

// offer adds what pool p sells, and its rules.
func (v *view) offer(p int) {
	pool := &v.s.Pools[p]
	taints := taintList(pool.Taints)
	rules := placement.Pool{
		ID: policy.PoolID(p), Requirements: requirementList(pool.Requirements), Taints: taints,
		Limits: policy.Resources{CPU: pool.CPUMax * 1000, Memory: pool.MemoryMax << 30, GPU: pool.GPUMax},
	}
	for _, r := range pool.Requirements {
		if r.MinValues > 0 {
			rules.MinValues = append(rules.MinValues, placement.MinValues{Key: r.Key, N: r.MinValues})
		}
	}
	for _, r := range pool.open() {
		if r.Op == "Exists" {
			rules.Open = append(rules.Open, r.Key)
		}
	}
	market := 0
	for i := range v.s.Types {
		t := &v.s.Types[i]
		for k := range t.Offerings {
			o := &t.Offerings[k]
			market++
			if !o.Available {
				continue
			}
			labels := labelList(v.s.labelsOf(pool, t, o))
			rules.Domains = append(rules.Domains, labels...)
			if !pool.sells(v.s, t, o) {
				continue
			}
			for choice, more := range pool.choices() {
				chosen := v.s.labelsOf(pool, t, o)
				maps.Copy(chosen, more)
				v.offers = append(v.offers, placement.Offer{
					Pool: policy.PoolID(p), Market: policy.MarketID(market - 1), Price: policy.Money(o.Price), Choice: choice,
					Allocatable: t.allocatable().resources(), Capacity: t.capacity().resources(), VolumesMax: int32(t.VolumesMax),
					GPUResource: t.GPUResource, Labels: labelList(chosen), Taints: taints, Max: o.Left,
				})
			}
		}
	}
	nodes := int64(0)
	for i := range v.s.Nodes {
		if n := &v.s.Nodes[i]; n.Pool == pool.Name && !n.Deleting {
			rules.Used = rules.Used.Plus(v.s.typ(n.Type).capacity().resources())
			nodes++
		}
	}
	rules.NodesFull = pool.NodesMax > 0 && nodes >= pool.NodesMax
	v.rules = append(v.rules, rules)
}

// choices returns the labels that the nodes of a pool may have, one set for each value that it leaves
// open: of a label that must exist any that pods name, and one that none does.
func (p *Pool) choices() []map[string]string {
	sets := []map[string]string{{}}
	for _, r := range p.open() {
		values := r.Values
		if r.Op == "Exists" {
			values = append([]string{"0"}, openValues[r.Key]...)
		}
		var more []map[string]string
		for _, set := range sets {
			for _, value := range values {
				with := maps.Clone(set)
				with[r.Key] = value
				more = append(more, with)
			}
		}
		sets = more
	}
	return sets
}

// active returns the nodes that stay, as Karpenter orders them.
func (v *view) active() []policy.NodeID {
	var nodes []policy.NodeID
	for i := range v.s.Nodes {
		if !v.s.Nodes[i].Deleting {
			nodes = append(nodes, policy.NodeID(i))
		}
	}
	late := func(id policy.NodeID) int {
		if v.s.Nodes[id].Phase == "initialized" {
			return 0
		}
		return 1
	}
	slices.SortFunc(nodes, func(a, b policy.NodeID) int {
		return cmp.Or(cmp.Compare(late(a), late(b)), cmp.Compare(v.s.Nodes[a].Name, v.s.Nodes[b].Name))
	})
	return nodes
}

// schedule places the pods at these positions. Where domains are equal it follows a
// guide, as Karpenter takes any of them.
func (v *view) schedule(batch []int, follow guide) *Outcome {
	b := placement.Batch{Nodes: v.active(), Offers: v.offers, Pools: v.rules, SharedPorts: version.Before(13),
		SharedDaemons: version.Before(14), AwaitReserved: true}
	for _, i := range batch {
		p := v.pod(i)
		p.Phase, p.Node = policy.PodPending, policy.None
		b.Pods = append(b.Pods, p)
	}
	var draws []draw
	b.Draw = func(pod int, key string, list []string) int {
		draws = append(draws, draw{pod, key, slices.Clone(list)})
		return follow.choice(batch[pod], key, list)
	}
	sol := v.space.Solver().Solve(&b)
	check := tieCheck{view: v, batch: batch, sol: &sol, draws: draws}
	out := &Outcome{Nodes: map[int]string{}, Ties: len(draws), untied: check.untied()}
	for at, n := range sol.Nodes {
		if n != policy.None {
			out.Nodes[batch[at]] = v.s.Nodes[n].Name
		}
	}
	for _, at := range sol.Unplaced {
		out.Unplaced = append(out.Unplaced, batch[at])
	}
	for _, bin := range sol.Bins {
		out.Claims = append(out.Claims, v.claim(&bin, batch))
	}
	v.cut(out)
	out.sort()
	return out
}

func (v *view) claim(bin *placement.Bin, batch []int) Claim {
	c := Claim{Pool: v.s.Pools[v.offers[bin.Offers[0]].Pool].Name, Cheapest: math.MaxInt64}
	for _, at := range bin.Pods {
		c.Pods = append(c.Pods, batch[at])
	}
	for _, i := range bin.Offers { // cheapest first
		o := &v.offers[i]
		name, _ := policy.FindLabel(o.Labels, "node.kubernetes.io/instance-type")
		if !slices.Contains(c.Types, name) {
			c.Types, c.Prices = append(c.Types, name), append(c.Prices, int64(o.Price))
		}
		c.Cheapest = min(c.Cheapest, int64(o.Price))
		if zone, _ := policy.FindLabel(o.Labels, "topology.kubernetes.io/zone"); !slices.Contains(c.Zones, zone) {
			c.Zones = append(c.Zones, zone)
		}
	}
	slices.Sort(c.Pods)
	return c
}

// cut truncates the types of every claim; one that then has too few values of a label
// for its pool is given up.
func (v *view) cut(out *Outcome) {
	out.Claims = slices.DeleteFunc(out.Claims, func(c Claim) bool {
		if len(c.Types) <= typesMax {
			return false
		}
		few := slices.ContainsFunc(v.s.pool(c.Pool).Requirements, func(r Requirement) bool {
			return r.MinValues > 0 && v.s.values(r.Key, c.Types[:typesMax]) < r.MinValues
		})
		if few {
			out.Unplaced = append(out.Unplaced, c.Pods...)
		}
		return few
	})
	for i := range out.Claims {
		c := &out.Claims[i]
		n := min(typesMax, len(c.Types))
		c.Types, c.Prices = c.Types[:n], c.Prices[:n]
		slices.Sort(c.Types)
	}
}

// values returns how many values of a label types have.
func (s *State) values(key string, types []string) int {
	values := map[string]bool{}
	for _, name := range types {
		switch t := s.typ(name); key {
		case labelType:
			values[t.Name] = true
		case labelFamily:
			values[t.Family] = true
		case labelArch:
			values[t.Arch] = true
		default:
			panic("minValues of " + key)
		}
	}
	return len(values)
}
