package live

import (
	"math"

	"github.com/spotter-dev/spotter/live/cluster"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// A nodeUsage is the state of a node that is charged: from its launch to its end, at least for
// billing.MinimumBilled, at the prices in force.
type nodeUsage struct {
	Key      string      `json:"key"`
	Market   string      `json:"market,omitempty"`
	Launched policy.Time `json:"launched,omitempty"`

	// Ended is when the node ended; 0 while it exists.
	Ended policy.Time `json:"ended,omitempty"`

	// Until is the time up to which the node is charged. It lags behind the account while the price
	// is unknown. Waiting is the part of that lag that is in Savings.Unpriced, in milliseconds.
	Until   policy.Time  `json:"until"`
	Waiting int64        `json:"waiting,omitempty"`
	Bid     policy.Money `json:"bid,omitempty"`

	// since is the start of the charge, 0 if another account or the previous leader may have
	// charged the node, too. paid is a span that was already charged, before an earlier launch time
	// became known or under another key.
	since policy.Time
	paid  billing.Span

	book   *Savings    // nil if the node belongs to no pool
	shares []nodeShare // as of the last snapshot with the node
	turn   uint64      // the last reading that observed the node
}

// begin starts the charge of a node at from. fresh reports whether the previous leader may have
// charged it.
func (t *nodeUsage) begin(from policy.Time, fresh bool) {
	t.Until = from
	if !fresh {
		t.since = from
	}
}

// end returns the time up to which the node is charged: its end, or the end of the minimum billed
// time if that is later.
func (t *nodeUsage) end() policy.Time {
	if t.Ended == 0 {
		return math.MaxInt64
	}
	if t.Launched == 0 {
		return t.Ended
	}
	return max(t.Ended, t.Launched.Add(billing.MinimumBilled))
}

// move assigns a node to the account of another pool, nil for none. The uncharged time in the old
// account stays unpriced.
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

// merge combines the usages of a machine and of its Node if they were taken for two nodes. The time
// for which the Node was charged counts as paid.
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

// antedate also charges a node for the time before its previously known launch: a Node reports the
// time at which it joined, and its machine the time of its order.
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
