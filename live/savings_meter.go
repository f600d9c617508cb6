package live

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/spotter-dev/spotter/live/cluster"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// A LifeObserver is an Observer that reports the end of nodes: see [cluster.Observer.Lives].
// Without one, a node is charged until it was last observed, and a node that was launched before it
// was first observed is charged from the previous step on.
type LifeObserver interface {
	Lives() (lives []cluster.Life, gone []cluster.Gone)
}

var _ LifeObserver = (*cluster.Observer)(nil)

// A meter adds the cost of the time between two snapshots to the accounts of all pools.
type meter struct {
	observer LifeObserver // reports the end of nodes; may be nil

	// charged contains the prices per hour of the markets in use at the last snapshot, by name,
	// since IDs are valid in one snapshot only. After a restart, no other earlier prices are known.
	charged map[string]policy.Money

	// usages contains the nodes of the last snapshot by key, nil before the first. left contains
	// the nodes that have ended and are not fully charged. closed contains the time up to which
	// nodes that ended within gapMax were charged, in case they are observed again.
	usages map[string]*nodeUsage
	left   []*nodeUsage
	closed map[string]policy.Time

	// at is when the meter was last read, and turn the number of reads. owed is the earliest time
	// for which a node is not charged yet; prices are kept from then on.
	at, owed policy.Time
	turn     uint64
	rates    map[string]*rate

	ended []*nodeUsage // nodes whose end the last reading found

	// The remaining fields are scratch space: the snapshot, the accounts by PoolID, and the shares
	// of namespaces by node.
	s      *policy.Snapshot
	books  []*Savings
	shares [][]nodeShare
}

// A nodeShare is the share of a node that one namespace requests.
type nodeShare struct {
	namespace string
	share     float64
}

// read adds the cost since the accounts were last updated. books are by PoolID. The sums do not
// depend on when read is called, provided that it observes every price.
func (m *meter) read(s *policy.Snapshot, books []*Savings) {
	m.s, m.books = s, books
	m.turn++
	m.ended = m.ended[:0]
	m.divide(s)
	m.follow(s)
	fresh := m.usages == nil
	if fresh {
		m.resume()
	}
	for _, book := range books {
		if book.Since == 0 {
			book.Since, book.At = s.Now, s.Now
		}
	}
	var lives []cluster.Life
	if m.observer != nil {
		var gone []cluster.Gone
		lives, gone = m.observer.Lives()
		m.bury(gone, fresh)
	}
	m.visit(lives, fresh)
	m.miss()
	m.settle()
	m.close()
}

// resume restores the usages that the accounts contain.
func (m *meter) resume() {
	m.usages, m.closed = map[string]*nodeUsage{}, map[string]policy.Time{}
	for _, book := range m.books {
		for i := range book.Open {
			t := book.Open[i]
			t.book = book
			if t.Ended != 0 {
				m.left = append(m.left, &t)
			} else {
				m.usages[t.Key] = &t
			}
		}
	}
}

// bury ends the usages of nodes that are gone. For nodes that were never observed, it creates a
// usage first.
func (m *meter) bury(gone []cluster.Gone, fresh bool) {
	for i := range gone {
		g := &gone[i]
		m.merge(&g.Life)
		t := m.usages[g.Key]
		if t != nil {
			m.antedate(t, g.Launched, fresh, true)
		} else {
			pool := slices.IndexFunc(m.s.Pools, func(p policy.Pool) bool { return p.Name == g.Pool })
			if pool < 0 || g.Launched == 0 {
				continue
			}
			t = &nodeUsage{Key: g.Key, Launched: g.Launched, book: m.books[pool]}
			t.begin(m.from(t, fresh, true), fresh)
		}
		delete(m.usages, g.Key)
		t.Ended, t.Bid, t.Market = g.Ended, cmp.Or(g.Bid, t.Bid), cmp.Or(g.Market, t.Market)
		m.leave(t)
	}
}

// from returns the start of the charge of a node that the previous snapshot did not contain. A node
// that was launched before that snapshot is charged from its launch on, unless the previous leader
// may have charged it.
func (m *meter) from(t *nodeUsage, fresh, observed bool) policy.Time {
	known := t.book.At
	if observed && !fresh && t.Launched != 0 {
		known = max(t.book.Since, m.s.Now.Add(-gapMax), m.closed[t.Key])
	}
	return max(known, t.Launched)
}

// visit updates and charges the usages of the nodes in the snapshot.
func (m *meter) visit(lives []cluster.Life, fresh bool) {
	for i := range m.s.Nodes {
		n := &m.s.Nodes[i]
		if !n.Live() {
			continue
		}
		life, book := cluster.Life{Key: n.Name}, (*Savings)(nil)
		if len(lives) == len(m.s.Nodes) {
			life = lives[i]
		}
		if n.Pool >= 0 {
			book = m.books[n.Pool]
		}
		m.merge(&life)
		t := m.usages[life.Key]
		switch {
		case t == nil:
			t = &nodeUsage{Key: life.Key, Launched: n.Launched, Until: m.s.Now, book: book}
			if book != nil {
				t.begin(m.from(t, fresh, lives != nil), fresh)
			}
			m.usages[life.Key] = t
		case t.book != book:
			t.move(book)
		default:
			m.antedate(t, n.Launched, fresh, lives != nil)
		}
		t.turn, t.Launched, t.Ended, t.Bid = m.turn, cmp.Or(n.Launched, t.Launched), life.Ended, n.Bid
		t.shares = append(t.shares[:0], m.shares[i]...)
		if n.Market >= 0 && !life.Ordered {
			t.Market = m.s.Markets[n.Market].Name
		}
		m.charge(t)
	}
}

