package billing

import (
	"math/bits"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// An Account meters on-demand nodes whose cost is partly paid by commitments. The part that
// commitments pay changes whenever such a node starts or stops, so a node costs its full price,
// nothing, or something between during different intervals of its life.
//
// Coverage determines what commitments pay at an instant, for the nodes that run at that instant.
// (AWS counts what runs in a clock hour, which may cover a little more where nodes start and stop
// within it.) Among the nodes of one market, those that were launched first are covered first.
type Account struct {
	cover   *Coverage
	curves  []*Curve
	markets []policy.Market
	window  Span
	running [][]*tab // by market, in launch order
}

// A tab is the account of one node.
type tab struct {
	node   int
	market policy.MarketID
	from   policy.Time

	// since is the time up to which the cost is summed. paid is the part of the list price per hour
	// that commitments pay from then on, and last is the part that they paid over the last interval
	// of positive length. helped reports whether they ever paid.
	since      policy.Time
	paid, last policy.Money
	helped     bool

	// high and low are the 128-bit sum of price × milliseconds × (list price − paid).
	high, low uint64
}

// NewAccount returns an account without nodes. The markets must be those of cover, with one curve
// for each market.
func NewAccount(cover *Coverage, markets []policy.Market, curves []*Curve, window Span) *Account {
	return &Account{cover: cover, curves: curves, markets: markets, window: window, running: make([][]*tab, len(markets))}
}

// Coverage returns what commitments cover of the running nodes. Callers must not change it.
func (a *Account) Coverage() *Coverage { return a.cover }

// Covers reports whether some commitment may cover nodes of market m; only such nodes are metered
// here.
func (a *Account) Covers(m policy.MarketID) bool { return a.cover.Covers(m) }

// Start starts metering a node of market m that was launched at t. The number identifies the node
// in Stop and Owes.
func (a *Account) Start(node int, m policy.MarketID, t policy.Time) {
	a.running[m] = append(a.running[m], &tab{node: node, market: m, from: t, since: t})
	a.cover.Add(m, 1)
	a.share(t)
}

// Lapse ends the commitment with index i at t.
func (a *Account) Lapse(i int, t policy.Time) {
	a.cover.Lapse(i)
	a.share(t)
}

// Stop ends the life of a node of market m at t. It returns the amount billed for the node in the
// window, and the amount that commitments saved.
//
// A life shorter than MinimumBilled is billed as MinimumBilled, at the rate that was not covered
// before the life ended. A node that was never covered is billed as by Curve.Bill. The bill of a
// node that was covered is rounded up to a micro-dollar.
func (a *Account) Stop(node int, m policy.MarketID, t policy.Time) (bill, spared policy.Money) {
	i := slices.IndexFunc(a.running[m], func(x *tab) bool { return x.node == node })
	bill, spared = a.ended(*a.running[m][i], t)
	a.running[m] = slices.Delete(a.running[m], i, i+1)
	a.cover.Add(m, -1)
	a.share(t)
	return bill, spared
}

// Owes returns the cost at t of a running node of market m since its launch, without changing the
// account. It never falls as t grows: it leaves out the minimum of one minute that Stop bills,
// since commitments may still pay for the rest of that minute.
func (a *Account) Owes(node int, m policy.MarketID, t policy.Time) policy.Money {
	i := slices.IndexFunc(a.running[m], func(x *tab) bool { return x.node == node })
	x := *a.running[m][i]
	a.settle(&x, t)
	return a.billed(&x, a.curves[m].accrued(Span{x.from, t}, a.window))
}

// ended returns the bill for a life that ends at t, and the amount that commitments saved.
func (a *Account) ended(x tab, t policy.Time) (bill, spared policy.Money) {
	full := a.curves[x.market].Bill(Span{x.from, t}, a.window)
	a.settle(&x, t)
	x.paid = x.last
	a.settle(&x, max(t, x.from.Add(MinimumBilled)))
	bill = a.billed(&x, full)
	return bill, full - bill
}

// billed returns the part of full, the bill without commitments, that x is billed.
func (a *Account) billed(x *tab, full policy.Money) policy.Money {
	if !x.helped {
		return full
	}
	return min(x.owed(a.markets[x.market].OnDemand), full)
}

// share distributes what commitments pay from t on among the running nodes.
func (a *Account) share(t policy.Time) {
	for m := range a.running {
		if len(a.running[m]) == 0 {
			continue
		}
		left, list := a.cover.Paid(policy.MarketID(m)), a.markets[m].OnDemand
		for _, x := range a.running[m] {
			paid := min(left, list)
			left -= paid
			if paid == x.paid {
				continue
			}
			a.settle(x, t)
			x.paid, x.helped = paid, true
		}
	}
}

// settle adds to x the cost up to t.
func (a *Account) settle(x *tab, t policy.Time) {
	in := Span{x.since, t}.Clip(a.window)
	if t > x.since {
		x.last = x.paid
	}
	x.since = t
	open := a.markets[x.market].OnDemand - x.paid
	if in.To <= in.From || open == 0 {
		return
	}
	c := a.curves[x.market]
	high, low := bits.Mul64(uint64(c.integral(in.To)-c.integral(in.From)), uint64(open))
	var carry uint64
	x.low, carry = bits.Add64(x.low, low, 0)
	x.high, _ = bits.Add64(x.high, high, carry)
}

// owed returns the sum in micro-dollars, rounded up. list is the list price of the node.
func (x *tab) owed(list policy.Money) policy.Money {
	quotient, rest := bits.Div64(x.high, x.low, uint64(list)*msPerHour)
	if rest > 0 {
		quotient++
	}
	return policy.Money(quotient)
}
