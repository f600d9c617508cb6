package portfolio

import (
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A shareChoice is the target Spot share of the pool, and the reason for it. The share is within
// what the pool allows. If neither the manifest nor a parameter states it, it is the target in the
// memory once prices are known.
type shareChoice struct {
	*poolContext
	prices   *prices
	losses   *poolLosses
	reclaims *reclaims
	budget   *lossBudget
	jobs     *jobs
	share    float64

	// why explains the share.
	why policy.Why

	// saving is the fraction of its on-demand price by which the demand is cheaper on Spot.
	saving float64
}

// readShare returns the target Spot share of the pool.
func readShare(p *prices, l *poolLosses, j *jobs, r *reclaims, b *lossBudget) *shareChoice {
	c := &shareChoice{poolContext: p.poolContext, prices: p, losses: l, jobs: j, reclaims: r, budget: b}
	c.choose()
	return c
}

// choose sets the target Spot share of the pool. If neither the manifest nor a parameter states it,
// it is the share at which the demand costs least: its price on Spot and on-demand, the cost of
// losing single nodes, and the cost of losing many at once times the expected rate.
//
// A pool moves to a smaller share at once. It moves to a larger one only if that is cheaper by the
// margin, and has been for long enough, so that it does not oscillate; see payback.
func (c *shareChoice) choose() {
	p, cfg := c.pool, &c.e.cfg
	f := c.frontier()
	switch {
	case cfg.Fixed:
		c.share = min(max(cfg.Share, p.Share.Min), p.Share.Max)
		return
	case p.Share.Exact:
		c.share = min(max(p.Share.Target, p.Share.Min), p.Share.Max)
		return
	}
	most := max(p.Share.Min, min(p.Share.Max, c.budget.shareMax()))
	best, now := f.best(p.Share.Min, most), c.memory.Target
	c.share = best
	switch {
	case !c.memory.HasTarget && f.spot <= 0 && f.fixed <= 0:
		return // no price is known yet; the choice would persist
	case !c.memory.HasTarget:
	case f.spot > 0 && !c.sold(policy.OnDemand):
		c.since(0) // no on-demand capacity is offered from which to return
	case f.spot <= 0 && f.fixed > 0 && p.OnDemandFallback:
		c.share = now // there is no choice; what Spot refuses is bought on-demand
		c.since(0)
	case most < now:
		c.since(0)
	case best < now && f.at(now) < f.at(best)*(1+slight):
		c.share = now // the costs are about the same
		c.since(0)
	case best <= now:
		c.since(0)
	case f.at(now)-f.at(best) <= float64(cfg.Margin*f.fixed)*(best-now):
		c.share = now
		c.since(0)
	case c.memory.Below == 0:
		c.share = now
		c.since(c.s.Now)
	case c.s.Now.Sub(c.memory.Below) < min(cfg.Return, c.payback(best-now, f.at(now)-f.at(best))):
		c.share = now
	}
	c.share = min(max(c.share, p.Share.Min), most)
	if c.why = f.why(c.share); most < p.Share.Max && c.share >= most {
		c.why = c.budget.why(most)
	}
	if !c.memory.HasTarget || c.memory.Target != c.share {
		c.memory.Target, c.memory.HasTarget, c.changed = c.share, true, true
		c.since(0)
	}
}

// payback returns the time in which a gain, in dollars per hour, totals the cost of moving the
// fraction q of the pool to Spot and back. Something that is needed for an unknown number of days
// may be rented until the rent totals its purchase price: then at most twice the optimum is paid in
// any case (Karlin et al., Competitive snoopy caching, 1988).
func (c *shareChoice) payback(q, gain float64) time.Duration {
	cost := 0.0
	for i := range c.losses.services {
		v := &c.losses.services[i]
		cost += float64(float64(v.pods*v.value)*v.minutes) / 30
	}
	cost += c.jobs.all + float64(c.prices.costOf(false)*overlapHours)
	return time.Duration(min(2*q*cost/gain, 1e6) * float64(time.Hour))
}

// slight is the fraction of the cost below which a difference does not change the share.
const slight = 0.01

// sold reports whether the pool has markets of a capacity type that are offered, even if they
// refuse launches.
func (c *shareChoice) sold(kind policy.CapacityType) bool {
	return slices.ContainsFunc(c.pool.Markets, func(id policy.MarketID) bool {
		m := &c.s.Markets[id]
		return m.Capacity == kind && m.Offered
	})
}

// since records the time since which Spot has been cheap enough to return to; 0 if it is not.
func (c *shareChoice) since(t policy.Time) {
	if c.memory.Below != t {
		c.memory.Below, c.changed = t, true
	}
}

// A frontier computes the cost of the pool's demand at every Spot share.
type frontier struct {
	pool        *policy.Pool
	losses      *poolLosses
	priced      bool    // whether the pool has a Spot market
	spot, fixed float64 // dollars per hour all on Spot and all on-demand; not positive if unavailable
	rate        float64 // shocks per hour
	depth       float64 // fraction of the Spot nodes that a shock takes
	most        float64 // largest share that leaves enough if one market is lost
}

// frontier returns the costs of the demand, and sets the saving on Spot.
func (c *shareChoice) frontier() frontier {
	priced := slices.ContainsFunc(c.pool.Markets,
		func(id policy.MarketID) bool { return c.s.Markets[id].Capacity == policy.Spot })
	f := frontier{pool: c.pool, priced: priced, losses: c.losses, spot: c.prices.costOf(true),
		fixed: c.prices.costOf(false), rate: c.reclaims.shockRate(), depth: c.memory.Shocks.Depth}
	f.most = c.shareMax(f.spot)
	if f.spot > 0 && f.fixed > 0 {
		c.saving = max(0, 1-f.spot/f.fixed)
	}
	return f
}

// at returns the cost of the demand at share x, in dollars per hour.
func (f *frontier) at(x float64) float64 {
	shocks := 0.0
	if f.rate > 0 {
		shocks = f.rate * f.losses.shock(x, f.depth)
	}
	return float64(x*f.spot) + float64((1-x)*f.fixed) + shocks
}

// shareSteps is the number of steps in which shares are compared.
const shareSteps = 20

// best returns the share in [least, most] with the lowest cost; ties are broken in favour of the
// largest.
func (f *frontier) best(least, most float64) float64 {
	switch {
	case f.spot <= 0:
		return least
	case f.fixed <= 0:
		return most
	}
	most = max(least, min(most, f.most))
	best := most
	for k := shareSteps - 1; k >= 0; k-- {
		x := least + float64((most-least)*float64(k))/shareSteps
		if f.at(x) < f.at(best) {
			best = x
		}
	}
	if best == most && f.spot >= f.fixed {
		return least
	}
	return best
}

// why explains the share x.
func (f *frontier) why(x float64) policy.Why {
	w := policy.Why{
		Reason: policy.ReasonCheaper, Before: policy.Dollars(max(f.fixed, 0)), After: policy.Dollars(max(f.spot,
			0)), Text: f.costs(x),
	}
	switch {
	case x <= f.pool.Share.Min && x < f.pool.Share.Max:
		w.Reason, w.Before, w.After = policy.ReasonRisk, w.After, w.Before
	case x < min(1, f.pool.Share.Max):
		w.Reason, w.Before, w.After = policy.ReasonRisk, policy.Dollars(f.at(1)), policy.Dollars(f.at(x))
		w.Text = fmt.Sprintf("with the risk of losing many nodes at once, %s Spot costs %s and all Spot %s",
			figures.RoughShare(x), perHour(f.at(x)), perHour(f.at(1)))
	}
	return w
}

// shareMax returns the largest Spot share at which each service keeps its required pods if one
// market is lost, provided that too few markets save at least half of what the best one saves to
// spread over; it returns 1 if there are enough. A service that can spare less than a quarter of
// its pods, such as one without a disruption budget, is not considered: the loss of a zone leaves
// it short however it is spread, and few pods would decide for all.
func (c *shareChoice) shareMax(spot float64) float64 {
	markets, best, fixed := 0, 0.0, 0.0
	for _, r := range c.prices.ranked {
		if c.s.Markets[r.market].Capacity != policy.Spot && (fixed == 0 || r.unit < fixed) {
			fixed = r.unit
		}
	}
	for _, r := range c.prices.ranked {
		if c.s.Markets[r.market].Capacity != policy.Spot {
			continue
		}
		if best == 0 {
			best = r.unit
		}
		if r.unit <= (best+fixed)/2 {
			markets++
		}
	}
	most := 1.0
	for i := range c.losses.services {
		if v := &c.losses.services[i]; v.slack >= max(1, v.pods/4) && v.pods > v.slack {
			most = min(most, float64(v.slack*float64(markets))/v.pods)
		}
	}
	if markets == 0 || spot <= 0 {
		return 1
	}
	return most
}

// costs returns a text that compares Spot with on-demand for the pool. If one of them is
// unavailable, it states that the share x is kept.
func (f *frontier) costs(x float64) string {
	spot, fixed := "Spot costs "+perHour(f.spot)+" with expected losses", "on demand costs "+perHour(f.fixed)
	if f.spot > 0 && f.fixed > 0 {
		return spot + ", " + fixed
	}
	keeping := "keeping " + figures.RoughShare(x) + " Spot"
	if x == f.pool.Share.Min {
		keeping += " as the minimum allows"
	}
	if f.spot > 0 {
		return "no on-demand capacity is available; " + keeping + "; " + spot
	}
	if f.fixed <= 0 {
		return "neither Spot nor on-demand capacity is available; " + keeping
	}
	if !f.priced {
		return "no Spot price is known; " + keeping + "; " + fixed
	}
	return "no Spot capacity is available; " + keeping + "; " + fixed
}

// perHour formats a cost per hour, such as "$1.0486/h".
func perHour(dollars float64) string { return policy.Dollars(dollars).Short() + "/h" }
