package bill

import (
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// A lineKind is the kind of charge that a row of FOCUS describes.
type lineKind uint8

// The kinds of rows, in their order within a period: the paid and the covered part of a node's
// price; the node's fee, volumes and surplus CPU credits; the fee of a commitment, and the part of
// that fee that covers nothing.
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
	node       *Node              // nil for a row about a commitment
	commitment *policy.Commitment // nil if no commitment is involved

	// billed is the invoiced cost. effective spreads the fee of a commitment over the usage that it
	// covers, and is 0 for its purchase.
	billed, effective policy.Money

	// quantity is in billionths of an hour, units in billionths of an hour times the unit of the
	// commitment.
	quantity, units int64
}

// Billed returns the invoiced cost.
func (l *Line) Billed() policy.Money { return l.billed }

// market returns the market of the row's node.
func (l *Line) market() *policy.Market { return &l.u.Markets[l.node.Market] }

// unitPrice returns the public price per hour. For a node it is the on-demand price, whatever its
// capacity type, as in the export of AWS.
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

// list returns the cost of the quantity at the public price.
func (l *Line) list() policy.Money {
	return policy.Money(mulDiv(int64(l.unitPrice()), l.quantity, nanoHours))
}

// Focus returns the rows of u with the columns of FOCUS, for periods of length every. The billed
// costs of the rows of nodes sum to the bill; with the purchases they sum to the bill and the fees
// of commitments. So do the effective costs of all rows.
func (u *Usage) Focus(every time.Duration) ([]Line, error) {
	if err := u.checkFocus(); err != nil {
		return nil, err
	}
	charges, err := u.Meter(every)
	if err != nil {
		return nil, err
	}
	f := focus{u: u, commitmentOf: make([]int, len(u.Markets))}
	for m := range u.Markets {
		if f.commitmentOf[m], err = u.commitmentOf(policy.MarketID(m)); err != nil && u.bought(policy.MarketID(m)) {
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

// checkFocus returns an error if a column that must not be null is unknown, and adds a warning if
// on-demand prices are modelled.
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

// bought reports whether a node of market m ran.
func (u *Usage) bought(m policy.MarketID) bool {
	return slices.ContainsFunc(u.Nodes, func(n Node) bool { return n.Market == m })
}

// A focus builds the rows of a bill.
type focus struct {
	u            *Usage
	commitmentOf []int // by market: index of the commitment that covers it, -1 for none
	lines        []Line
}

// period adds the rows of one period.
func (f *focus) period(p billing.Span, charges []Charge) {
	u := f.u
	shares := make([]share, len(u.Commitments))
	for i := range u.Commitments {
		c := &u.Commitments[i]
		s := &shares[i]
		s.fee, s.length = u.fee(c, p), p.Clip(u.Window).Length()
		s.all = mulDiv(nanoHoursOf(s.length), c.Amount, scaleOf(c))
	}
	for i := range charges {
		f.node(p, &charges[i], shares)
	}
	for i := range u.Commitments {
		c, s := &u.Commitments[i], &shares[i]
		f.lines = append(f.lines, Line{u: u, kind: linePurchase, period: p, commitment: c, billed: s.fee,
			quantity: nanoHoursOf(s.length), units: s.all})
		rest := s.all - s.used
		if quantity := mulDiv(nanoHoursOf(s.length), rest, s.all); quantity > 0 {
			f.lines = append(f.lines, Line{u: u, kind: lineUnused, period: p, commitment: c, effective: s.fee - s.given,
				quantity: quantity, units: rest})
		}
	}
}

// node adds the rows of one node in a period: the part that must be paid, the part that a
// commitment covers, and the node's fees.
func (f *focus) node(p billing.Span, c *Charge, shares []share) {
	u, node, all := f.u, &f.u.Nodes[c.Node], nanoHoursOf(c.Time)
	open := all
	if c.Spared > 0 {
		open = mulDiv(all, int64(c.Billed), int64(c.Billed+c.Spared))
	}
	if c.Billed > 0 {
		open = max(open, 1) // a billed amount needs a positive quantity
	}
	if open > 0 {
		f.lines = append(f.lines, Line{u: u, kind: lineNode, period: p, node: node, billed: c.Billed, effective: c.Billed,
			quantity: open})
	}
	if covered := all - open; covered > 0 {
		k := f.commitmentOf[node.Market]
		used := u.unitsUsed(&u.Commitments[k], c)
		f.lines = append(f.lines, Line{u: u, kind: lineCovered, period: p, node: node, commitment: &u.Commitments[k],
			effective: shares[k].take(used), quantity: covered, units: used})
	}
	surplus := u.Types[u.Markets[node.Market].Type].Credits.Surplus
	for _, x := range [...]struct {
		kind     lineKind
		billed   policy.Money
		quantity int64
	}{{lineFee, c.Fees.Fee, all}, {lineVolumes, c.Fees.Volumes, all}, {lineCredits, c.Fees.Credits,
		mulDiv(int64(c.Fees.Credits), nanoHours, int64(max(1, surplus)))}} {
		if x.billed > 0 {
			f.lines = append(f.lines, Line{u: u, kind: x.kind, period: p, node: node, billed: x.billed, effective: x.billed,
				quantity: x.quantity})
		}
	}
}

// A share divides the fee of a commitment in a period among the usage that it covers, in proportion
// to how much of the commitment each uses.
type share struct {
	fee, given policy.Money
	length     time.Duration
	all, used  int64
}

// take returns the part of the fee for another used units of the commitment. All parts together
// never exceed the fee, and are the whole fee once the commitment is fully used.
func (s *share) take(used int64) policy.Money {
	s.used = min(s.used+used, s.all)
	given := policy.Money(mulDiv(int64(s.fee), s.used, s.all))
	more := given - s.given
	s.given = given
	return more
}
