package capture

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/history"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// A place is the pool and the market of a node. The zero value means that the node is left out.
type place struct {
	pool                         *pool
	provider, region, zone, kind string
	capacity                     policy.CapacityType

	// reservation is the capacity reservation of a reserved node. paid marks a node whose
	// reservation is written as on-demand capacity that was paid for in advance.
	reservation string
	paid        bool
}

// A seed is a number of equal nodes with which the scenario starts.
type seed struct {
	Pool         string `json:"pool"`
	Count        int    `json:"count"`
	InstanceType string `json:"instanceType"`
	Zone         string `json:"zone"`
	CapacityType string `json:"capacityType"`
	Reservation  string `json:"reservation,omitempty"`

	// Pods maps a workload to the number of its pods on each of the nodes.
	Pods map[string]int32 `json:"pods,omitempty"`

	provider, region string
}

// controlPlane are the labels of control plane nodes.
var controlPlane = []string{history.LabelControlPlane, "node-role.kubernetes.io/master"}

// placeNodes determines the pool and market of every node, and creates the pools.
func (c *poolSet) placeNodes() {
	c.statedPools()
	c.places = make([]place, len(c.s.Nodes))
	for i := range c.s.Nodes {
		n := &c.s.Nodes[i]
		switch {
		case n.Phase == policy.NodeGone:
			continue
		case n.Phase == policy.NodeDeleting:
			c.leave(1, "nodes that were going away")
			continue
		case hasLabel(n, controlPlane):
			c.leave(1, "nodes of the control plane, with the pods on them")
			continue
		}
		if why := c.o.Apart[n.Name]; why != "" {
			c.leave(1, "nodes %s, with the pods on them", why)
			continue
		}
		at, ok := c.marketOf(n)
		if !ok {
			continue
		}
		price, _, _ := priced(at.provider, at.region, at.kind)
		c.listPrice += price.Float()
		name, _ := n.Label(karpv1.NodePoolLabelKey)
		if x := c.unread[name]; x != nil && n.Pool < 0 {
			x.nodes++
			x.listPrice += price.Float()
			continue
		}
		at.pool = c.takerOf(n, &at)
		if at.pool == nil {
			at.pool = c.poolOf(n, &at)
		}
		c.settleReserved(n, &at)
		at.pool.nodes = append(at.pool.nodes, n.ID)
		c.places[i] = at
		if !c.seeded(n.ID) {
			continue
		}
		c.out.Nodes++
		if at.capacity == policy.Spot {
			c.out.Spot++
		}
	}
	slices.SortFunc(c.all, func(a, b *pool) int { return cmp.Compare(a.name, b.name) })
	c.leaveUnread()
	c.derive()
}

// leaveUnread records which NodePools are left out, why, and the share of their nodes in the cost
// of all nodes, at on-demand list prices.
func (c *poolSet) leaveUnread() {
	for _, name := range slices.Sorted(maps.Keys(c.unread)) {
		x := c.unread[name]
		share := x.listPrice / max(c.listPrice, math.SmallestNonzeroFloat64)
		c.out.Left = append(c.out.Left,
			fmt.Sprintf("NodePool %s with its %s and the pods on them, %s of the cost of all nodes: %s", c.names.pool(name),
				figures.Count(x.nodes, "node"), figures.Share(share, 1), x.why))
	}
}

// takerOf returns the first pool with a manifest that may buy the market of a past node that no
// label assigns to a group; otherwise nil. It is nil for current nodes.
func (c *poolSet) takerOf(n *policy.Node, at *place) *pool {
	if _, past := c.began[n.ID]; !past || n.Pool >= 0 || groupOf(n) != "" {
		return nil
	}
	i := slices.IndexFunc(c.all, func(p *pool) bool { return p.manifest != nil && takes(p.manifest, at) })
	if i < 0 {
		return nil
	}
	return c.all[i]
}

// seeded reports whether the scenario starts with a node: with the nodes of the snapshot, or with
// those that existed at the start of the history.
func (c *poolSet) seeded(n policy.NodeID) bool { return c.began == nil || c.began[n] }

func hasLabel(n *policy.Node, keys []string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { _, has := n.Label(k); return has })
}

