package policy

import (
	"fmt"
	"slices"
)

// Affords reports whether a node of m costs no more now than PriceMax, the most
// that p may pay for one. In an auction a bid on its grid has to be enough, too.
func (p *Pool) Affords(m *Market) bool {
	most := p.PriceMax
	if most == 0 {
		return true
	}
	if m.Auction() {
		most = most / BidStep * BidStep
	}
	return m.Charge() <= most
}

// Bid returns the bid for a node of p that is worth that much: the least on the
// grid that is at least worth, and never above PriceMax.
func (p *Pool) Bid(worth Money) Money {
	bid := Bid(worth)
	if p.PriceMax > 0 {
		bid = min(bid, p.PriceMax/BidStep*BidStep)
	}
	return bid
}

// WithinPriceMax returns p as it decides where pools have a greatest price of a
// node: what costs more just now is no market of the pool, no bid is above it, and
// a Hold says where nothing is left to buy. Nodes that are there stay, whatever
// their market costs by now.
func WithinPriceMax(p Policy) Policy { return &priced{p} }

type priced struct{ policy Policy }

// Name returns the name of the policy inside: the greatest price is the pool's.
func (x *priced) Name() string { return x.policy.Name() }

// Decide returns the plan of the policy inside on the markets that each pool affords.
func (x *priced) Decide(s *Snapshot, m Memory) (Plan, Memory) {
	if !slices.ContainsFunc(s.Pools, func(p Pool) bool { return p.PriceMax > 0 }) {
		return x.policy.Decide(s, m)
	}
	view := *s
	view.Pools = slices.Clone(s.Pools)
	for i := range view.Pools {
		p := &view.Pools[i]
		p.Markets = slices.DeleteFunc(slices.Clone(p.Markets), func(id MarketID) bool { return !p.Affords(&s.Markets[id]) })
	}
	plan, next := x.policy.Decide(&view, m)
	for i := range plan.Launches {
		if l := &plan.Launches[i]; l.Bid > 0 {
			l.Bid = s.Pools[l.Pool].Bid(l.Bid)
		}
	}
	for i := range plan.Steers {
		if st := &plan.Steers[i]; st.Bid > 0 {
			st.Bid = s.Pools[st.Pool].Bid(st.Bid)
		}
	}
	plan.Holds = slices.Clip(plan.Holds) // what is appended must not reach the policy's own list
	for i := range s.Pools {
		if p := &s.Pools[i]; p.PriceMax > 0 && p.Mode != ModeOff {
			plan.Holds = append(plan.Holds, tooDear(s, p)...)
		}
	}
	return plan, next
}

// tooDear says where all that p could buy costs more than it may pay: of everything,
// or while pods wait of one capacity type.
func tooDear(s *Snapshot, p *Pool) []Hold {
	var cheapest [Reserved + 1]MarketID
	var sold, left [Reserved + 1]bool
	for _, id := range p.Markets {
		m := &s.Markets[id]
		if !m.Offered {
			continue
		}
		c := m.Capacity
		if !sold[c] || m.Charge() < s.Markets[cheapest[c]].Charge() {
			cheapest[c] = id
		}
		sold[c], left[c] = true, left[c] || p.Affords(m)
	}
	nothing := left == [Reserved + 1]bool{}
	if !nothing && !slices.ContainsFunc(s.Pods, func(q Pod) bool { return q.Phase == PodPending && !q.Gated }) {
		return nil
	}
	var holds []Hold
	for c := range sold {
		if sold[c] && !left[c] {
			m := &s.Markets[cheapest[c]]
			holds = append(holds, Hold{Pool: p.ID, Node: None, Why: Why{Reason: ReasonConfigured, Text: fmt.Sprintf(
				"no %s node is bought while all cost more than maxPrice, %s an hour: the cheapest costs %s in %s; pods that need one wait",
				CapacityType(c), p.PriceMax.Short(), m.Charge().Short(), m.Name)}})
		}
	}
	return holds
}
