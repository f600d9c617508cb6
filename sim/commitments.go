package sim

import (
	"cmp"
	"math/big"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/sim/engine"
)

// bills charge for nodes.
type bills struct {
	*environment
	checker *checker
	nodes   *nodes

	account *billing.Account // of nodes on demand; nil where nothing was paid for in advance

	// credits are by node, and only to be read of those of a burstable type.
	credits []billing.CreditMeter
}

// init begins to meter what commitments may cover. Without commitments
// nothing needs it.
func (bs *bills) init() {
	w := bs.scenario
	if len(w.Commitments) == 0 {
		return
	}
	cover := billing.NewCoverage(w.Types, w.Zones, w.Markets, w.Commitments)
	bs.account = billing.NewAccount(cover, w.Markets, bs.prepared.prices.Charges(), bs.window)
	for i := range w.Commitments {
		c := &w.Commitments[i]
		if c.Fee == policy.NoPrice {
			bs.result.CommitmentFee = policy.NoPrice
			return
		}
		life := bs.window
		if c.Until > 0 {
			life.To = max(life.From, min(life.To, c.Until))
		}
		bs.result.CommitmentFee += billing.Flat(c.Fee, life, bs.window)
	}
}

// plan plans the ends of commitments.
func (bs *bills) plan() {
	for i := range bs.scenario.Commitments {
		if until := bs.scenario.Commitments[i].Until; until > 0 {
			bs.q.Add(max(until, bs.q.Now), engine.CommitmentEnds, int32(i), 0, 0)
		}
	}
}

// committed reports whether nodes of market m are billed by the account.
func (bs *bills) committed(m policy.MarketID) bool { return bs.account != nil && bs.account.Covers(m) }

// burstable returns the type of a node if it has CPU credits, else nil.
func (bs *bills) burstable(id policy.NodeID) *policy.InstanceType {
	m := bs.nodes.all[id].Market
	if m == policy.None {
		return nil
	}
	if t := &bs.scenario.Types[bs.scenario.Markets[m].Type]; t.Credits.Baseline > 0 {
		return t
	}
	return nil
}

// use counts the CPU that d pods of a template use on a node from now on.
func (bs *bills) use(id policy.NodeID, t policy.TemplateID, d int64) {
	if bs.burstable(id) != nil {
		bs.credits[id].Use(bs.q.Now, d*bs.scenario.Templates[t].CPUUse)
	}
}

// start begins the bill of a node that was launched now.
func (bs *bills) start(id policy.NodeID) {
	if t := bs.burstable(id); t != nil {
		for len(bs.credits) <= int(id) {
			bs.credits = append(bs.credits, billing.CreditMeter{})
		}
		bs.credits[id] = billing.NewCreditMeter(t, bs.q.Now, bs.window)
	}
	if m := bs.nodes.all[id].Market; bs.committed(m) {
		bs.account.Start(int(id), m, bs.q.Now)
	}
}

// stop ends the bill of a node at t and returns it.
func (bs *bills) stop(id policy.NodeID, t policy.Time) policy.Money {
	bill, spared := bs.account.Stop(int(id), bs.nodes.all[id].Market, t)
	bs.result.Spared += spared
	return bill
}

// fees returns what a node that runs is charged by t on top of its price. Its debt of CPU
// credits, which it may still earn, is left out.
func (bs *bills) fees(id policy.NodeID, t policy.Time) policy.NodeFees {
	n := &bs.nodes.all[id]
	fees := billing.Fees(bs.scenario.Pools[n.Pool].Fees, billing.Span{From: n.Launched, To: t}, bs.window)
	if bs.burstable(id) != nil {
		fees.Credits = bs.credits[id].Charged(t)
	}
	return fees
}

// charge charges a node that stops at t.
func (bs *bills) charge(id policy.NodeID, t policy.Time) {
	n, x := &bs.nodes.all[id], &bs.nodes.state[id]
	x.billed = true
	var amount policy.Money
	if bs.committed(n.Market) {
		amount = bs.stop(id, t)
	} else {
		amount = bs.price(id, t)
	}
	fees := bs.fees(id, t)
	if bs.burstable(id) != nil {
		var slowed time.Duration
		fees.Credits, slowed = bs.credits[id].End(t)
		bs.result.Slowed += slowed
	}
	bs.result.Fees.Fee += fees.Fee
	bs.result.Fees.Volumes += fees.Volumes
	bs.result.Fees.Credits += fees.Credits
	amount += fees.Total()
	if fees.Credits > 0 {
		bs.log.Add(t, engine.RecordCredits, n.Name, "", int64(fees.Credits))
	}
	bs.result.Bill += amount
	if x.spot {
		bs.result.SpotBill += amount
	} else {
		bs.result.OnDemandBill += amount
		bs.result.OnDemandFees += fees.Total()
	}
	if bs.cfg.Check {
		bs.checker.lives = append(bs.checker.lives, lifetime{n.Market, n.Pool, n.Launched, t, n.Bid, amount - fees.Total(), fees, x.born})
	}
	bs.log.Add(t, engine.RecordBill, n.Name, "", int64(amount))
}

