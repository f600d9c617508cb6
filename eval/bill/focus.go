package bill

import (
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// A lineKind is what a row of FOCUS is about.
type lineKind uint8

// The kinds of rows, in the order within a period: the part of a node that is charged, and the part
// that a commitment covers; the node's fee and its volumes; a commitment's fee, and the part of the
// fee that covers nothing.
const (
	lineNode lineKind = iota
	lineCovered
	lineFee
	lineVolumes
	lineCredits
	linePurchase
	lineUnused
)

// A Line is one row of FOCUS.
type Line struct {
	u          *Usage
	kind       lineKind
	period     billing.Span
	node       *Node              // nil for those of a commitment
	commitment *policy.Commitment // nil where none has a part in it

	// billed is invoiced; effective has the fees of commitments in what they cover, and
	// not in their purchase.
	billed, effective policy.Money

	// quantity is in billionths of an hour, units in those of what the commitment counts.
	quantity, units int64
}

// Billed is what is invoiced.
func (l *Line) Billed() policy.Money { return l.billed }

// market is that of the node.
func (l *Line) market() *policy.Market { return &l.u.Markets[l.node.Market] }

// unitPrice is the public price of an hour: of a node that on demand, whatever it was
// bought as, as AWS has it in its own export.
func (l *Line) unitPrice() policy.Money {
	switch l.kind {
	case lineFee:
		return l.node.Fees.Fee
	case lineVolumes:
		return l.node.Fees.Volumes
	case lineCredits:
		return l.u.Types[l.market().Type].Credits.Surplus
	case linePurchase, lineUnused:
		return l.commitment.Fee
	}
	return l.market().OnDemand
}

// list is what it costs at that price.
func (l *Line) list() policy.Money { return part(l.unitPrice(), l.quantity, nanoHours) }

// Focus returns the rows of u with the columns of FOCUS, for charges of periods of that
// length. The billed costs of nodes add up to the bill, and with the purchases to bill
// and fees; the effective ones add up to the same.
func (u *Usage) Focus(every time.Duration) ([]Line, error) {
	if err := u.checkFocus(); err != nil {
		return nil, err
	}
	charges, err := u.Meter(every)
	if err != nil {
		return nil, err
	}
	f := focus{u: u, payers: make([]int, len(u.Markets))}
	for m := range u.Markets {
		if f.payers[m], err = u.payer(policy.MarketID(m)); err != nil && u.bought(policy.MarketID(m)) {
			return nil, err
		}
	}
	for p := periodOf(u.Window.From, every); p.From < u.Window.To; p = periodOf(p.To, every) {
		n, _ := slices.BinarySearchFunc(charges, p.To, func(c Charge, t policy.Time) int { return int(c.Period.From - t) })
		f.period(p, charges[:n])
		charges = charges[n:]
	}
	return f.lines, nil
}

// checkFocus reports what no row could do without, and warns of what is modelled.
func (u *Usage) checkFocus() error {
	if u.About.Account == "" {
		return fmt.Errorf("%w: BillingAccountId must not be null, and a recording does not say which account is billed",
			ErrUnknown)
	}
	modelled := false
	for i := range u.Nodes {
		m := &u.Markets[u.Nodes[i].Market]
		if m.OnDemand <= 0 {
			return fmt.Errorf("%w: ListUnitPrice must not be null, and the price on demand of %s is not known",
				ErrUnknown, m.Name)
		}
		modelled = modelled || m.OnDemandModelled
	}
	if modelled {
		u.Warnings = append(u.Warnings,
			"prices on demand are not published for all of its markets: ListUnitPrice and ListCost of the others are modelled")
	}
	for i := range u.Commitments {
		if c := &u.Commitments[i]; c.Fee == policy.NoPrice {
			return fmt.Errorf("%w: EffectiveCost has the fees of commitments in it, and the fee of %s is not stated",
				ErrUnknown, c.Name)
		}
	}
	return nil
}

// bought reports whether a node of a market ran.
func (u *Usage) bought(m policy.MarketID) bool {
	return slices.ContainsFunc(u.Nodes, func(n Node) bool { return n.Market == m })
}

// A focus makes lines of charges.
type focus struct {
	u      *Usage
	payers []int // by market
	lines  []Line
}

// period adds the lines of one period.
func (f *focus) period(p billing.Span, charges []Charge) {
	u := f.u
	shares := make([]share, len(u.Commitments))
	for i := range u.Commitments {
		c := &u.Commitments[i]
		s := &shares[i]
		s.fee, s.length = u.fee(c, p), p.Clip(u.Window).Length()
		s.all = int64(part(policy.Money(hours(s.length)), c.Amount, scaleOf(c)))
	}
	for i := range charges {
		f.node(p, &charges[i], shares)
	}
	for i := range u.Commitments {
		c, s := &u.Commitments[i], &shares[i]
		f.lines = append(f.lines, Line{u: u, kind: linePurchase, period: p, commitment: c, billed: s.fee,
			quantity: hours(s.length), units: s.all})
		rest := s.all - s.used
		if quantity := int64(part(policy.Money(hours(s.length)), rest, s.all)); quantity > 0 {
			f.lines = append(f.lines, Line{u: u, kind: lineUnused, period: p, commitment: c, effective: s.fee - s.given,
				quantity: quantity, units: rest})
		}
	}
}

// node adds the lines of one node in a period: what must be paid, what of it a commitment
// pays for, and its fees.
func (f *focus) node(p billing.Span, c *Charge, shares []share) {
	u, node, all := f.u, &f.u.Nodes[c.Node], hours(c.Time)
	open := all
	if c.Spared > 0 {
		open = int64(part(policy.Money(all), int64(c.Billed), int64(c.Billed+c.Spared)))
	}
	if c.Billed > 0 {
		open = max(open, 1) // what is billed is billed for something
	}
	if open > 0 {
		f.lines = append(f.lines, Line{u: u, kind: lineNode, period: p, node: node, billed: c.Billed, effective: c.Billed,
			quantity: open})
	}
	if covered := all - open; covered > 0 {
		k := f.payers[node.Market]
		used := u.used(&u.Commitments[k], c)
		f.lines = append(f.lines, Line{u: u, kind: lineCovered, period: p, node: node, commitment: &u.Commitments[k],
			effective: shares[k].take(used), quantity: covered, units: used})
	}
	surplus := u.Types[u.Markets[node.Market].Type].Credits.Surplus
	for _, x := range [...]struct {
		kind     lineKind
		billed   policy.Money
		quantity int64
	}{{lineFee, c.Fees.Fee, all}, {lineVolumes, c.Fees.Volumes, all}, {lineCredits, c.Fees.Credits,
		int64(part(c.Fees.Credits, nanoHours, int64(max(1, surplus))))}} {
		if x.billed > 0 {
			f.lines = append(f.lines, Line{u: u, kind: x.kind, period: p, node: node, billed: x.billed, effective: x.billed,
				quantity: x.quantity})
		}
	}
}

// A share divides the fee of a commitment in a period among what it covers, by how much
// that takes of it.
type share struct {
	fee, given policy.Money
	length     time.Duration
	all, used  int64
}

// take returns the part of the fee for another used units of the commitment. All parts together
// never exceed the fee, and are the whole fee once the commitment is fully used.
func (s *share) take(used int64) policy.Money {
	s.used = min(s.used+used, s.all)
	given := part(s.fee, s.used, s.all)
	more := given - s.given
	s.given = given
	return more
}
