package cluster

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// goneMax bounds the ended nodes that were not yet read: a replica that does not lead keeps the
// newest.
const goneMax = 2000

// A Life is a node from its order to its end.
type Life struct {
	// Key names it all along, where the name of the node changes once it has joined: that
	// of its machine, or of its Node where no backend reports a machine. Was is the key
	// that its Node had in snapshots from before the two were known to be one; empty where
	// there were none.
	Key, Was string

	// Ended is when the observer learned that the Node object was gone, or the machine of a node
	// that never joined; 0 while it lives.
	Ended policy.Time

	// Ordered means that its machine has not been observed yet, so that its market in the snapshot
	// is only the expected one.
	Ordered bool
}

// A Gone is a node that has ended, as it was when it did.
type Gone struct {
	Life

	// Launched and Bid are those of [policy.Node]; Pool and Market are names, empty where
	// they are not known.
	Launched     policy.Time
	Bid          policy.Money
	Pool, Market string
}

// A lifeTable knows the lives of nodes as of the last snapshot, and of those that have ended.
type lifeTable struct {
	nodes   *nodeSlots
	pools   *poolTable
	markets *marketView

	last     []Life // by slot
	reported []Gone // had ended by the last snapshot
	departed []Gone // have ended since
}

// Lives returns the lives of the nodes of the last snapshot, by their NodeID and empty
// in a free slot, and the nodes that had ended by then and were not reported before, in
// the order in which they did. Those that came and went between two snapshots are among
// them.
func (o *Observer) Lives() (lives []Life, gone []Gone) {
	o.mu.Lock()
	defer o.mu.Unlock()
	gone, o.nodes.lives.reported = o.nodes.lives.reported, nil
	return o.nodes.lives.last, gone
}

// ordered reports whether a node was requested and its machine has not been observed yet.
func (e *nodeEntry) ordered() bool {
	return e.object == nil && e.gone == 0 && e.machine != nil && e.machine.ProviderID == ""
}

// rename gives what is in a slot the key of its machine.
func (e *nodeEntry) rename(key string) {
	if e.seen && e.life != key {
		e.was = e.life
	}
	e.life = key
}

// fill notes the lives as of the snapshot that is being built.
func (t *lifeTable) fill() {
	t.last = make([]Life, len(t.nodes.nodes))
	for i := range t.nodes.nodes {
		if e := &t.nodes.entries[i]; t.nodes.nodes[i].Phase != policy.NodeGone {
			e.seen = true
			t.last[i] = Life{Key: e.life, Was: e.was, Ended: e.gone, Ordered: e.ordered()}
		}
	}
	t.reported = newest(append(t.reported, t.departed...))
	t.departed = t.departed[:0]
}

// depart notes that what is in slot i, which was just read, ended at an instant, unless its end is
// already known.
func (t *lifeTable) depart(i int32, at policy.Time) {
	e, n := &t.nodes.entries[i], &t.nodes.nodes[i]
	g := Gone{Life: Life{Key: e.life, Was: e.was, Ended: cmp.Or(e.gone, at)}, Launched: n.Launched, Bid: n.Bid,
		Pool: t.pools.name(n.Pool)}
	switch {
	case e.ordered():
	case n.Market != policy.None:
		g.Market = t.markets.view.Markets[n.Market].Name
	case e.machine != nil:
		g.Market = e.machine.Market
	}
	t.departed = newest(append(t.departed, g))
}

// newest drops the oldest of twice as many as are kept.
func newest(all []Gone) []Gone {
	if len(all) < 2*goneMax {
		return all
	}
	return slices.Clone(all[len(all)-goneMax:])
}
