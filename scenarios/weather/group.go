package weather

import (
	"math"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// A group is a set of markets that lack capacity together. It has candidates for shortages. Each of
// its markets is affected by the candidates whose mark is below its share, so that a milder market
// has only shortages that the harsher ones have too.
type group struct {
	key        chance.Key
	candidates []candidate
}

// A candidate is a shortage of a group that affects some of its markets.
type candidate struct {
	from, until policy.Time
	ordinal     uint64
	mark        float64
}

// The draws for a candidate.
const (
	drawGap = iota
	drawLength
	drawMark
	drawDepth
	drawTakes
)

// newGroup draws the candidates of a group that overlap [from, to). gapMean is the mean of the gaps
// in hours.
//
// The first gap starts four mean cycles before the run, so that the process is independent of its
// start when the run starts.
func newGroup(p *Params, key chance.Key, gapMean float64, from, to policy.Time) *group {
	scale := gapMean / weibullMean(p.GapShape)
	t := from - milliseconds(4*(gapMean+p.lengthMean()))
	shortest := policy.Time(p.TakeWindow.Milliseconds())
	g := &group{key: key}
	for n := uint64(0); ; n++ {
		k := key.At1(n)
		start := t + 1 + milliseconds(k.At1(drawGap).Weibull(p.GapShape, scale))
		if start >= to {
			return g
		}
		length := milliseconds(k.At1(drawLength).Weibull(p.LengthShape, p.LengthScale))
		t = start + max(length, shortest)
		if t > from {
			g.candidates = append(g.candidates, candidate{from: start, until: t, ordinal: n, mark: k.At1(drawMark).Float()})
		}
	}
}

// appendShortages appends the candidates that affect a market with this share.
func (g *group) appendShortages(p *Params, share float64, shortages []Shortage) []Shortage {
	for i := range g.candidates {
		c := &g.candidates[i]
		if c.mark >= share {
			continue
		}
		k := g.key.At1(c.ordinal)
		shortages = append(shortages, Shortage{
			From: c.from, Until: c.until, Depth: p.depth(k.At1(drawDepth)), Cause: CauseShortage, key: k.At1(drawTakes),
		})
	}
	return shortages
}

// depth draws the share of slots that a shortage takes, above 0.
func (p *Params) depth(k chance.Key) float64 {
	if k.At1(0).Float() < p.DepthWhole {
		return 1
	}
	return max(k.At1(1).Beta(p.DepthA, p.DepthB), 0x1p-20)
}

// DepthMean returns the mean share of slots that a shortage takes.
func (p *Params) DepthMean() float64 {
	return p.DepthWhole + float64((1-p.DepthWhole)*p.DepthA/(p.DepthA+p.DepthB))
}

// rate returns the reclaim rate that a band implies, per node-hour.
func (p *Params) rate(b policy.Band) float64 {
	return -portable.Log1p(-p.BandMonthly[b]) / policy.HoursPerMonth
}

// calendarShare returns the part of a band's rate that calendars contribute.
func (p *Params) calendarShare() float64 {
	rest := 1.0
	for _, share := range p.ShortageShare {
		rest -= share
	}
	return rest
}

// share returns the share of the candidates of a group that affect a market: the share with which
// its shortages contribute ShortageShare of the band's rate, before frailty. The intensity
// increases it, so that a greater intensity has all shortages of a smaller one.
func (p *Params) share(l level, b policy.Band, intensity float64) float64 {
	cycle := p.CandidateGap + p.lengthMean()
	return float64(float64(p.ShortageShare[l]*p.rate(b))*cycle) * intensity / p.DepthMean()
}

// lengthMean returns the mean length of a shortage in hours.
func (p *Params) lengthMean() float64 { return float64(p.LengthScale * weibullMean(p.LengthShape)) }

// frailty draws the factor, with mean 1, by which a group differs from similar groups.
func frailty(k chance.Key, sigma float64) float64 {
	return portable.Exp(float64(sigma*k.Normal()) - float64(sigma*sigma/2))
}

// weibullMean returns the mean of the Weibull distribution with scale 1, which is the gamma
// function at 1 + 1/shape. It applies Stirling's series to a shifted argument.
func weibullMean(shape float64) float64 {
	z, below := 1+1/shape, 1.0
	for ; z < 12; z++ {
		below = float64(below * z)
	}
	series := float64(1/(12*z)) - float64(1/(360*z*z*z))
	log := float64((z-0.5)*portable.Log(z)) - z + float64(0.5*portable.Log(2*math.Pi)) + series
	return portable.Exp(log) / below
}

// milliseconds converts hours to milliseconds, rounded down, and limits them to a century.
func milliseconds(hours float64) policy.Time {
	return policy.Time(min(float64(hours*float64(hour)), 100*365*24*3.6e6))
}
