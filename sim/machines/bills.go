package machines

import (
	"fmt"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/sim/engine"
)

// Bills computes the charges for nodes.
type Bills struct {
	*Machines

	account *billing.Account // account of nodes that commitments may cover; nil without commitments

	// credits are the CPU credits by node. They are valid only for nodes of a burstable type.
	credits []billing.CreditMeter

	lives []lifetime // only recorded if checks are on
}

// init starts the accounting of commitments. Without commitments, it does nothing.
func (bs *Bills) init() {
	w := bs.Scenario
	if len(w.Commitments) == 0 {
		return
	}
	cover := billing.NewCoverage(w.Types, w.Zones, w.Markets, w.Commitments)
	bs.account = billing.NewAccount(cover, w.Markets, bs.Prepared.Market.Charges(), bs.Window)
	for i := range w.Commitments {
		c := &w.Commitments[i]
		if c.Fee == policy.NoPrice {
			bs.Result.CommitmentFee = policy.NoPrice
			return
		}
		life := bs.Window
		if c.Until > 0 {
			life.To = max(life.From, min(life.To, c.Until))
		}
		bs.Result.CommitmentFee += billing.Flat(c.Fee, life, bs.Window)
	}
}

// Start plans the ends of commitments.
func (bs *Bills) Start() {
	for i := range bs.Scenario.Commitments {
		if until := bs.Scenario.Commitments[i].Until; until > 0 {
			bs.Clock.Add(max(until, bs.Clock.Now), engine.CommitmentEnds, int32(i), 0, 0)
		}
	}
}

// committed reports whether nodes of market m are billed by the account.
func (bs *Bills) committed(m policy.MarketID) bool { return bs.account != nil && bs.account.Covers(m) }

// burstable returns the type of a node if it has CPU credits, or nil.
func (bs *Bills) burstable(id policy.NodeID) *policy.InstanceType {
	m := bs.Nodes.All[id].Market
	if m == policy.None {
		return nil
	}
	if t := &bs.Scenario.Types[bs.Scenario.Markets[m].Type]; t.Credits.Baseline > 0 {
		return t
	}
	return nil
}

// use records that d more pods of a template run on a node, or fewer if d is negative.
func (bs *Bills) use(id policy.NodeID, t policy.TemplateID, d int64) {
	if bs.burstable(id) != nil {
		bs.credits[id].Use(bs.Clock.Now, d*bs.Scenario.Templates[t].CPUUse)
	}
}

// begin starts the bill of a node that is launched now.
func (bs *Bills) begin(id policy.NodeID) {
	if t := bs.burstable(id); t != nil {
		for len(bs.credits) <= int(id) {
			bs.credits = append(bs.credits, billing.CreditMeter{})
		}
		bs.credits[id] = billing.NewCreditMeter(t, bs.Clock.Now, bs.Window)
	}
	if m := bs.Nodes.All[id].Market; bs.committed(m) {
		bs.account.Start(int(id), m, bs.Clock.Now)
	}
}

// stop ends the bill of a node at t and returns it.
func (bs *Bills) stop(id policy.NodeID, t policy.Time) policy.Money {
	bill, spared := bs.account.Stop(int(id), bs.Nodes.All[id].Market, t)
	bs.Result.Spared += spared
	return bill
}

// fees returns the fees of a running node up to t. The node's debt of CPU credits, which it may
// still earn back, is left out.
func (bs *Bills) fees(id policy.NodeID, t policy.Time) policy.NodeFees {
	n := &bs.Nodes.All[id]
	fees := billing.Fees(bs.Scenario.Pools[n.Pool].Fees, billing.Span{From: n.Launched, To: t}, bs.Window)
	if bs.burstable(id) != nil {
		fees.Credits = bs.credits[id].Charged(t)
	}
	return fees
}

// charge bills a node that stops at t.
func (bs *Bills) charge(id policy.NodeID, t policy.Time) {
	n, x := &bs.Nodes.All[id], &bs.of[id]
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
		bs.Result.Slowed += slowed
	}
	bs.Result.Fees.Fee += fees.Fee
	bs.Result.Fees.Volumes += fees.Volumes
	bs.Result.Fees.Credits += fees.Credits
	amount += fees.Total()
	if fees.Credits > 0 {
		bs.Log.Add(t, engine.RecordCredits, n.Name, "", int64(fees.Credits))
	}
	bs.Result.Bill += amount
	if bs.Nodes.State[id].Spot {
		bs.Result.SpotBill += amount
	} else {
		bs.Result.OnDemandBill += amount
		bs.Result.OnDemandFees += fees.Total()
	}
	if bs.Check {
		bs.lives = append(bs.lives, lifetime{n.Market, n.Pool, n.Launched, t, n.Bid, amount - fees.Total(), fees, x.born})
	}
	bs.Log.Add(t, engine.RecordBill, n.Name, "", int64(amount))
}

// Owed returns the bill of a running node, fees included, as if it stopped at t, without its debt
// of CPU credits. For a node that commitments may cover, it returns the cost so far.
func (bs *Bills) Owed(id policy.NodeID, t policy.Time) policy.Money {
	return bs.price(id, t) + bs.fees(id, t).Total()
}

// price returns the part of Owed other than fees.
func (bs *Bills) price(id policy.NodeID, t policy.Time) policy.Money {
	n := &bs.Nodes.All[id]
	life := billing.Span{From: n.Launched, To: t}
	switch {
	case bs.committed(n.Market):
		return bs.account.Owes(int(id), n.Market, t)
	case n.Bid > 0:
		// A node never pays more than its bid. This bound matters after the price has exceeded the
		// bid, until the node ends, and while nothing is offered and the last price applies.
		return bs.Prepared.Market.Charges()[n.Market].BillAtMost(life, bs.Window, n.Bid)
	}
	return bs.Prepared.Market.Charges()[n.Market].Bill(life, bs.Window)
}

// Unused returns the unused part of commitment i, as [billing.Coverage.Unused] does.
func (bs *Bills) Unused(i int) int64 { return bs.account.Coverage().Unused(i) }

// OwedByAll returns the sum of Owed at t over the running nodes.
func (bs *Bills) OwedByAll(t policy.Time) (sum policy.Money) {
	for i := range bs.Nodes.All {
		if id := policy.NodeID(i); bs.Runs(id) {
			sum += bs.Owed(id, t)
		}
	}
	return sum
}

// Settle bills the nodes that run at t, as if they stopped then, and adds a warning if nodes were
// slowed down.
func (bs *Bills) Settle(t policy.Time) {
	for i := range bs.Nodes.All {
		if id := policy.NodeID(i); bs.Runs(id) {
			bs.charge(id, t)
		}
	}
	if bs.Result.Slowed > 0 {
		bs.Warn(fmt.Sprintf("nodes without CPU credits were slowed down to their baseline for %.1f node-hours",
			bs.Result.Slowed.Hours()))
	}
}