// recountCommitted counts again, in the plain way, what each node is billed of
// which commitments may pay a part, by its place in the order of launches: it
// cuts time wherever one of them comes or goes, and shares out anew what is
// covered in each piece.
func (ch *checker) recountCommitted() map[int]policy.Money {
	if ch.bills.account == nil {
		return nil
	}
	var lives []lifetime
	var cuts []policy.Time
	for _, l := range ch.lives {
		if ch.bills.committed(l.market) {
			lives, cuts = append(lives, l), append(cuts, l.from, l.to)
		}
	}
	slices.SortFunc(lives, func(a, b lifetime) int { return cmp.Compare(a.born, b.born) })
	for i := range ch.scenario.Commitments {
		cuts = append(cuts, ch.scenario.Commitments[i].Until)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	owed, last := make([]*big.Int, len(lives)), make([]policy.Money, len(lives))
	for i := range owed {
		owed[i] = new(big.Int)
	}
	for k := 0; k+1 < len(cuts); k++ {
		for i, open := range ch.openParts(lives, cuts[k]) {
			if open >= 0 {
				last[i] = ch.scenario.Markets[lives[i].market].OnDemand - open
				ch.owe(owed[i], &lives[i], billing.Span{From: cuts[k], To: cuts[k+1]}, open)
			}
		}
	}
	out := make(map[int]policy.Money)
	for i := range lives {
		l, list := &lives[i], ch.scenario.Markets[lives[i].market].OnDemand
		if least := l.from.Add(billing.MinimumBilled); least > l.to {
			ch.owe(owed[i], l, billing.Span{From: l.to, To: least}, list-last[i])
		}
		unit := new(big.Int).Mul(big.NewInt(int64(list)), big.NewInt(3_600_000))
		up := new(big.Int).Add(owed[i], new(big.Int).Sub(unit, big.NewInt(1)))
		full := ch.prepared.prices.Charges()[l.market].Bill(billing.Span{From: l.from, To: l.to}, ch.window)
		out[l.born] = min(policy.Money(up.Div(up, unit).Int64()), full)
	}
	return out
}

// openParts returns what is left open of the list price of each life at t, −1
// for those that do not run then.
func (ch *checker) openParts(lives []lifetime, t policy.Time) []policy.Money {
	w := ch.scenario
	cover := billing.NewCoverage(w.Types, w.Zones, w.Markets, w.Commitments)
	for i := range w.Commitments {
		if until := w.Commitments[i].Until; until > 0 && until <= t {
			cover.Lapse(i)
		}
	}
	for i := range lives {
		if lives[i].from <= t && t < lives[i].to {
			cover.Add(lives[i].market, 1)
		}
	}
	left, open := make([]policy.Money, len(w.Markets)), make([]policy.Money, len(lives))
	for m := range left {
		left[m] = cover.Paid(policy.MarketID(m))
	}
	for i := range lives {
		open[i] = -1
		if m := lives[i].market; lives[i].from <= t && t < lives[i].to {
			paid := min(left[m], w.Markets[m].OnDemand)
			left[m] -= paid
			open[i] = w.Markets[m].OnDemand - paid
		}
	}
	return open
}

// owe adds price × milliseconds × open to sum, millisecond by price segment.
func (ch *checker) owe(sum *big.Int, l *lifetime, s billing.Span, open policy.Money) {
	in, c := s.Clip(ch.window), ch.prepared.prices.Listed(l.market)
	for k := range c.At {
		from, to := max(in.From, c.At[k]), in.To
		if k == 0 {
			from = in.From
		}
		if k+1 < len(c.At) {
			to = min(to, c.At[k+1])
		}
		if to > from {
			x := big.NewInt(int64(c.Price[k]) * int64(to-from))
			sum.Add(sum, x.Mul(x, big.NewInt(int64(open))))
		}
	}
}
