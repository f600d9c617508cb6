package generate

import (
	"math"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
)

// auctionCell is the length of a time cell of the part of an auction that the zones of a type
// share.
const auctionCell = hour

// auction returns the drawer of an auction's prices. The price is the sum of a base that walks
// around its level and of noise that the next change reverts. At times, bids raise it far above its
// level for some hours.
func (p *path) auction(s *shared) drawer {
	l, a := &p.c.Law, p.c.Law.Auction
	p.note(p.c.From)
	tails := newTail(l.Tail)
	lasts := float64(p.size * math.Sqrt(1-a.Noise))
	noise := float64(p.size * math.Sqrt(a.Noise/2))
	own, common := math.Sqrt(1-l.Together), math.Sqrt(l.Together)
	// The mean of a log-normal variable is its median times the exponential of half the variance of
	// its logarithm.
	typical := max(1e-4, 24/p.activity-a.TickLeast) / portable.Exp(float64(a.TickSpread*a.TickSpread)/2)
	base := p.x
	spikes := p.newSpikes()
	gap := func(n uint64) policy.Time {
		return inHours(a.TickLeast + float64(typical*p.keys.tick.At1(n).LogNormal(a.TickSpread)))
	}
	n := uint64(1)
	at := p.c.From + gap(n)
	return func(until policy.Time) {
		for at < until {
			z := float64(own*p.keys.lasting.At1(n).Normal()) + float64(common*s.at(at))
			base += float64(lasts*tails.of(z)) - float64(l.Pull*(base-p.level))
			base = max(p.least, min(base, p.most))
			p.x = base
			if height, high := spikes.at(at); high {
				p.x = max(base, height)
			}
			p.x += float64(noise * tails.of(p.keys.passing.At1(n).Normal()))
			p.x = max(p.least, min(p.x, p.most))
			p.bid(at)
			n++
			at += gap(n)
		}
	}
}

// spikes are the intervals in which bids raise the price of a market.
type spikes struct {
	p          *path
	n          uint64
	begin, end policy.Time
	height     float64
	none       bool
}

func (p *path) newSpikes() *spikes {
	s := &spikes{p: p, none: p.spikes <= 0, end: p.c.From}
	if !s.none {
		s.next()
	}
	return s
}

const yearHours = 8766

func (s *spikes) next() {
	a, k := s.p.c.Law.Auction, s.p.keys
	s.begin = s.end + inHours(float64(yearHours/s.p.spikes*k.spike.At2(s.n, 0).Exp1()))
	s.end = s.begin + inHours(float64(a.SpikeHours*k.spike.At2(s.n, 1).LogNormal(a.SpikeSpread)))
	s.height = portable.Log(a.SpikeLeast) + float64(a.SpikeTail*k.height.At1(s.n).Exp1())
	s.n++
}

// at returns the logarithm of the ratio during a spike, and whether t is in a spike. Times must
// ascend.
func (s *spikes) at(t policy.Time) (height float64, high bool) {
	if s.none {
		return 0, false
	}
	for t >= s.end {
		s.next()
	}
	return s.height, t >= s.begin
}

// jumps returns the drawer of prices that stay at a level until, in some round of the auction, bids
// raise them by a factor for a while.
func (p *path) jumps() drawer {
	j := p.c.Law.Jumps
	round := inHours(j.Every)
	lifted := false
	// The trace starts in the steady state: the probability that a price is raised is the share of
	// time in which it is.
	rest := yearHours / max(p.activity, 1e-9)
	if p.keys.begin.Float() < j.Stay/(j.Stay+rest) {
		lifted = true
		p.lift(0)
	}
	p.note(p.c.From)
	gap := func(n uint64) policy.Time {
		hours := rest
		if lifted {
			hours = j.Stay
		}
		wait := min(float64(hours*p.keys.tick.At1(n).Exp1()), 1e6)
		return max(1, policy.Time(math.Round(float64(inHours(wait))/float64(round)))) * round
	}
	n := uint64(1)
	at := p.c.From + gap(n)
	return func(until policy.Time) {
		for at < until {
			if lifted = !lifted; lifted {
				p.lift(n)
			} else {
				p.x = p.level
			}
			p.note(at)
			n++
			at += gap(n)
		}
	}
}

// lift raises the price for the n-th time.
func (p *path) lift(n uint64) {
	p.x = p.level + float64(p.size*p.keys.height.At1(n).LogNormal(p.c.Law.Jumps.Spread))
	p.x = max(p.least, min(p.x, p.most))
}
