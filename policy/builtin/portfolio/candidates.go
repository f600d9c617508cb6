package portfolio

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A candidates holds the nodes that may be emptied. pinned is by node whether it must keep a
// pod; no node of wasting is pinned.
type candidates struct {
	*poolContext
	prices  *prices
	offers  *marketOffers
	balance *poolBalance
	pinned  []bool
	wasting []wasting // in no order that says anything
}

// A wasting is a node that costs more than its pods need, or that the provider
// recommends to leave.
type wasting struct {
	node   policy.NodeID
	perPod float64 // dollars an hour that are wasted for each of its pods, and one more
}

// A marketCost is what a node of a market costs, once it is known.
type marketCost struct {
	node  float64 // dollars an hour
	known bool

	// value is that of what its resources would be bought as; nil where that depends on the
	// node's pods.
	value *resourceValue
}

// readPinned finds which nodes must keep their pods.
func (c *candidates) readPinned() {
	s := c.s
	stays, alone := make([]bool, len(s.Templates)), make([]bool, len(s.Templates))
	for i := range s.Templates {
		stays[i], alone[i] = c.stays(&s.Templates[i])
	}
	c.pinned = make([]bool, len(s.Nodes))
	for i := range c.e.pods.all {
		p := &c.e.pods.all[i]
		if p.bound && !p.daemon && (p.phase != policy.PodReady || p.doNotDisrupt || stays[p.template] || alone[p.template] && !c.brief(&s.Pods[i])) {
			c.pinned[p.at] = true
		}
	}
}

// stays reports whether pods of t may not be moved by choice, and else whether one of them is
// the only one of a service.
func (c *candidates) stays(t *policy.Template) (stays, alone bool) {
	s := c.s
	if t.Workload < 0 || t.NotSafeToEvict || len(t.PDBs) > 1 || len(t.PDBs) == 1 && s.PDBs[t.PDBs[0]].Allowed == 0 {
		return true, false
	}
	w := &s.Workloads[t.Workload]
	return w.Kind == policy.KindBare, w.Kind != policy.KindJob && w.Replicas <= 1
}

// brief reports whether p, the only pod of a service, is back within a minute when it is
// moved: outages are counted in minutes, and so short a one is weighed like any other cost of
// a move. Where nobody says how long it starts, it does so as long as it did.
func (c *candidates) brief(p *policy.Pod) bool {
	startup := c.s.Templates[p.Template].Startup
	if startup == 0 {
		startup = p.ReadySince.Sub(p.Bound)
	}
	return startup+restartDelay < time.Minute
}

// find reads which of targets may be emptied.
func (c *candidates) find(targets []policy.NodeID) {
	s := c.s
	list := make([]wasting, 0, len(targets))
	costs, backedOff := make([]marketCost, len(s.Markets)), c.backedOff()
	for _, id := range targets {
		n := &c.e.nodes.all[id]
		if c.pinned[id] || n.doNotDisrupt || n.market < 0 || backedOff[id] {
			continue
		}
		x := &costs[n.market]
		if !x.known {
			*x = marketCost{known: true, node: c.prices.keepingIn(n.market)}
		}
		value := x.value
		if value == nil {
			value = c.offers.valueFor(c.balance.spotFor(&s.Nodes[id]))
		}
		if s.Markets[n.market].Capacity == policy.Spot {
			x.value = value // whatever pods a node on spot has
		}
		waste := x.node - value.of(c.e.pods.used(id))
		if waste <= 0 && !n.recommended {
			continue
		}
		list = append(list, wasting{id, waste / float64(1+len(c.e.pods.on(id)))})
	}
	c.wasting = list
}

// backedOff reports by node whose drain is not to be tried again yet.
func (c *candidates) backedOff() []bool {
	list := make([]bool, len(c.s.Nodes))
	for _, x := range c.memory.Backoff {
		if c.s.Now < x.Until {
			for _, id := range c.e.names.named(x.Node) {
				list[id] = true
			}
		}
	}
	return list
}

// first returns the nodes that are tried: those that waste most for each pod.
func (c *candidates) first() []wasting {
	after := func(a, b *wasting) bool {
		if a.perPod != b.perPod {
			return a.perPod < b.perPod
		}
		return c.e.names.rank[a.node] > c.e.names.rank[b.node]
	}
	list := make([]wasting, 0, triesMax+1)
	for i := range c.wasting {
		x := &c.wasting[i]
		if len(list) == triesMax && after(x, &list[triesMax-1]) {
			continue
		}
		list = append(list, *x)
		for k := len(list) - 1; k > 0 && after(&list[k-1], x); k-- {
			list[k-1], list[k] = *x, list[k-1]
		}
		list = list[:min(len(list), triesMax)]
	}
	return list
}