// miss ends the usages of nodes that disappeared without a report of their end: they are charged
// until they were last observed.
func (m *meter) miss() {
	var missed []*nodeUsage
	for _, t := range m.usages {
		if t.turn == m.turn {
			continue
		}
		t.Ended = m.at
		if m.at == 0 && t.book != nil {
			t.Ended = t.book.At // the previous leader observed it last
		}
		missed = append(missed, t)
	}
	slices.SortFunc(missed, func(a, b *nodeUsage) int { return cmp.Compare(a.Key, b.Key) })
	for _, t := range missed {
		delete(m.usages, t.Key)
		m.leave(t)
	}
}

// leave records that the node of a usage is gone.
func (m *meter) leave(t *nodeUsage) {
	m.left = append(m.left, t)
	if slices.Contains(m.books, t.book) {
		m.ended = append(m.ended, t)
	}
}

// settle charges the nodes that have ended. It drops usages that are fully charged, whose price
// will not become known, or whose pool is gone: the uncharged time of the latter two stays
// unpriced.
func (m *meter) settle() {
	m.left = slices.DeleteFunc(m.left, func(t *nodeUsage) bool {
		if !slices.Contains(m.books, t.book) {
			return true
		}
		m.charge(t)
		m.closed[t.Key] = max(t.Until, t.Ended)
		hopeless := t.Market == "" || m.s.Now.Sub(t.Ended) > arrearsMax
		return t.Until >= t.end() || hopeless && !m.rates[t.Market].known()
	})
	maps.DeleteFunc(m.closed, func(_ string, until policy.Time) bool { return m.s.Now.Sub(until) > gapMax })
}

// close records the time up to which the accounts count, and the state of nodes and prices to
// store.
func (m *meter) close() {
	now := m.s.Now
	for _, book := range m.books {
		book.At = max(book.At, now)
		book.Open = nil
	}
	m.at, m.owed, m.charged = now, now, make(map[string]policy.Money, len(m.charged))
	for _, t := range m.usages { // in any order: the result is sorted
		m.keep(t)
	}
	for _, t := range m.left {
		m.keep(t)
	}
	for _, book := range m.books {
		slices.SortFunc(book.Open, func(a, b nodeUsage) int {
			return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Launched, b.Launched))
		})
		book.Open = book.Open[:min(len(book.Open), openMax)]
	}
	maps.DeleteFunc(m.rates, func(_ string, r *rate) bool { return r.turn != m.turn })
	m.s, m.books = nil, nil
}

// keep records the state that the usage of a node still needs: the price of its market, the prices
// since its last charge, and the usage itself if it is not charged up to now.
func (m *meter) keep(t *nodeUsage) {
	if t.book == nil {
		return
	}
	if r := m.rates[t.Market]; r != nil && len(r.price) > 0 {
		m.charged[t.Market] = r.price[len(r.price)-1]
	}
	if t.Until >= t.end() {
		return
	}
	m.owed = min(m.owed, t.Until)
	if t.Until != m.at || t.Ended != 0 {
		t.book.Open = append(t.book.Open, *t)
	}
}

// charge adds the cost of a node since its last charge to its account. While its price is unknown,
// the time counts as unpriced; it is charged once a price is known.
func (m *meter) charge(t *nodeUsage) {
	now := m.s.Now
	if t.book == nil {
		t.Until = now
		return
	}
	if m.gap(t) {
		m.waive(t, now.Add(-gapMax))
	}
	r := m.rates[t.Market]
	if !r.known() {
		m.waive(t, now.Add(-arrearsMax))
		to := now
		if t.Ended != 0 {
			to = min(now, t.Ended)
		}
		owes := max(0, int64(to-t.Until))
		t.book.Unpriced += owes - t.Waiting
		t.Waiting = owes
		return
	}
	span := billing.Span{From: t.Until, To: min(now, t.end())}
	t.book.Unpriced -= t.Waiting
	t.Waiting = 0
	if span.From >= span.To {
		return
	}
	most := policy.Money(math.MaxInt64)
	if t.Bid > 0 {
		most = t.Bid
	}
	done := t.paid.Clip(span) // the part of the span that is already charged
	paid := r.sum(span, most) - r.sum(done, most)
	onDemand := int64(r.onDemand) * int64(span.To-span.From-(done.To-done.From))
	t.Until = span.To
	t.book.Total.charge(paid, onDemand)
	m.split(t, paid, onDemand)
}

// gap reports whether the account of a usage was last updated so long ago that only the last part
// of the time counts.
func (m *meter) gap(t *nodeUsage) bool { return m.s.Now.Sub(t.book.At) > gapMax }

// waive gives up the uncharged time of a usage before an instant: it stays unpriced.
func (m *meter) waive(t *nodeUsage, before policy.Time) {
	if t.Until < before {
		t.Waiting = max(0, t.Waiting-int64(before-t.Until))
		t.Until = before
	}
}
