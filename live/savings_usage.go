package live

import (
	"math"

	"github.com/spotter-dev/spotter/live/cluster"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// A nodeUsage is what is known of one node that is charged: from its launch to its end, at
// least for billing.MinimumBilled, by the prices in force meanwhile.
type nodeUsage struct {
	Key      string      `json:"key"`
	Market   string      `json:"market,omitempty"`
	Launched policy.Time `json:"launched,omitempty"`

	// Ended is when it went; 0 while it is there.
	Ended policy.Time `json:"ended,omitempty"`

	// Until is up to when it is charged. It lags behind the account while there is no
	// price, and Waiting is how much of that is in Savings.Unpriced, in milliseconds.
	Until   policy.Time  `json:"until"`
	Waiting int64        `json:"waiting,omitempty"`
	Bid     policy.Money `json:"bid,omitempty"`

	// since is from when it was charged, 0 where another account or the leader before may
	// have been, too. paid is a stretch that was charged already when it turned out that it
	// was launched before, or is what was taken for another node.
	since policy.Time
	paid  billing.Span

	book   *Savings    // nil while no pool holds the node
	shares []nodeShare // as of the last snapshot that had it
	turn   uint64      // the reading that saw it last
}

// begin has a node be charged from an instant on.
func (t *nodeUsage) begin(from policy.Time, fresh bool) {
	t.Until = from
	if !fresh {
		t.since = from
	}
}

// end returns until when the usage of a node is charged: to the end of the node, and at least for
// the time that is billed.
func (t *nodeUsage) end() policy.Time {
	if t.Ended == 0 {
		return math.MaxInt64
	}
	if t.Launched == 0 {
		return t.Ended
	}
	return max(t.Ended, t.Launched.Add(billing.MinimumBilled))
}

// move brings a node to the account of another pool, or of none. What it owed where it
// was stays without a price.
func (t *nodeUsage) move(book *Savings) {
	if t.book != nil {
		t.Until = max(t.Until, t.book.At)
	}
	if book != nil {
		t.Until = max(t.Until, book.Since)
	}
	t.book, t.Waiting = book, 0
	t.since, t.paid = 0, billing.Span{}
}

// merge makes one usage of those of a machine and of its Node, where they were taken for
// two nodes. What the latter was charged for is paid.
func (m *meter) merge(life *cluster.Life) {
	node := m.usages[life.Was]
	if node == nil || life.Was == life.Key {
		return
	}
	delete(m.usages, life.Was)
	machine := m.usages[life.Key]
	if machine == nil {
		node.Key = life.Key
		m.usages[life.Key] = node
		return
	}
	if node.book != nil {
		node.book.Unpriced -= node.Waiting
	}
	if node.book == machine.book && node.since != 0 {
		machine.paid = billing.Span{From: node.since, To: node.Until}
	}
}

// antedate charges a node also for what was before it was known to be launched: a Node
// reports itself when it joins, and its machine of its order.
func (m *meter) antedate(t *nodeUsage, launched policy.Time, fresh, observed bool) {
	if launched == 0 || launched >= t.Launched || t.book == nil || t.since == 0 || t.paid != (billing.Span{}) {
		return
	}
	t.Launched = launched
	if from := m.from(t, fresh, observed); from < t.since {
		t.paid = billing.Span{From: t.since, To: t.Until}
		t.Until, t.since = from, from
	}
}
