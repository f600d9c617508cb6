package billing

import (
	"math/bits"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// An Account meters nodes on demand of which commitments pay a part. That part
// changes whenever one of them comes or goes, so each node has stretches of its
// life in which it costs its price, nothing, or something between.
//
// What a commitment covers at an instant is what Coverage says for the
// nodes that run then. (AWS counts what runs in a clock hour, which may cover a
// little more where nodes come and go within it.) Among the nodes of one market
// those that were launched first are covered first.
type Account struct {
	cover   *Coverage
	curves  []*Curve
	markets []policy.Market
	window  Span
	running [][]*tab // by market, in the order of their launch
}

// A tab is what one node owes so far.
type tab struct {
	node   int
	market policy.MarketID
	from   policy.Time

	// since is up to when it is summed up, and paid what commitments pay of its
	// list price per hour from then on. helped says that they ever paid.
	// last is paid over the last stretch that took any time.
	since      policy.Time
	paid, last policy.Money
	helped     bool

	// high and low are the sum of price × milliseconds × what is left open of the
	// list price, in 128 bits.
	high, low uint64
}

// NewAccount returns the account of no nodes. The markets are those that cover
// is of, and a curve is given for each.
func NewAccount(cover *Coverage, markets []policy.Market, curves []*Curve, window Span) *Account {
	return &Account{cover: cover, curves: curves, markets: markets, window: window, running: make([][]*tab, len(markets))}
}

// Coverage returns what commitments cover of the nodes that run. It is only to be
// read.
func (a *Account) Coverage() *Coverage { return a.cover }

// Covers reports whether nodes of market m are metered here: those that some
// commitment may cover.
func (a *Account) Covers(m policy.MarketID) bool { return a.cover.Covers(m) }

// Start starts to meter a node of market m that was launched at t. The number identifies it in
// Stop.
func (a *Account) Start(node int, m policy.MarketID, t policy.Time) {
	a.running[m] = append(a.running[m], &tab{node: node, market: m, from: t, since: t})
	a.cover.Add(m, 1)
	a.share(t)
}

// Lapse ends commitment i at t.
func (a *Account) Lapse(i int, t policy.Time) {
	a.cover.Lapse(i)
	a.share(t)
}

// Stop ends the life of a node of market m at t. It returns what is billed for it
// in the window, and what commitments spared of that.
//
// A life under MinimumBilled is billed to its minute at the part that was open
// before it ended. A node that was never covered is billed as Curve.Bill does; one
// that was is rounded up to the micro-dollar.
func (a *Account) Stop(node int, m policy.MarketID, t policy.Time) (bill, spared policy.Money) {
	i := slices.IndexFunc(a.running[m], func(x *tab) bool { return x.node == node })
	bill, spared = a.ended(*a.running[m][i], t)
	a.running[m] = slices.Delete(a.running[m], i, i+1)
	a.cover.Add(m, -1)
	a.share(t)
	return bill, spared
}

// Owes returns the cost so far, at t, of a running node of market m, and changes nothing. It never
// falls as t grows: the minimum of one minute that Stop bills is left out, since commitments may
// yet pay for the rest of it.
func (a *Account) Owes(node int, m policy.MarketID, t policy.Time) policy.Money {
	i := slices.IndexFunc(a.running[m], func(x *tab) bool { return x.node == node })
	x := *a.running[m][i]
	a.settle(&x, t)
	return a.billed(&x, a.curves[m].accrued(Span{x.from, t}, a.window))
}

// ended returns what is billed for a life that ends at t, and what commitments
// spared of that.
func (a *Account) ended(x tab, t policy.Time) (bill, spared policy.Money) {
	full := a.curves[x.market].Bill(Span{x.from, t}, a.window)
	a.settle(&x, t)
	x.paid = x.last
	a.settle(&x, max(t, x.from.Add(MinimumBilled)))
	bill = a.billed(&x, full)
	return bill, full - bill
}

// billed returns what is billed of the full amount for what x is summed up to.
func (a *Account) billed(x *tab, full policy.Money) policy.Money {
	if !x.helped {
		return full
	}
	return min(x.owed(a.markets[x.market].OnDemand), full)
}

// share gives each node its part of what commitments pay from t on.
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

// settle sums up what x owes until t.
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

// owed returns the sum in micro-dollars, rounded up.
func (x *tab) owed(list policy.Money) policy.Money {
	quotient, rest := bits.Div64(x.high, x.low, uint64(list)*msPerHour)
	if rest > 0 {
		quotient++
	}
	return policy.Money(quotient)
}
