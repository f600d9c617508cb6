package karpetrack

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// The thresholds that move the percentile of a bid. For the duration of shaken after a node managed
// by Spotter was lost in a market, the percentile is one level higher; from the second loss that
// still counts, the bid is the value of a node. It is one level lower if nodes managed by Spotter
// ran in the market for at least proven node-hours and none was lost within calm.
const (
	shaken   = 24 * time.Hour
	calm     = 7 * 24 * time.Hour
	proven   = 72.0 // node-hours
	lossesOf = 1.5  // decayed count of losses from which the value of a node is bid
)

// levels are the published percentiles. The level above the last one is the value of a node.
var levels = [...]int{20, 50, 80}

// level returns the index in levels at which to bid in m: the configured percentile, adjusted for
// the reclaims and node-hours of Spotter's own nodes there. The index len(levels) means the value
// of a node.
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

// bid returns the bid in m, an auction. It is on the bid grid, and at least the current charge,
// which is the lowest bid that is accepted. Above that it exceeds neither the on-demand price nor
// the configured MaxPrice.
func (c *Config) bid(now policy.Time, m *policy.Market) policy.Money {
	value := max(m.OnDemand, m.Charge())
	base := value
	if at := c.level(now, m); at < len(levels) && m.BidPercentiles[at] > 0 {
		base = max(m.BidPercentiles[at], m.Charge())
		base += base.Times(c.BidOver)
	}
	most := policy.Bid(value)
	if c.MaxPrice > 0 {
		// Rounded down to the grid: rounding up would exceed the limit.
		most = min(most, max(c.MaxPrice/policy.BidStep*policy.BidStep, policy.Bid(m.Charge())))
	}
	return min(policy.Bid(base), most)
}

// bids sets the bids of the plan's launches and steers.
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
