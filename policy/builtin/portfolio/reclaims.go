package portfolio

import (
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/policy/workload"
)

// A reclaims contains how often nodes of the pool are expected to be lost, one at a time and many
// at once, from what the pool observed and what its markets are forecast to do. The memory records
// the shocks observed, whose weight decays.
type reclaims struct {
	*poolContext

	// hazard is the number of reclaims per node-hour in the pool's Spot markets together. met is
	// the number of reclaims that the pool remembers, and hours the number of node-hours.
	hazard, met, hours float64
}

// unlike is the weight, in reclaims, of a market's forecast against what the pool observed in all
// its markets together. It is small, since recorded markets differ far more than published bands
// indicate, by a factor of about a hundred.
const unlike = 0.02

// readReclaims returns the reclaims of a pool.
func readReclaims(x *poolContext) *reclaims {
	r := &reclaims{poolContext: x}
	r.readHazard()
	r.readShocks()
	return r
}

// readHazard computes the reclaims per node-hour that the pool observed in its Spot markets
// together. In the choice between Spot and on-demand, the hazard of a market is assumed to be at
// least this rate: if the other markets were worse than forecast, this one may be too.
func (r *reclaims) readHazard() {
	least := 0.0
	for _, id := range r.pool.Markets {
		m := &r.s.Markets[id]
		if m.Capacity != policy.Spot {
			continue
		}
		r.met += m.Experience.Reclaims
		r.hours += m.Experience.NodeHours
		if h := m.Forecast.Hazard; h > 0 && m.Offered && (least == 0 || h < least) {
			least = h
		}
	}
	if least > 0 {
		r.hazard = (unlike + r.met) / (unlike/least + r.hours)
	}
}

const (
	// shockSpan is the time within which nodes are lost together: a shortage takes its nodes within
	// minutes. Two spans are examined, since it may start late in one.
	shockSpan = 10 * time.Minute

	// shockPart is the minimum fraction of the Spot nodes that must be lost in that time, and
	// shockNodes the minimum number of nodes.
	shockPart  = 0.4
	shockNodes = 2

	// shockMemory is the half-life of the weight of a shock. Shortages are clustered: today's
	// shortages predict tomorrow's better than last month's.
	shockMemory = 12 * time.Hour

	// shockApart is the minimum time between two shocks that count separately.
	shockApart = time.Hour
)

// readShocks records whether many of the pool's Spot nodes were lost at once.
func (r *reclaims) readShocks() {
	s, x := r.s, &r.memory.Shocks
	if x.Since != 0 && s.Now.Sub(x.Since) < shockSpan {
		return
	}
	nodes := 0
	for m, n := range r.e.nodes.in(r.pool.ID) {
		if s.Markets[m].Capacity == policy.Spot {
			nodes += int(n)
		}
	}
	for _, id := range r.e.nodes.odd {
		if n := &r.e.nodes.all[id]; n.pool == r.pool.ID && n.usable && n.market >= 0 &&
			s.Markets[n.market].Capacity == policy.Spot {
			nodes++
		}
	}
	r.changed = true
	lost := 0.0
	if x.Since != 0 && s.Now.Sub(x.Since) < 3*shockSpan && x.Nodes > 0 {
		taken := max(0, r.met-x.Reclaims)
		lost = min(1, taken/float64(x.Nodes))
		if taken > 0.5 && slices.ContainsFunc(s.Templates, func(t policy.Template) bool { return t.Gang > 0 }) {
			x.Spans, x.Taken = x.Spans+1, x.Taken+taken
		}
	}
	part := min(1, lost+x.Lost)
	if part >= shockPart && float64(part*float64(x.Nodes)) >= shockNodes-0.1 {
		r.meetShock(part)
	}
	x.Since, x.Nodes, x.Reclaims, x.Lost = s.Now, nodes, r.met, lost
	if x.Nodes == 0 {
		x.Lost = 0
	}
}

// meetShock records the loss of the fraction part of the Spot nodes.
func (r *reclaims) meetShock(part float64) {
	x, now := &r.memory.Shocks, r.s.Now
	if x.At != 0 && now.Sub(x.At) < shockApart {
		x.Depth = max(x.Depth, part)
		return
	}
	before := float64(x.Count * r.fading(x.At))
	x.Depth = (float64(x.Depth*before) + part) / (before + 1)
	x.Count, x.At = before+1, now
}

// fading returns the present weight of a shock at t, in [0, 1].
func (r *reclaims) fading(t policy.Time) float64 {
	if t == 0 {
		return 0
	}
	return portable.Decay(r.s.Now.Sub(t), shockMemory)
}

// shockRate returns the expected number of shocks per hour.
func (r *reclaims) shockRate() float64 {
	x := &r.memory.Shocks
	return float64(x.Count*r.fading(x.At)) * math.Ln2 / shockMemory.Hours()
}

// zoneLosses is the rate per hour at which a whole zone is lost, before any loss was observed: once
// in three years, about as often as the availability zones of a large region have failed.
const zoneLosses = 1.0 / (3 * 365 * 24)

// calmest is the minimum hazard that is assumed for a market, in reclaims per node-hour: the upper
// bound of the lowest band of AWS's Spot Instance Advisor, 5% per month.
const calmest = 0.05 / 730

// lossesOf returns the expected number of times per hour that all nodes of Spotter in market id are
// lost together. Each reclaim is assumed to start a shortage that takes them all.
func (r *reclaims) lossesOf(id policy.MarketID) float64 {
	m := &r.s.Markets[id]
	if m.Capacity != policy.Spot {
		return 0
	}
	return max(m.Forecast.Hazard, r.hazard, calmest) + r.shockLosses()
}

// shockLosses returns the expected fraction of the pool's Spot nodes that is lost in shocks per
// hour.
func (r *reclaims) shockLosses() float64 { return float64(r.shockRate() * r.memory.Shocks.Depth) }

// losses returns the expected number of losses of g per hour; 0 if g is neither a market nor a
// zone.
func (r *reclaims) losses(g workload.Group) float64 {
	switch {
	case g.Market >= 0:
		return r.lossesOf(g.Market)
	case g.Zone >= 0:
		return zoneLosses + r.shockLosses()
	}
	return 0
}
