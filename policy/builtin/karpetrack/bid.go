package karpetrack

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// What moves the percentile of a bid: for the time of shaken after a node managed by Spotter was
// lost in a market it is one higher, and from the second loss that still counts the value of a node
// is bid. Where nodes managed by Spotter ran for three days within the last week without a loss it
// is one lower.
const (
	shaken   = 24 * time.Hour
	calm     = 7 * 24 * time.Hour
	proven   = 72.0 // node-hours
	lossesOf = 1.5  // decayed count of losses above which nothing is risked
)

// levels are the percentiles that are published; the level above the last is
// the value of a node.
var levels = [...]int{20, 50, 80}

// level returns the index of the percentile at which m is entered: that of the
// configuration, moved by what our own nodes met there.
func (c *Config) level(now policy.Time, m *policy.Market) int {
	at := 0
	for at < len(levels)-1 && levels[at] < c.Percentile {
		at++
	}
	x := &m.Experience
	switch since := now.Sub(x.Reclaimed); {
	case x.Reclaimed != 0 && since < shaken && x.Reclaims >= lossesOf:
		return len(levels)
	case x.Reclaimed != 0 && since < shaken:
		return at + 1
	case (x.Reclaimed == 0 || since >= calm) && x.NodeHours >= proven:
		return max(0, at-1)
	}
	return at
}

// bid returns the most to pay in m, an auction. It is on the grid of bids and at
// least what is charged now, which is the least that is accepted; above what a
// node costs on demand nothing is bid, nor above the user's own limit.
func (c *Config) bid(now policy.Time, m *policy.Market) policy.Money {
	value := max(m.OnDemand, m.Charge())
	base := value
	if at := c.level(now, m); at < len(levels) && m.BidPercentiles[at] > 0 {
		base = max(m.BidPercentiles[at], m.Charge())
		base += base.Times(c.BidOver)
	}
	most := policy.Bid(value)
	if c.MaxPrice > 0 {
		// The grid is rounded down here: up would pass the limit.
		most = min(most, max(c.MaxPrice/policy.BidStep*policy.BidStep, policy.Bid(m.Charge())))
	}
	return min(policy.Bid(base), most)
}

// bids writes the bids of the plan's launches and steers.
func (e *Policy) bids(s *policy.Snapshot, plan *policy.Plan) {
	for i := range plan.Launches {
		if m := &s.Markets[plan.Launches[i].Markets[0]]; m.Auction() {
			plan.Launches[i].Bid = e.cfg.bid(s.Now, m)
		}
	}
	for i := range plan.Steers {
		st := &plan.Steers[i]
		st.Bid = 0
		for _, id := range s.Pools[st.Pool].Markets {
			if m := &s.Markets[id]; m.Auction() && m.Offered {
				st.Bid = max(st.Bid, e.cfg.bid(s.Now, m))
			}
		}
	}
}
