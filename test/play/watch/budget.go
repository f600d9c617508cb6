package watch

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A Node is what matters of a Node object.
type Node struct {
	Name, Pool, NodePool string
	Ours                 []string // our marks on it
	Draining, Notice     bool     // Draining: we empty it
	Going                bool     // it is being deleted
	Host                 string   // of a NodeClaim: its node

	// Launch says that the node is a NodeClaim that Spotter made and that has no machine yet, and
	// Created when it was made.
	Launch  bool
	Created time.Time

	since time.Time // when its marks became these
}

// A pool is what a CapacityPool says.
type pool struct {
	mode   string // empty: it is gone
	budget string // as written: a number, a percentage or nothing
}

// allowances are the budgets of a NodePool that hold always and for every reason.
type allowances []string

// allowed returns how many of n nodes a budget lets be disrupted, rounded up as Karpenter
// does; below 0 without one.
func allowed(budget string, n int) int {
	if budget == "" {
		return -1
	}
	if percent, ok := strings.CutSuffix(budget, "%"); ok {
		if p, err := strconv.ParseFloat(percent, 64); err == nil {
			return int(math.Ceil(p * float64(n) / 100))
		}
	}
	if k, err := strconv.Atoi(budget); err == nil {
		return k
	}
	return -1
}

// Node takes a Node as it is from now on.
func (w *Watcher) Node(at time.Time, n Node) {
	old := w.nodes[n.Name]
	n.since = at
	if old != nil && fmt.Sprint(old.Ours) == fmt.Sprint(n.Ours) {
		n.since = old.since
	}
	w.nodes[n.Name] = &n
	begins := n.Draining && !n.Notice && (old == nil || !old.Draining)
	if !begins {
		return
	}
	w.drains++
	if n.Pool != "" {
		h := keyed(w.pools, n.Pool)
		w.within(at, &n, "CapacityPool "+n.Pool, func(x *Node) bool { return x.Pool == n.Pool }, func(total int) int {
			most := -1
			for _, p := range h.during(at.Add(-w.cfg.Grace), at) {
				k := allowed(p.budget, total)
				if k < 0 {
					return -1
				}
				most = max(most, k)
			}
			return most
		})
	}
	if n.NodePool != "" {
		h := keyed(w.limits, n.NodePool)
		w.within(at, &n, "NodePool "+n.NodePool, func(x *Node) bool { return x.NodePool == n.NodePool }, func(total int) int {
			most := -1
			for _, all := range h.during(at.Add(-w.cfg.Grace), at) {
				least := -1
				for _, b := range all {
					if k := allowed(b, total); k >= 0 && (least < 0 || k < least) {
						least = k
					}
				}
				if least < 0 {
					return -1
				}
				most = max(most, least)
			}
			return most
		})
	}
}

// within holds that no more nodes are drained than a budget allows, now that the drain of n starts.
// Nodes under notice do not count: Spotter does not choose when they end.
func (w *Watcher) within(at time.Time, n *Node, whose string, member func(*Node) bool, allows func(total int) int) {
	total, down := 0, 0
	for _, x := range w.nodes {
		if member(x) {
			total++
			if x.Draining && !x.Notice {
				down++
			}
		}
	}
	if most := allows(total); most >= 0 && down > most {
		w.find(at, "budget", "%s allows %d of its %d nodes to be disrupted, and with %s we empty %d", whose, most, total,
			n.Name, down)
	}
}

// NodeGone takes a Node away.
func (w *Watcher) NodeGone(name string) {
	delete(w.nodes, name)
	delete(w.progress, name)
}

// NodePool takes the budgets of a NodePool as they are from now on.
func (w *Watcher) NodePool(at time.Time, name string, budgets ...string) {
	keyed(w.limits, name).set(at, budgets)
}
