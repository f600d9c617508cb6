package timeline

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// A life is the observed lifetime of a node.
type life struct {
	market   int32
	from, to policy.Time
	bid      policy.Money
	fees     policy.NodeFees // per hour
}

// bill computes the cost of the observed nodes.
func (l *loader) bill() {
	t := l.t
	window := billing.Span{From: t.from, To: t.to}
	for i := range l.lives {
		if l.lives[i].to == 0 {
			l.lives[i].to = t.to
		}
	}
	curves := make([]*billing.Curve, len(t.markets))
	for i := range curves {
		curves[i] = l.curve(i)
	}
	amount := func(x *life, to policy.Time) policy.Money {
		span := billing.Span{From: x.from, To: to}
		fees := billing.Fees(x.fees, span, window).Total()
		switch {
		case curves[x.market] == nil:
			return fees // it never had a price
		case x.bid > 0:
			return curves[x.market].BillAtMost(span, window, x.bid) + fees
		}
		return curves[x.market].Bill(span, window) + fees
	}
	for at := t.from; ; at = min(at+costStep, t.to) {
		var c Costs
		for i := range l.lives {
			if x := &l.lives[i]; x.from < at {
				c.Bill += amount(x, min(x.to, at))
			}
		}
		t.addCosts(at, c)
		if at == t.to {
			return
		}
	}
}

// curve returns the price of a node of market k over the recording, nil if the market never had a
// price.
func (l *loader) curve(k int) *billing.Curve {
	h, known := &l.t.prices[k], false
	prices := slices.Clone(h.what)
	for i := range prices {
		if prices[i] != policy.NoPrice {
			prices[i], known = max(prices[i], l.reserve[k]), true
		}
	}
	if !known {
		return nil
	}
	return billing.NewCurve(h.at, prices)
}
