package cluster

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// goneMax bounds the nodes that have ended and that nobody has asked for yet: a replica
// that does not lead keeps the newest.
const goneMax = 2000

// A Life is a node from its order to its end.
type Life struct {
	// Key names it all along, where the name of the node changes once it has joined: that
	// of its machine, or of its Node where no backend reports a machine. Was is the key
	// that its Node had in snapshots from before the two were known to be one; empty where
	// there were none.
	Key, Was string

	// Ended is when the observer heard that the Node object was gone, or the machine of
	// a node that never joined; 0 while it lives.
	Ended policy.Time

	// Ordered says that nobody has seen its machine yet, so that its market in the
	// snapshot is only where it is expected.
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

// Lives returns the lives of the nodes of the last snapshot, by their NodeID and empty
// in a free slot, and the nodes that had ended by then and were not reported before, in
// the order in which they did. Those that came and went between two snapshots are among
// them.
func (o *Observer) Lives() (lives []Life, gone []Gone) {
	o.mu.Lock()
	defer o.mu.Unlock()
	gone, o.reported = o.reported, nil
	return o.lives, gone
}

// ordered reports whether a node is asked for and nobody has seen it yet.
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

// fillLives notes the lives as of the snapshot that is being built.
func (o *Observer) fillLives() {
	o.lives = make([]Life, len(o.nodes))
	for i := range o.nodes {
		if e := &o.nodeX[i]; o.nodes[i].Phase != policy.NodeGone {
			e.seen = true
			o.lives[i] = Life{Key: e.life, Was: e.was, Ended: e.gone, Ordered: e.ordered()}
		}
	}
	o.reported = newest(append(o.reported, o.departed...))
	o.departed = o.departed[:0]
}

// depart notes that what is in slot i, which was just read, ended at an instant, unless
// its end was heard of before.
func (o *Observer) depart(i int32, at policy.Time) {
	e, n := &o.nodeX[i], &o.nodes[i]
	g := Gone{Life: Life{Key: e.life, Was: e.was, Ended: cmp.Or(e.gone, at)}, Launched: n.Launched, Bid: n.Bid, Pool: o.poolName(n.Pool)}
	switch {
	case e.ordered():
	case n.Market != policy.None:
		g.Market = o.view.Markets[n.Market].Name
	case e.machine != nil:
		g.Market = e.machine.Market
	}
	o.departed = newest(append(o.departed, g))
}

// newest drops the oldest of twice as many as are kept.
func newest(all []Gone) []Gone {
	if len(all) < 2*goneMax {
		return all
	}
	return slices.Clone(all[len(all)-goneMax:])
}
