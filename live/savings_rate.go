package live

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// A rate is the price history of a market, for the time for which a node may still have to be
// charged: price[i] applies from at[i] on, and the first one also before. The price of a market is
// kept after it was last offered, since nodes that still run are still charged.
type rate struct {
	at    []policy.Time
	price []policy.Money

	onDemand policy.Money // the on-demand price of the same type, 0 if unknown
	turn     uint64       // the last reading that observed the market
}

// known reports whether the price and the on-demand price are known.
func (r *rate) known() bool { return r != nil && len(r.price) > 0 && r.onDemand > 0 }

// follow adds the prices of a snapshot.
func (m *meter) follow(s *policy.Snapshot) {
	if m.rates == nil {
		m.rates = make(map[string]*rate, len(s.Markets))
		for name, price := range m.charged {
			m.rates[name] = &rate{at: []policy.Time{0}, price: []policy.Money{price}}
		}
	}
	back := min(m.owed, s.Now.Add(-gapMax))
	for i := range s.Markets {
		x := &s.Markets[i]
		r := m.rates[x.Name]
		if r == nil {
			r = &rate{}
			m.rates[x.Name] = r
		}
		r.turn = m.turn
		if x.OnDemand > 0 {
			r.onDemand = x.OnDemand
		}
		if x.Offered {
			r.change(min(max(x.PricedAt, m.at), s.Now), x.PricedAt, x.Charge())
		}
		r.forget(back)
	}
}

// change adds a price that is in force from at on. If the market had no known price, the price
// applies from first on.
func (r *rate) change(at, first policy.Time, price policy.Money) {
	k := len(r.at) - 1
	switch {
	case k < 0:
		r.at, r.price = append(r.at, first), append(r.price, price)
	case r.price[k] == price:
	case at <= r.at[k]:
		r.price[k] = price
	default:
		r.at, r.price = append(r.at, at), append(r.price, price)
	}
}

// forget drops the prices that applied only before an instant.
func (r *rate) forget(before policy.Time) {
	k := 0
	for k+1 < len(r.at) && r.at[k+1] <= before {
		k++
	}
	if k > 0 {
		r.at, r.price = append(r.at[:0], r.at[k:]...), append(r.price[:0], r.price[k:]...)
	}
}

// sum returns price × milliseconds over a span. The price per hour is limited to most.
func (r *rate) sum(span billing.Span, most policy.Money) int64 {
	total := int64(0)
	for i, price := range r.price {
		piece := billing.Span{From: r.at[i], To: span.To}
		if i == 0 {
			piece.From = min(piece.From, span.From)
		}
		if i+1 < len(r.at) {
			piece.To = min(piece.To, r.at[i+1])
		}
		piece = piece.Clip(span)
		total += int64(min(price, most)) * int64(piece.To-piece.From)
	}
	return total
}
