package portfolio

import (
	"cmp"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A candidates finds the nodes that may be emptied.
type candidates struct {
	*poolContext
	prices  *prices
	demand  *demand
	balance *poolBalance

	// stay and alone are by template as stays returns them.
	stay, alone []bool
	backedOff   []policy.NodeID // whose drain is not to be tried again yet
}

// A wasting is nodes that cost more than their pods need, or that the provider recommends to
// leave, ascending by name; perPod is the dollars an hour that are wasted for each of the pods of
// one, and one more.
type wasting struct {
	nodes  []policy.NodeID
	perPod float64
}

// begin reads which pods may be moved.
func (c *candidates) begin() {
	s := c.s
	c.stay, c.alone = make([]bool, len(s.Templates)), make([]bool, len(s.Templates))
	for i := range s.Templates {
		c.stay[i], c.alone[i] = c.stays(&s.Templates[i])
	}
	for _, x := range c.memory.Backoff {
		if s.Now < x.Until {
			c.backedOff = append(c.backedOff, c.e.names.named(x.Node)...)
		}
	}
}

// pinned reports whether node id must keep a pod.
func (c *candidates) pinned(id policy.NodeID) bool {
	return c.e.pods.sets[id].held || slices.ContainsFunc(c.e.pods.on(id), func(p boundPod) bool {
		return c.stay[p.template] || c.alone[p.template] && !c.brief(&c.s.Pods[p.id])
	})
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

// mayGo reports whether node id may be emptied.
func (c *candidates) mayGo(id policy.NodeID) bool {
	return !c.e.nodes.all[id].doNotDisrupt && !slices.Contains(c.backedOff, id) && !c.pinned(id)
}

// wasted returns what node id costs more than its pods need, for each of them and one more.
func (c *candidates) wasted(id policy.NodeID) float64 {
	value := c.prices.worth(id, c.e.pods.used(id), c.balance.spotFor(&c.s.Nodes[id]))
	waste := c.prices.keepingIn(c.e.nodes.all[id].market) - value
	return waste / float64(1+len(c.e.pods.on(id)))
}

// find returns the nodes of the pool that waste something or are to be left, those first that
// waste most. All of a class waste the same, unless what is bought in place of a node that is
// not Spot depends on how its pods wish to be spread, or on what they select.
func (c *candidates) find() []wasting {
	var list []wasting
	add := func(nodes []policy.NodeID) {
		if x := c.wasted(nodes[0]); x > 0 {
			list = append(list, wasting{nodes, x})
		}
	}
	for i := range c.e.classes.list {
		class := &c.e.classes.list[i]
		switch {
		case class.pool != c.pool.ID || len(class.nodes) == 0:
		case class.market >= 0 && (!c.e.spread.wished && !c.demand.some || c.s.Markets[class.market].Capacity == policy.Spot):
			add(class.nodes)
		default:
			for k := range class.nodes {
				add(class.nodes[k : k+1])
			}
		}
	}
	for i, id := range c.e.nodes.recommended {
		if at := c.e.classes.of[id]; at >= 0 && c.e.classes.list[at].pool == c.pool.ID {
			if x := c.wasted(id); x <= 0 {
				list = append(list, wasting{c.e.nodes.recommended[i : i+1], x})
			}
		}
	}
	slices.SortFunc(list, func(a, b wasting) int { return cmp.Compare(b.perPod, a.perPod) })
	return list
}

// first returns the nodes that are tried: those that waste most for each pod, of several the
// first by name.
func (c *candidates) first() []policy.NodeID {
	rank, found := c.e.names.rank, make([]policy.NodeID, 0, triesMax)
	for list := c.find(); len(list) > 0 && len(found) < triesMax; {
		n := 1
		for n < len(list) && list[n].perPod == list[0].perPod {
			n++
		}
		began := len(found)
		for _, x := range list[:n] {
			for k, own := 0, 0; k < len(x.nodes) && began+own < triesMax; k++ {
				if c.mayGo(x.nodes[k]) {
					found = append(found, x.nodes[k])
					own++
				}
			}
		}
		if n > 1 {
			slices.SortFunc(found[began:], func(a, b policy.NodeID) int { return cmp.Compare(rank[a], rank[b]) })
		}
		list = list[n:]
	}
	return found[:min(len(found), triesMax)]
}
