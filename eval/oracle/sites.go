package oracle

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A site is a possible place of a node: a market in a pool.
type site struct {
	market policy.MarketID

	// free is the capacity of a node after DaemonSet pods. takes reports for each workload whether
	// a pod of it can run there.
	free  [resources]int64
	takes []bool
}

// resources is the number of resources of a site. Accelerators of all makes are one resource,
// because a site has only one make and only takes the workloads that request it.
const resources = 5

func vector(r *policy.Resources) [resources]int64 {
	return [resources]int64{r.CPU, r.Memory, r.Storage, r.GPU, r.Pods}
}

// findSites sets the sites of all pools and of the nodes that exist at the start.
func (o *Oracle) findSites() {
	w := o.scenario
	// Other pods may exclude a pod from a node temporarily, but never permanently, so only the
	// properties of the node count.
	alone := slices.Clone(w.Templates)
	for i := range alone {
		t := &alone[i]
		t.PodAffinity, t.PodAntiAffinity, t.Spread, t.HostPorts, t.Volumes = nil, nil, nil, nil, nil
	}
	space := placement.New(alone, w.Zones)
	o.fees = slices.Repeat([]policy.Money{policy.FeeMax}, len(w.Markets))
	for p := range w.Pools {
		markets := slices.Clone(w.Pools[p].Markets)
		for _, s := range w.Seeds {
			if s.Pool == policy.PoolID(p) {
				markets = append(markets, s.Market)
			}
		}
		slices.Sort(markets)
		for _, m := range slices.Compact(markets) {
			o.fees[m] = min(o.fees[m], w.Pools[p].Fees.Total())
			if s, ok := o.siteOf(space, &w.Pools[p], m); ok {
				o.sites = append(o.sites, s)
			}
		}
	}
}

// siteOf returns the site of market m for pool. It returns false if no workload can run there.
func (o *Oracle) siteOf(space *placement.Space, pool *policy.Pool, m policy.MarketID) (site, bool) {
	w := o.scenario
	typ := &w.Types[w.Markets[m].Type]
	node := policy.Node{Pool: pool.ID, Market: m, Phase: policy.NodeInitialized,
		Allocatable: w.AllocatableOf(pool.ID, typ.ID),
		VolumesMax:  typ.VolumesMax, GPUResource: typ.GPUResource,
		Labels: placement.NodeLabels(w.Types, w.Zones, pool, &w.Markets[m]), Taints: pool.Taints}
	space.SetNode(&node)
	free := node.Allocatable
	if daemons := space.Daemons(node.Labels, node.Taints); daemons.Within(free) {
		free = free.Minus(daemons) // otherwise some of them do not fit, and it is unknown which
	}
	s := site{market: m, free: vector(&free), takes: make([]bool, len(w.Workloads))}
	any := false
	for i := range w.Workloads {
		pod := policy.Pod{Template: policy.TemplateID(i), Phase: policy.PodPending, Node: policy.None,
			Nominated: policy.None, VolumeZone: policy.None}
		requests := vector(&w.Templates[i].Requests)
		if !w.Templates[i].DaemonSet && space.Check(&pod, 0) == placement.OK && holds(&s.free, &requests) {
			s.takes[i], any = true, true
		}
	}
	return s, any
}

// findClasses sets classes and classOf. Pods of a class have equal requests, can run on the same
// nodes, have the same anti-affinity and the same value.
func (o *Oracle) findClasses() {
	for i := range o.scenario.Workloads {
		c := slices.IndexFunc(o.classes, func(first int) bool { return o.alike(first, i) })
		if c < 0 {
			c, o.classes = len(o.classes), append(o.classes, i)
		}
		o.classOf = append(o.classOf, c)
	}
}

// alike reports whether pods of workloads a and b cost the same to serve.
func (o *Oracle) alike(a, b int) bool {
	t := o.scenario.Templates
	return vector(&t[a].Requests) == vector(&t[b].Requests) && o.value[a] == o.value[b] &&
		!slices.ContainsFunc(o.sites, func(s site) bool { return s.takes[a] != s.takes[b] }) &&
		!slices.ContainsFunc(o.exclusive, func(set []int) bool { return slices.Contains(set, a) != slices.Contains(set, b) })
}

// holds reports whether requests fit into free. Resources that are not requested are not compared.
func holds(free, requests *[resources]int64) bool {
	for r, q := range requests {
		if q > 0 && q > free[r] {
			return false
		}
	}
	return true
}
