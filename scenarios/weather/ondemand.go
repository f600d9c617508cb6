package weather

import (
	"math"
	"sort"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// Providers reserve capacity for on-demand launches before they sell the rest as Spot. A shortage
// therefore affects Spot first, and on-demand only if it is deep. The draws here take no number
// from a stream that is used elsewhere: an on-demand market has a subset of the shortages of its
// Spot market.

// lacksOnDemand reports whether on-demand launches in a market may be refused. They may for types
// with accelerators and for types in the highest, unbounded band. An auction has no shortages, and
// neither does its provider's on-demand market.
func lacksOnDemand(m *Market, band policy.Band) bool {
	return !m.Spot && m.Provider != policy.Rackspace && (m.GPU || band == bands-1)
}

// onDemandShortages appends the intervals in which a market refuses on-demand launches. Their depth
// is 0, since they take no on-demand nodes.
func (b *builder) onDemandShortages(m *Market, shortages []Shortage) []Shortage {
	band, _ := b.bandOf(m)
	if !lacksOnDemand(m, band) {
		return shortages
	}
	if m.Available != nil {
		return b.recordedOnDemand(m, shortages)
	}
	first := typeInZone
	if scarce(m, band) {
		shortages = b.scarceOnDemand(m, shortages)
		first = wholeZone
	}
	from := len(shortages)
	b.exposed = b.exposures(b.exposed[:0], m, band, first)
	for _, x := range b.exposed {
		shortages = b.groupOf(m, x.level, x.gap).appendShortages(b.p, float64(x.share*b.p.OnDemandShare), shortages)
	}
	for i := range shortages[from:] {
		shortages[from+i].Depth = 0
	}
	return shortages
}

// scarceOnDemand appends the outages of the law of scarce types in which the slack is so low that
// on-demand launches are refused too. Each is within an outage of the Spot market.
func (b *builder) scarceOnDemand(m *Market, shortages []Shortage) []Shortage {
	law := &b.p.Scarce
	left := min(b.intensity, scarceCopiesMax)
	for copied := uint64(0); left > 0; copied++ {
		place := b.scarcePlace(m, copied)
		b.outages = law.Outages(b.outages[:0], place, b.w.cfg.From-scarceBefore, b.end)
		place.Mean += b.p.onDemandSlack()
		b.deep = law.Outages(b.deep[:0], place, b.w.cfg.From-scarceBefore, b.end)
		for _, o := range b.deep {
			i := sort.Search(len(b.outages), func(i int) bool { return b.outages[i].From > o.From }) - 1
			k := place.Own.At2(scarceDraws, uint64(b.outages[i].From))
			if o.Until <= b.w.cfg.From || k.At1(drawMark).Float() >= left {
				continue
			}
			shortages = append(shortages, Shortage{From: o.From, Until: o.Until, Cause: CauseShortage, key: k})
		}
		left--
	}
	return shortages
}

// recordedOnDemand appends the falls of the recorded availability of the Spot market that affect
// on-demand launches too.
func (b *builder) recordedOnDemand(m *Market, shortages []Shortage) []Shortage {
	from := len(shortages)
	shortages = b.recordedShortages(m.Twin, m.Available, shortages)
	kept := shortages[:from]
	for _, s := range shortages[from:] {
		if s.key.At1(drawMark).Float() < b.p.OnDemandShare {
			s.Depth = 0
			kept = append(kept, s)
		}
	}
	return kept
}

// onDemandSlack returns the amount by which the slack of a scarce type must be below zero for
// on-demand launches to be refused. It is chosen so that this is the case for OnDemandShare of the
// time for which the slack is below zero, on average over zones.
func (p *Params) onDemandSlack() float64 {
	deviation := math.Sqrt(1 + float64(p.Scarce.Spread*p.Scarce.Spread))
	out := chance.NormalCDF(-p.Scarce.Mean / deviation)
	return -float64(deviation*chance.NormalQuantile(float64(p.OnDemandShare*out))) - p.Scarce.Mean
}