// marketOf returns the market of a node: from the snapshot, or from the labels if the snapshot has
// none. ok is false if the node is left out.
func (c *poolSet) marketOf(n *policy.Node) (at place, ok bool) {
	if n.Market >= 0 {
		m := &c.s.Markets[n.Market]
		at = place{provider: m.Provider, region: m.Region, zone: c.s.Zones[m.Zone], kind: c.s.Types[m.Type].Name,
			capacity: m.Capacity}
	} else {
		at.provider = c.o.Provider
		at.region, _ = n.Label(corev1.LabelTopologyRegion)
		at.zone, _ = n.Label(corev1.LabelTopologyZone)
		at.kind, _ = n.Label(corev1.LabelInstanceTypeStable)
		if at.region == "" && at.zone != "" {
			at.region = regionOf(at.zone)
		}
		labels := make(map[string]string, len(n.Labels))
		for _, l := range n.Labels {
			labels[l.Key] = l.Value
		}
		at.capacity, _ = c.o.Capacity.Resolve(labels)
	}
	if _, known := catalog.Lookup(at.provider, at.kind); !known && n.Market < 0 {
		if i := slices.IndexFunc(catalog.Providers(), func(p string) bool {
			_,
				sells := catalog.Lookup(p, at.kind)
			return sells
		}); i >= 0 {
			at.provider = catalog.Providers()[i]
		}
	}
	if id, in := n.Label(labelReservation); in {
		at.capacity, at.reservation = policy.Reserved, id
	} else if at.capacity == policy.Spot && c.o.OnDemand {
		at.capacity = policy.OnDemand
	}
	switch _, known := catalog.Lookup(at.provider, at.kind); {
	case at.kind == "" || at.zone == "" || at.region == "":
		c.leave(1, "nodes that do not say their region, zone and instance type, with the pods on them")
		return place{}, false
	case !known:
		c.leave(1, "nodes of type %s, which the catalog of %s does not hold, with the pods on them", at.kind, at.provider)
		return place{}, false
	}
	if _, _, known := priced(at.provider, at.region, at.kind); c.o.Priced && !known {
		c.leave(1, "nodes of type %s in %s, of which no price is known, with the pods on them", at.kind, at.region)
		return place{}, false
	}
	return at, true
}

// in reports whether a node is in the scenario. It is true for pods without a node.
func (c *poolSet) in(n policy.NodeID) bool { return n < 0 || c.places[n].pool != nil }

// seeds returns the nodes with which the scenario starts and the pods on them, equal ones together.
// With all it also returns the nodes that came later.
func (c *poolSet) seeds(on podsOnNodes, all bool) (out []seed) {
	same := map[string]int{} // index in out, by all fields except the count
	for i := range c.places {
		p := &c.places[i]
		if p.pool == nil || !all && !c.seeded(policy.NodeID(i)) {
			continue
		}
		x := seed{
			Pool: c.names.pool(p.pool.name), InstanceType: p.kind, Zone: p.zone, CapacityType: p.capacity.String(),
			Reservation: c.names.of("reservation",
				p.reservation), Pods: on[policy.NodeID(i)], provider: p.provider, region: p.region,
		}
		key := fmt.Sprint(x) // fmt prints maps in the order of their keys
		k, seen := same[key]
		if !seen {
			k = len(out)
			same[key], out = k, append(out, x)
		}
		out[k].Count++
	}
	slices.SortFunc(out, func(a, b seed) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.InstanceType, b.InstanceType), cmp.Compare(a.Zone, b.Zone),
			cmp.Compare(a.CapacityType, b.CapacityType), cmp.Compare(a.Reservation, b.Reservation),
			cmp.Compare(fmt.Sprint(a.Pods), fmt.Sprint(b.Pods))) // capturing a capture must reproduce it byte for byte
	})
	return out
}

// takes reports whether the manifest of a pool allows a market.
func takes(p *v1alpha1.CapacityPool, at *place) bool {
	t, ok := catalog.Lookup(at.provider, at.kind)
	return ok && p.BuysFrom(at.provider) && p.Spec.Markets.Take(at.region, at.zone, &t)
}
