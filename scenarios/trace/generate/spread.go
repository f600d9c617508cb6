package generate

import (
	"fmt"
	"math"
	"slices"

	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// Nodes are the probabilities at which distributions are tabulated.
var Nodes = [...]float64{
	0, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5,
	0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975, 0.99, 1,
}

// A Spread is the distribution of a property over markets.
type Spread struct {
	// Quantiles are the quantiles at [Nodes]: the probabilities 0, 0.01, 0.025, 0.05, 0.075, 0.1,
	// then every 0.05 up to 0.9, and 0.925, 0.95, 0.975, 0.99, 1. They are interpolated linearly.
	Quantiles []float64 `json:"quantiles"`

	// Shared is the share of the variance that the zones of an instance type have in common, after
	// a transformation of the values to a normal distribution.
	Shared float64 `json:"shared"`
}

// At returns the p-quantile.
func (s *Spread) At(p float64) float64 {
	i, _ := slices.BinarySearch(Nodes[:], p)
	if i == 0 {
		return s.Quantiles[0]
	}
	if i == len(Nodes) {
		return s.Quantiles[i-1]
	}
	w := (p - Nodes[i-1]) / (Nodes[i] - Nodes[i-1])
	return s.Quantiles[i-1] + float64(w*(s.Quantiles[i]-s.Quantiles[i-1]))
}

func (s *Spread) validate(name string, least, most float64) error {
	if len(s.Quantiles) != len(Nodes) {
		return wrongValue(name+".quantiles", len(s.Quantiles), fmt.Sprintf("it must hold %d values", len(Nodes)))
	}
	for i, v := range s.Quantiles {
		if !(v >= least && v <= most) {
			return wrongValue(name+".quantiles", v, fmt.Sprintf("it must be from %v to %v", least, most))
		}
		if i > 0 && v < s.Quantiles[i-1] {
			return wrongValue(name+".quantiles", v, "it must not descend")
		}
	}
	return share(name+".shared", s.Shared)
}

// bins is the number of equal parts of a deck.
const bins = 40

// A deck deals ranks. The rank of a market in a property is the share of all markets below it. The
// ranks are spread evenly after a few dozen markets: a trace of two hundred markets then has the
// quantiles of its law, which independent draws would not guarantee. A rank depends only on the
// ranks dealt before it.
type deck struct {
	shared, family        float64
	ownShift, ownStretch  float64
	typeShift, typeStride float64
	types, families       map[string]int
	dealt                 [bins]int
	total                 int
}

// stretches are irrational numbers whose continued fractions have small terms, such as the golden
// ratio and the square root of 2. The fractional parts of their first multiples already fill the
// unit interval evenly.
var stretches = [...]float64{
	0.6180339887498949, 0.41421356237309515, 0.7320508075688772, 0.30277563773199456, 0.6457513110645906,
}

// newDeck returns the deck of property n.
func newDeck(c *Config, n int, shared float64) *deck {
	shift := func(stream string) float64 { return chance.Stream(c.Seed, stream).At1(uint64(n)).Float() }
	return &deck{
		shared:   shared,
		ownShift: shift("generate own rank"), ownStretch: stretches[(n+1)%len(stretches)],
		typeShift: shift("generate type rank"), typeStride: stretches[n%len(stretches)],
		types: map[string]int{}, families: map[string]int{},
	}
}

// draw returns a number in [0, 1] that is correlated between markets of the same type.
func (d *deck) draw(m *Market) float64 {
	own := even(d.ownShift, d.ownStretch, d.total)
	d.total++
	if d.shared == 0 {
		return own
	}
	common := chance.NormalQuantile(even(d.typeShift, d.typeStride, number(d.types, m.TypeName())))
	if d.family > 0 {
		family := even(d.ownShift, d.typeStride, number(d.families, m.Provider+"/"+m.Region+"/"+Family(m.Type)))
		common = mix(d.family/d.shared, chance.NormalQuantile(family), common)
	}
	return chance.NormalCDF(mix(d.shared, common, chance.NormalQuantile(own)))
}

// number returns the index of a name in the order of first use.
func number(of map[string]int, name string) int {
	k, ok := of[name]
	if !ok {
		k = len(of)
		of[name] = k
	}
	return k
}

// even returns the fractional part of multiple i+1 of stretch, plus shift. It is never 0.
func even(shift, stretch float64, i int) float64 {
	x := shift + float64(stretch*float64(i+1))
	return max(1e-9, x-math.Floor(x))
}

// deal returns the rank of the next market: the number that it drew, moved to a nearby part that
// has too few markets. The distance that it may move decreases with the share of the variance that
// markets have in common, since otherwise the zones of a type would be separated.
func (d *deck) deal(m *Market) float64 {
	u := float64(d.draw(m) * bins)
	common := float64(d.shared * d.shared)
	pull := 1 - float64(common*common)
	best, least := 0, math.Inf(1)
	for b := range bins {
		owed := float64(d.total)/bins - float64(d.dealt[b])
		if cost := math.Abs(float64(b)+0.5-u) - float64(pull*owed); cost < least {
			best, least = b, cost
		}
	}
	d.dealt[best]++
	_, inside := math.Modf(u)
	return (float64(best) + inside) / bins
}

// A profile contains the properties of a market, drawn from the spreads of a law.
type profile struct {
	still                         bool
	level, activity, size, spikes float64
}

// settle is how strongly the share of markets that never move is adjusted to the law: the threshold
// moves by this amount for each market too many or too few.
const settle = 0.1

// levels deal the levels of markets, from one deck or from one deck per class of types.
type levels struct {
	law   *Law
	decks [2]*deck // the second one is for types with accelerators
}

func newLevels(c *Config) *levels {
	l := &levels{law: &c.Law}
	classes := c.Law.Classes
	if classes == nil {
		l.decks[0] = newDeck(c, 0, c.Law.Level.Shared)
		return l
	}
	for i, spread := range [...]*Spread{&classes.Plain, &classes.Accelerated} {
		const beyond = 5 // after the decks of the other properties
		l.decks[i] = newDeck(c, i*beyond, spread.Shared)
		l.decks[i].family = classes.Family
	}
	return l
}

// of returns the distribution and the deck of levels for the class of m.
func (l *levels) of(m *Market) (*Spread, *deck) {
	if l.law.Classes == nil {
		return &l.law.Level, l.decks[0]
	}
	if t, known := catalog.Lookup(m.Provider, m.Type); known && t.Capacity.GPU > 0 {
		return &l.law.Classes.Accelerated, l.decks[1]
	}
	return &l.law.Classes.Plain, l.decks[0]
}

// profiles draws the profiles of all markets in order. Each depends only on the markets before it.
func (c *Config) profiles() []profile {
	l := &c.Law
	levels, stills := newLevels(c), newDeck(c, 1, l.StillShared)
	// The ranks of the other properties are even among the markets that move.
	activities, sizes := newDeck(c, 2, l.Activity.Shared), newDeck(c, 3, l.Size.Shared)
	var spikes *deck
	if l.Auction != nil {
		spikes = newDeck(c, 4, l.Auction.Spikes.Shared)
	}
	all := make([]profile, len(c.Markets))
	var owed [len(l.Still)]float64 // markets that should never move, minus those that do not
	for i := range all {
		p, m := &all[i], &c.Markets[i]
		spread, dealer := levels.of(m)
		at := dealer.deal(m)
		p.level = spread.At(at)
		fifth := min(int(at*float64(len(owed))), len(owed)-1)
		threshold := l.Still[fifth]
		if threshold > 0 && threshold < 1 {
			threshold += float64(settle * owed[fifth])
		}
		owed[fifth] += l.Still[fifth]
		if stills.draw(m) < threshold {
			p.still = true
			owed[fifth]--
			continue
		}
		p.activity = l.Activity.At(activities.deal(m))
		p.size = l.Size.At(sizes.deal(m))
		if spikes != nil {
			p.spikes = l.Auction.Spikes.At(spikes.deal(m))
		}
	}
	return all
}
