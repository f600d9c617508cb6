package portfolio

import (
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// choose finds the spot share that the pool is to have. Where neither the manifest
// nor a parameter states it, it is the one with which the demand costs least: its
// price on spot and on demand, what losses of single nodes cost, and what it costs
// to lose many at once times how often that is expected.
//
// A pool goes to a smaller share at once. To a larger one it goes only when that is
// cheaper by the margin, and has been for long enough, so that it does not go to and fro;
// see payback.
func (d *planState) choose() {
	p, cfg := d.pool, &d.e.cfg
	f := d.frontier()
	switch {
	case cfg.Fixed:
		d.share = min(max(cfg.Share, p.Share.Min), p.Share.Max)
		return
	case p.Share.Exact:
		d.share = min(max(p.Share.Target, p.Share.Min), p.Share.Max)
		return
	}
	best, now := f.best(p.Share.Min, p.Share.Max), d.memory.Target
	d.share = best
	switch {
	case !d.memory.HasTarget && f.spot <= 0 && f.fixed <= 0:
		return // no price is known yet, by which to choose what is then held on to
	case !d.memory.HasTarget:
	case f.spot > 0 && !d.sold(policy.OnDemand):
		d.since(0) // there is nothing on demand to return from
	case f.spot <= 0 && f.fixed > 0 && p.OnDemandFallback:
		d.share = now // there is nothing to choose from, and what is refused is bought on demand
		d.since(0)
	case best < now && f.at(now) < f.at(best)*(1+slight):
		d.share = now // about the same
		d.since(0)
	case best <= now:
		d.since(0)
	case f.at(now)-f.at(best) <= float64(cfg.Margin*f.fixed)*(best-now):
		d.share = now
		d.since(0)
	case d.memory.Below == 0:
		d.share = now
		d.since(d.s.Now)
	case d.s.Now.Sub(d.memory.Below) < min(cfg.Return, d.payback(best-now, f.at(now)-f.at(best))):
		d.share = now
	}
	d.share = min(max(d.share, p.Share.Min), p.Share.Max)
	d.why = f.why(d.share)
	if !d.memory.HasTarget || d.memory.Target != d.share {
		d.memory.Target, d.memory.HasTarget, d.changed = d.share, true, true
		d.since(0)
	}
}

// payback returns in what time a gain of so many dollars an hour comes to what it costs to
// move the part q of the pool to spot and back. What is bought for certain days of use may
// be rented until the rent has come to its price: then no more than twice the least is
// paid, whatever comes (Karlin et al., Competitive snoopy caching, 1988).
func (d *planState) payback(q, gain float64) time.Duration {
	cost := 0.0
	for i := range d.services {
		v := &d.services[i]
		cost += float64(float64(v.pods*v.value)*v.minutes) / 30
	}
	cost += d.jobsAll + float64(d.costOf(false)*overlapHours)
	return time.Duration(min(2*q*cost/gain, 1e6) * float64(time.Hour))
}

// slight is the part of its cost for which a pool does not change its share.
const slight = 0.01

// sold reports whether the pool has markets of a capacity type that are offered, also
// while they refuse.
func (d *planState) sold(c policy.CapacityType) bool {
	return slices.ContainsFunc(d.pool.Markets, func(id policy.MarketID) bool {
		m := &d.s.Markets[id]
		return m.Capacity == c && m.Offered
	})
}

// since notes since when spot has been cheap enough to return to.
func (d *planState) since(t policy.Time) {
	if d.memory.Below != t {
		d.memory.Below, d.changed = t, true
	}
}

// A frontier tells what the pool's demand costs at every spot share.
type frontier struct {
	d           *planState
	spot, fixed float64 // dollars an hour all on spot and all on demand, 0 where it is not to be had
	rate        float64 // shocks an hour
	depth       float64 // part of the spot nodes that one takes
	most        float64 // the largest share that leaves enough when one market is lost
}

func (d *planState) frontier() frontier {
	f := frontier{d: d, spot: d.costOf(true), fixed: d.costOf(false), rate: d.shockRate(), depth: d.memory.Shocks.Depth}
	f.most = d.bearable(f.spot)
	if f.spot > 0 && f.fixed > 0 {
		d.saving = max(0, 1-f.spot/f.fixed)
	}
	return f
}

// at returns what the demand costs an hour in dollars at share x.
func (f *frontier) at(x float64) float64 {
	return float64(x*f.spot) + float64((1-x)*f.fixed) + float64(f.rate*f.d.shock(x*f.depth))
}

// shareSteps is how many shares are looked at.
const shareSteps = 20

// best returns the share between least and most that costs least, of several the
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

// why accounts for the share x.
func (f *frontier) why(x float64) policy.Why {
	w := policy.Why{
		Reason: policy.ReasonCheaper, Before: policy.Dollars(max(f.fixed, 0)), After: policy.Dollars(max(f.spot, 0)),
		Text: fmt.Sprintf("the pool's demand costs %s an hour on spot, losses counted in, and %s on demand", text(f.spot), text(f.fixed)),
	}
	switch {
	case x <= f.d.pool.Share.Min && x < f.d.pool.Share.Max:
		w.Reason, w.Before, w.After = policy.ReasonRisk, w.After, w.Before
	case x < min(1, f.d.pool.Share.Max):
		w.Reason, w.Before, w.After = policy.ReasonRisk, policy.Dollars(f.at(1)), policy.Dollars(f.at(x))
		w.Text = fmt.Sprintf("a spot share of %.2f costs %s an hour with what it would cost to lose much of it at once, all spot %s", x, text(f.at(x)), text(f.at(1)))
	}
	return w
}

// bearable returns the largest spot share that leaves each service with what it
// requires when one market is lost, as far as the markets that save at least half of
// what the best one saves are too few to spread over: 1 where there are enough. A
// service that can spare less than a quarter, which is what one without a budget
// can, is not asked: the loss of a zone leaves it short however it is spread, and
// few pods would decide for all.
func (d *planState) bearable(spot float64) float64 {
	markets, best, fixed := 0, 0.0, 0.0
	for _, r := range d.ranked {
		if d.s.Markets[r.market].Capacity != policy.Spot && (fixed == 0 || r.unit < fixed) {
			fixed = r.unit
		}
	}
	for _, r := range d.ranked {
		if d.s.Markets[r.market].Capacity != policy.Spot {
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
	for i := range d.services {
		if v := &d.services[i]; v.slack >= max(1, v.pods/4) && v.pods > v.slack {
			most = min(most, float64(v.slack*float64(markets))/v.pods)
		}
	}
	if markets == 0 || spot <= 0 {
		return 1
	}
	return most
}

// costOf returns what the pool's demand costs an hour on spot, or on demand, at
// the least, and 0 where nothing is for sale.
func (d *planState) costOf(spot bool) float64 {
	w := d.evaluate(spot)
	demand := d.demand
	if demand == (policy.Resources{}) {
		demand = idleDemand
	}
	return w.of(demand)
}

// idleDemand stands for the demand of a pool without pods.
var idleDemand = policy.Resources{CPU: 1000, Memory: 2 << 30, Pods: 1}

func text(dollars float64) string {
	if dollars <= 0 {
		return "not to be had"
	}
	return policy.Dollars(dollars).Short()
}
