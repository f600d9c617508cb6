package workload

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/scratch"
)

// An access finds the markets in which the pods of a template may run, according to selectors,
// affinity, taints and size. It ignores the free capacity of the cluster.
type access struct {
	s *policy.Snapshot

	// classes are the distinct constraints found so far. Each has its markets in markets[from:to].
	classes []class
	markets []policy.MarketID

	seen  []bool // by zone, for the current workload
	known []bool // by market, for the current class
}

// A class represents all templates with the same requirements on a node, apart from size.
type class struct {
	like     policy.TemplateID
	from, to int32
}

func (r *access) read(s *policy.Snapshot) {
	r.s, r.classes, r.markets = s, r.classes[:0], r.markets[:0]
}

// best computes the most even possible spread of the pods of row i.
func (x *Exposure) best(i int) {
	e, r, s := &x.rows[i], &x.access, x.s
	e.bestMarket, e.bestZone = e.desired, e.desired
	if e.template < 0 {
		return
	}
	t := &s.Templates[e.template]
	r.seen = scratch.Zeroed(r.seen, len(s.Zones))
	spot, zones, onDemand := int32(0), int32(0), false
	for _, m := range r.of(t) {
		market := &s.Markets[m]
		if !t.Requests.Within(s.Types[market.Type].Allocatable) {
			continue
		}
		if market.Capacity == policy.Spot {
			spot++
		} else {
			onDemand = true
		}
		if !r.seen[market.Zone] {
			r.seen[market.Zone] = true
			zones++
		}
		if onDemand && int(zones) == len(s.Zones) {
			break
		}
	}
	row := x.counts[i*x.groups : (i+1)*x.groups]
	onSpot, fixed := int32(0), int32(0)
	for _, n := range row[:len(s.Markets)] {
		onSpot += n
	}
	onDemand = onDemand || onSpot < e.bound
	for z, n := range row[len(s.Markets):] {
		if n > 0 && !r.seen[z] {
			zones++ // its pods run there, whatever is on sale now
		}
		fixed = max(fixed, x.fixed[i*len(s.Zones)+z])
	}
	if together(t) {
		zones = 1
	}
	e.bestZone = max(even(e.desired, zones), fixed)
	if e.bestMarket = even(e.desired, spot); onDemand {
		e.bestMarket = 0
	}
}

// together reports whether t requires its pods to run in one zone, by a required affinity to its
// own pods with the zone as topology key. Anti-affinity and topology spread do not require less
// than an even spread, so they do not matter here.
func together(t *policy.Template) bool {
	return slices.ContainsFunc(t.PodAffinity, func(a policy.PodTerm) bool {
		own := a.AllSpaces || len(a.Namespaces) == 0 || slices.Contains(a.Namespaces, t.Namespace)
		return a.Weight == 0 && a.TopologyKey == zoneLabel && own && a.Selector.Matches(t.Labels)
	})
}

// even returns the size of the largest group if n pods are spread evenly over k groups.
func even(n, k int32) int32 {
	if k <= 1 {
		return n
	}
	return (n + k - 1) / k
}

// of returns the markets in which pods of t may run. The list belongs to r.
func (r *access) of(t *policy.Template) []policy.MarketID {
	for i := range r.classes {
		c := &r.classes[i]
		if alike(t, &r.s.Templates[c.like]) {
			return r.markets[c.from:c.to]
		}
	}
	c := class{like: t.ID, from: int32(len(r.markets))}
	r.known = scratch.Zeroed(r.known, len(r.s.Markets))
	for p := range r.s.Pools {
		pool := &r.s.Pools[p]
		if pool.Mode == policy.ModeOff || !policy.TolerateAll(t.Tolerations, pool.Taints) {
			continue
		}
		for _, m := range pool.Markets {
			if !r.known[m] && r.sold(pool, m) && r.wanted(t, pool, m) {
				r.known[m] = true
				r.markets = append(r.markets, m)
			}
		}
	}
	r.onDemandFirst(r.markets[c.from:])
	c.to = int32(len(r.markets))
	r.classes = append(r.classes, c)
	return r.markets[c.from:c.to]
}

// onDemandFirst moves markets that are not Spot to the front, so that callers that look for one of
// them can stop early.
func (r *access) onDemandFirst(markets []policy.MarketID) {
	k := 0
	for i, m := range markets {
		if r.s.Markets[m].Capacity != policy.Spot {
			markets[k], markets[i] = m, markets[k]
			k++
		}
	}
}

// sold reports whether pool may buy in m now.
func (r *access) sold(pool *policy.Pool, m policy.MarketID) bool {
	x := &r.s.Markets[m]
	if x.Capacity == policy.Spot {
		return x.Offered && pool.Share.Max > 0
	}
	return x.Offered && pool.Share.Min < 1
}

// alike reports whether a and b have the same requirements on a node, apart from size.
func alike(a, b *policy.Template) bool {
	return slices.Equal(a.NodeSelector, b.NodeSelector) && slices.Equal(a.Tolerations, b.Tolerations) &&
		slices.EqualFunc(a.Affinity, b.Affinity, func(x, y policy.NodeTerm) bool {
			return slices.EqualFunc(x.Labels, y.Labels, sameRequirement) && slices.EqualFunc(x.Fields, y.Fields, sameRequirement)
		})
}

func sameRequirement(a, b policy.Requirement) bool {
	return a.Key == b.Key && a.Op == b.Op && slices.Equal(a.Values, b.Values)
}

// wanted reports whether the node selector and the required affinity of t match a node of m in
// pool. Labels that neither the market nor the pool fixes count as matching, because they may be
// set when the node is created.
func (r *access) wanted(t *policy.Template, pool *policy.Pool, m policy.MarketID) bool {
	for i := range t.NodeSelector {
		value, known := r.label(pool, m, t.NodeSelector[i].Key)
		if known && value != t.NodeSelector[i].Value {
			return false
		}
	}
	return len(t.Affinity) == 0 || slices.ContainsFunc(t.Affinity, func(term policy.NodeTerm) bool {
		for i := range term.Labels {
			value, known := r.label(pool, m, term.Labels[i].Key)
			if known && !term.Labels[i].MetBy(value, true) {
				return false
			}
		}
		return true
	})
}

// label returns the value of the label key on a node of m in pool, and reports whether the market
// or the pool fixes it.
func (r *access) label(pool *policy.Pool, m policy.MarketID, key string) (string, bool) {
	x := &r.s.Markets[m]
	it := &r.s.Types[x.Type]
	switch key {
	case zoneLabel:
		return r.s.Zones[x.Zone], true
	case "karpenter.sh/capacity-type":
		return x.Capacity.String(), true
	case "node.kubernetes.io/instance-type":
		return it.Name, true
	case "topology.kubernetes.io/region":
		return x.Region, true
	case "kubernetes.io/arch":
		return it.Arch, true
	}
	if value, ok := policy.FindLabel(pool.Labels, key); ok {
		return value, value != policy.AnyValue
	}
	return policy.FindLabel(it.Labels, key)
}
