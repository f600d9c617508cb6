package bill

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// A Charge is the cost of one node in one period.
type Charge struct {
	// Node is an index in Usage.Nodes.
	Node int

	// Period is a whole hour or day in UTC. Time is the charged part of it, which may include the
	// minimum time that is billed.
	Period billing.Span
	Time   time.Duration

	// Billed is the part of the price that must be paid, Spared the part that commitments cover.
	// Fees are charged on top.
	Billed, Spared policy.Money
	Fees           policy.NodeFees
}

// periodOf returns the period of length every that contains t; every must divide a day.
func periodOf(t policy.Time, every time.Duration) billing.Span {
	from := policy.TimeOf(t.Std().Truncate(every))
	return billing.Span{From: from, To: from.Add(every)}
}

// A meter accumulates the charges of nodes.
type meter struct {
	u     *Usage
	every time.Duration
	out   []Charge

	// By node: the totals at the end of the last period.
	billed, full []policy.Money
	fees         []policy.NodeFees
	length       []time.Duration
}

// Meter returns the charges of u for each period of length every, ordered by period and then by
// node. It returns an error if the charges of a node do not sum, to the micro-dollar, to what the
// run was charged for it.
func (u *Usage) Meter(every time.Duration) ([]Charge, error) {
	n := len(u.Nodes)
	m := &meter{
		u: u, every: every, billed: make([]policy.Money, n), full: make([]policy.Money, n), fees: make([]policy.NodeFees, n),
		length: make([]time.Duration, n),
	}
	var cover *billing.Coverage
	if len(u.Commitments) > 0 {
		cover = billing.NewCoverage(u.Types, u.Zones, u.Markets, u.Commitments)
		m.committed(cover)
	}
	for i := range u.Nodes {
		x := &u.Nodes[i]
		if cover != nil && cover.Covers(x.Market) {
			continue
		}
		for p := periodOf(max(x.From, u.Window.From), every); p.From < u.Window.To; p = periodOf(p.To, every) {
			full := m.fullAt(i, p.To)
			m.add(i, p, full)
			if x.To <= p.To {
				break
			}
		}
	}
	for i := range u.Nodes {
		x, metered := &u.Nodes[i], m.billed[i]+m.fees[i].Total()
		if x.Billed != policy.NoPrice && metered != x.Billed {
			return nil, fmt.Errorf("bill: %s was charged %v by the run and is metered at %v", x.Name, x.Billed, metered)
		}
	}
	slices.SortStableFunc(m.out, func(a, b Charge) int {
		return cmp.Or(cmp.Compare(a.Period.From, b.Period.From), cmp.Compare(a.Node, b.Node))
	})
	return m.out, nil
}

// fullAt returns the cost of node i until t without commitments. After the node's end that is its
// total cost, including the minimum time that is billed.
func (m *meter) fullAt(i int, t policy.Time) policy.Money {
	x, window := &m.u.Nodes[i], m.until(i, t)
	charges := m.u.Charges[x.Market]
	if x.Bid > 0 {
		return charges.BillAtMost(x.life(), window, x.Bid)
	}
	return charges.Bill(x.life(), window)
}

// until returns the part of the window in which node i was metered by time t.
func (m *meter) until(i int, t policy.Time) billing.Span {
	window := m.u.Window
	if m.u.Nodes[i].To > t {
		window.To = min(window.To, t)
	}
	return window
}

// add adds the charge of node i for a period. billed is the node's total at the end of the period.
func (m *meter) add(i int, p billing.Span, billed policy.Money) {
	x := &m.u.Nodes[i]
	life := billing.Span{From: x.From, To: max(x.To, x.From.Add(billing.MinimumBilled))}
	length, full := life.Clip(m.until(i, p.To)).Length(), m.fullAt(i, p.To)
	c := Charge{Node: i, Period: p, Time: length - m.length[i], Billed: billed - m.billed[i]}
	c.Spared = max(0, full-m.full[i]-c.Billed)
	fees := billing.Fees(x.Fees, x.life(), m.until(i, p.To))
	if min(x.To, m.u.Window.To) <= p.To {
		fees.Credits = x.Credits
	}
	c.Fees = policy.NodeFees{Fee: fees.Fee - m.fees[i].Fee, Volumes: fees.Volumes - m.fees[i].Volumes,
		Credits: fees.Credits - m.fees[i].Credits}
	m.length[i], m.full[i], m.billed[i], m.fees[i] = length, full, billed, fees
	if c.Time > 0 {
		m.out = append(m.out, c)
	}
}

// An event is the launch or the end of a node, or the end of a period.
type event struct {
	at   policy.Time
	kind int
	node int
}

// The kinds of events, in their order at one instant: a lifetime of length 0 starts before it ends.
const (
	eventPeriod = iota
	eventStart
	eventStop
)

// committed meters the nodes that commitments may cover. Coverage depends on all nodes that run at
// a time, so their lifetimes are processed together.
func (m *meter) committed(cover *billing.Coverage) {
	u := m.u
	account := billing.NewAccount(cover, u.Markets, u.Charges, u.Window)
	var running []int
	for _, e := range m.events(cover) {
		switch e.kind {
		case eventStart:
			account.Start(e.node, u.Nodes[e.node].Market, e.at)
			running = append(running, e.node)
		case eventStop:
			bill, _ := account.Stop(e.node, u.Nodes[e.node].Market, e.at)
			running = slices.DeleteFunc(running, func(i int) bool { return i == e.node })
			m.add(e.node, periodOf(max(u.Window.From, u.Nodes[e.node].From, e.at-1), m.every), bill)
		case eventPeriod:
			for _, i := range running {
				if u.Nodes[i].To == e.at {
					continue // the stop event that follows charges the node in full
				}
				m.add(i, billing.Span{From: e.at.Add(-m.every), To: e.at}, account.Owes(i, u.Nodes[i].Market, e.at))
			}
		}
	}
}

// events returns the events of the nodes that commitments may cover, in order.
func (m *meter) events(cover *billing.Coverage) []event {
	var all []event
	for i := range m.u.Nodes {
		if x := &m.u.Nodes[i]; cover.Covers(x.Market) {
			all = append(all, event{x.From, eventStart, i}, event{x.To, eventStop, i})
		}
	}
	window := m.u.Window
	for p := periodOf(window.From, m.every); p.To < window.To; p = periodOf(p.To, m.every) {
		all = append(all, event{p.To, eventPeriod, 0})
	}
	slices.SortStableFunc(all, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind), cmp.Compare(a.node, b.node))
	})
	return all
}
