package cluster

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// goneMax is the number of ended nodes that are kept until they are read. A replica that does not
// lead keeps the newest.
const goneMax = 2000

// A Life is a node from its launch request to its end.
type Life struct {
	// Key identifies the node throughout its life, although its name changes once it has joined. It
	// is the name of the machine, or of the Node if no backend reports a machine. Was is the key
	// under which its Node appeared in earlier snapshots, before the Node and the machine were
	// known to be one node; empty if it did not appear.
	Key, Was string

	// Ended is the time at which the observer learned of the deletion of the Node object, or of the
	// machine of a node that never joined; 0 while the node exists.
	Ended policy.Time

	// Ordered means that the machine has not been observed yet, so that the market in the snapshot
	// is only the expected one.
	Ordered bool
}

// A Gone is the final state of a node that has ended.
type Gone struct {
	Life

	// Launched and Bid are the fields of [policy.Node]. Pool and Market are names; empty if
	// unknown.
	Launched     policy.Time
	Bid          policy.Money
	Pool, Market string
}

// A lifeTable contains the lives of the nodes in the last snapshot, and the nodes that have ended.
type lifeTable struct {
	nodes   *nodeSlots
	pools   *poolTable
	markets *marketView

	last     []Life // by slot
	reported []Gone // nodes that had ended by the last snapshot
	departed []Gone // nodes that have ended since
}

// Lives returns the lives of the nodes in the last snapshot, by NodeID, with the zero Life in free
// slots. It also returns the nodes that had ended by then and were not returned before, in the
// order of their ends. They include nodes that both appeared and ended between two snapshots.
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

// rename changes the key of the node in a slot to that of its machine.
func (e *nodeEntry) rename(key string) {
	if e.seen && e.life != key {
		e.was = e.life
	}
	e.life = key
}

// fill records the lives of the nodes in the snapshot that is being built.
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

// depart records that the node in slot i, which was just read, ended at an instant, unless its end
// is already known.
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

// newest limits all to the newest goneMax nodes once there are twice as many.
func newest(all []Gone) []Gone {
	if len(all) < 2*goneMax {
		return all
	}
	return slices.Clone(all[len(all)-goneMax:])
}
