package weather

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// announcedMax is how long before a reclaim it is announced at most. The
// weather is drawn as far beyond the end of the run.
const announcedMax = hour

// never is later than every instant of a run.
const never policy.Time = 1 << 61

// New draws the weather of the markets. The answer for a market does not depend
// on the others nor on their order.
func New(cfg Config, markets []Market) (*Weather, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if err := checkMarkets(markets); err != nil {
		return nil, err
	}
	b := newBuilder(cfg, len(markets))
	for i := range markets {
		b.add(&markets[i])
	}
	b.w.starts = append(b.w.starts, int32(len(b.w.events)))
	b.w.alarmStarts = append(b.w.alarmStarts, int32(len(b.w.alarms)))
	return b.w, nil
}

// A builder draws one market after another.
type builder struct {
	w   *Weather
	p   *Params
	end policy.Time // the first instant that is not drawn

	// intensity is that of the configuration times the hazard of its truth.
	intensity float64

	// The streams of what is so for a market at all times, and of what happens
	// in this run. The latter are keyed by the begin as well, or two windows of
	// one seed would have the same weather, shifted.
	slots, band, frailty, recorded          chance.Key
	state, squeeze, calendar, notice, alarm chance.Key

	rhythms map[uint64]*rhythm
	groups  map[uint64]*group

	scratch []policy.Time
	met     []meeting
	outages []Outage
	deep    []Outage // of outages the parts that reach launches on demand
}

func newBuilder(cfg Config, markets int) *builder {
	from := uint64(cfg.From)
	stream := func(name string) chance.Key { return chance.Stream(cfg.Seed, name) }
	w := &Weather{cfg: cfg, markets: make([]market, 0, markets)}
	w.cfg.Squeezes = slices.Clone(cfg.Squeezes)
	w.cfg.LateNotices = slices.Clone(cfg.LateNotices)
	w.cfg.APIFaults = slices.Clone(cfg.APIFaults)
	return &builder{
		w: w, p: &w.cfg.Params, end: cfg.To + announcedMax, intensity: cfg.intensity(),
		slots: stream("slots"), band: stream("band"), frailty: stream("frailty"), recorded: stream("recorded"),
		state: stream("state").At1(from), squeeze: stream("squeeze").At1(from), calendar: stream("calendar").At1(from),
		notice: stream("notice").At1(from), alarm: stream("alarm").At1(from),
		rhythms: make(map[uint64]*rhythm), groups: make(map[uint64]*group),
	}
}

// add draws the weather of one market.
func (b *builder) add(m *Market) {
	mk := market{hash: portable.HashString(m.Name), name: m.Name, spot: m.Spot, band: policy.BandUnknown, slots: Unlimited,
		lead: policy.Time(policy.NoticeLead(m.Provider).Milliseconds())}
	if m.Spot {
		if !m.Auction {
			mk.band, mk.modelled = b.bandOf(m)
		}
		mk.slots = b.slotsOf(m, mk.hash)
		b.deepen(&mk, m)
	}
	b.spells(&mk, m)
	if !m.Spot {
		b.w.markets = append(b.w.markets, mk)
		return
	}
	if m.Available == nil && !m.Auction && b.intensity > 0 {
		mk.rate = b.calendarRate(m, mk.band)
		mk.state = b.rhythmOf(m)
	}
	switch b.w.cfg.Truth.Correlation {
	case CorrelationNone:
		mk.rate, mk.squeezed = mk.rate+mk.squeezed, 0
	case CorrelationZone:
		mk.rate = 0 // it is in squeezed
	}
	b.calendars(&mk)
	b.w.markets = append(b.w.markets, mk)
}

// calendarRate returns the mean rate of the calendars of a market of this band in
// the model, in reclaims per node-hour.
func (b *builder) calendarRate(m *Market, band policy.Band) float64 {
	factor := frailty(b.frailty.At1(m.groupHash(typeInZone)), b.p.FrailtySigma)
	return float64(float64(b.p.rate(band)*factor) * b.intensity)
}

// bandOf returns the published band of a market. One that is drawn is the same
// for a type in all zones of a region, as the published ones are.
func (b *builder) bandOf(m *Market) (band policy.Band, modelled bool) {
	if m.Band != policy.BandUnknown {
		return m.Band, false
	}
	shares := &b.p.BandSharesCPU
	if m.GPU {
		shares = &b.p.BandSharesGPU
	}
	total := 0.0
	for _, s := range shares {
		total += s
	}
	u := float64(b.band.At1(m.groupHash(typeInRegion)).Float() * total)
	for i, s := range shares {
		if u < s {
			return policy.Band(i), true
		}
		u -= s
	}
	return bands - 1, true
}

// slotsOf returns how many nodes a market holds.
func (b *builder) slotsOf(m *Market, hash uint64) int32 {
	if b.w.cfg.Slots > 0 {
		return int32(b.w.cfg.Slots)
	}
	median := b.p.SlotsCPU
	if m.GPU {
		median = b.p.SlotsGPU
	}
	n := float64(median*b.slots.At1(hash).LogNormal(b.p.SlotsSigma)) + 0.5
	return int32(max(1, min(n, 20*median)))
}

// rhythmOf returns the rhythm of the market's family in its zone.
func (b *builder) rhythmOf(m *Market) *rhythm {
	h := portable.Mix(m.groupHash(wholeZone), portable.HashString(m.Family))
	r := b.rhythms[h]
	if r == nil {
		r = newRhythm(b.p, m.Region, b.state.At1(h), b.w.cfg.From, b.end)
		b.rhythms[h] = r
	}
	return r
}

// A meeting is what a market meets of the squeezes of one of its groups: the share
// of the candidates, which come after a mean gap in hours.
type meeting struct {
	level      level
	share, gap float64
}

// meetings appends those of a market of this band with its groups from a level on.
func (b *builder) meetings(to []meeting, m *Market, band policy.Band, first level) []meeting {
	gap := func(l level) float64 {
		return b.p.CandidateGap / frailty(b.frailty.At1(m.groupHash(l)), b.p.FrailtySigma)
	}
	for l := first; l < levels; l++ {
		to = append(to, meeting{l, b.p.share(l, band, b.intensity), gap(l)})
	}
	if b.w.cfg.Truth.Correlation != CorrelationZone {
		return to
	}
	rate := b.calendarRate(m, band)
	for _, x := range to {
		rate += b.p.taken(x)
	}
	of := meeting{wholeZone, 1, gap(wholeZone)}
	of.share = rate / b.p.taken(of)
	return append(to[:0], of)
}

// taken returns the mean number of times per node-hour that the squeezes of a
// meeting take a slot in the model.
func (p *Params) taken(x meeting) float64 {
	return float64(min(1, x.share)*p.DepthMean()) / (x.gap + p.lengthMean())
}

// groupOf returns the market's group of a level, whose candidates come after this
// mean gap in hours.
func (b *builder) groupOf(m *Market, l level, gap float64) *group {
	id := portable.Mix(m.groupHash(l), uint64(l))
	g := b.groups[id]
	if g == nil {
		g = newGroup(b.p, b.squeeze.At1(id), gap, b.w.cfg.From, b.end)
		b.groups[id] = g
	}
	return g
}

// scarce reports whether the law of scarce types holds for a market.
func scarce(m *Market, band policy.Band) bool { return m.GPU && band == bands-1 }

// groupHash returns the hash of the name of the market's group of a level.
func (m *Market) groupHash(l level) uint64 {
	h := portable.Mix(portable.HashString(m.Provider), portable.HashString(m.Region))
	if l == typeInZone || l == wholeZone {
		h = portable.Mix(h, portable.HashString(m.Zone))
	}
	if l == typeInZone || l == typeInRegion {
		h = portable.Mix(h, portable.HashString(m.Type))
	}
	return portable.Mix(h, uint64(l))
}

// spells draws the times in which the market is closed.
func (b *builder) spells(mk *market, m *Market) {
	w := b.w
	from := len(w.spells)
	switch {
	case m.Spot && m.Available != nil:
		w.spells = b.recordedSpells(m.Name, m.Available, w.spells)
	case m.Spot && !m.Auction && b.intensity > 0:
		w.spells = b.squeezes(mk, m, w.spells)
	case !m.Spot && w.cfg.OnDemandShortages && b.intensity > 0:
		w.spells = b.onDemandSpells(m, w.spells)
	}
	for i := range w.spells[from:] {
		s := &w.spells[from+i]
		s.Depth = w.cfg.Truth.depth(s.Depth, s.Cause)
	}
	w.spells = b.orderedSpells(m, w.spells)
	own := w.spells[from:]
	slices.SortFunc(own, func(a, b Spell) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Until, b.Until), cmp.Compare(a.key, b.key))
	})
	mk.spellsFrom, mk.spellsUntil = int32(from), int32(len(w.spells))
	mk.closedFrom = int32(len(w.closed))
	for i, s := range own {
		if last := len(w.closed) - 1; i > 0 && s.From <= w.closed[last].until {
			w.closed[last].until = max(w.closed[last].until, s.Until)
			continue
		}
		w.closed = append(w.closed, interval{s.From, s.Until})
	}
	mk.closedUntil = int32(len(w.closed))
}

// squeezes appends the squeezes that are drawn for a market, and notes the rate
// at which they take its slots.
func (b *builder) squeezes(mk *market, m *Market, spells []Spell) []Spell {
	first := typeInZone
	if scarce(m, mk.band) {
		spells = b.scarceSpells(mk, m, spells)
		first = wholeZone
	}
	b.met = b.meetings(b.met[:0], m, mk.band, first)
	for _, x := range b.met {
		spells = b.groupOf(m, x.level, x.gap).met(b.p, x.share, spells)
		mk.squeezed += b.p.taken(x)
	}
	return spells
}

// scarceBefore is how long before the run the law of scarce types is drawn, so
// that those who hold nodes as it begins do not lose them to what began then.
const scarceBefore = 48 * hour

// scarceCopiesMax bounds the intensity for scarce types, of which a market has
// next to nothing left by then.
const scarceCopiesMax = 16

// scarceSpells appends the outages of the law of scarce types. An intensity
// above 1 adds those of further draws of the law, of the last only as many as
// its part asks for, so that a greater intensity has all squeezes of a lesser
// one.
func (b *builder) scarceSpells(mk *market, m *Market, spells []Spell) []Spell {
	law := &b.p.Scarce
	left := min(b.intensity, scarceCopiesMax)
	mk.squeezed = float64(law.Rate(b.scarcePlace(m, 0).Mean)*left) * b.p.DepthMean()
	for copied := uint64(0); left > 0; copied++ {
		place := b.scarcePlace(m, copied)
		b.outages = law.Outages(b.outages[:0], place, b.w.cfg.From-scarceBefore, b.end)
		for _, o := range b.outages {
			k := place.Own.At2(scarceDraws, uint64(o.From))
			if o.Until <= b.w.cfg.From || k.At1(drawMark).Float() >= left {
				continue
			}
			spells = append(spells, Spell{
				From: o.From, Until: o.Until, Depth: b.p.depth(k.At1(drawDepth)), Cause: CauseSqueeze, key: k.At1(drawTakes),
			})
		}
		left--
	}
	return spells
}

// recordedSpells appends a spell for every fall of the recorded availability of
// the named market. Its begin and its end lie anywhere between the probes that
// enclose them.
func (b *builder) recordedSpells(name string, a *Availability, spells []Spell) []Spell {
	k := b.recorded.At1(portable.HashString(name))
	up := true
	var fall Spell
	for i := range a.At {
		switch {
		case up && !a.Up[i]:
			draw := k.At2(uint64(a.At[i]), 1)
			fall = Spell{Depth: b.p.depth(draw.At1(0)), Cause: CauseRecorded, key: draw.At1(1)}
			if i > 0 {
				fall.From = a.between(k, i)
			}
		case !up && a.Up[i]:
			fall.Until = a.between(k, i)
			if fall.Until > b.w.cfg.From && fall.From < b.end {
				spells = append(spells, fall)
			}
		}
		up = a.Up[i]
	}
	if !up && fall.From < b.end {
		fall.Until = never
		spells = append(spells, fall)
	}
	return spells
}

// orderedSpells appends the squeezes of the scenario that concern the market.
// Their keys come from what they are, so that one more changes no other.
func (b *builder) orderedSpells(m *Market, spells []Spell) []Spell {
	capacity := policy.OnDemand
	if m.Spot {
		capacity = policy.Spot
	}
	for i := range b.w.cfg.Squeezes {
		s := &b.w.cfg.Squeezes[i]
		if s.Zone != "" && s.Zone != m.Zone || s.Type != "" && s.Type != m.Type || s.Capacity != "" && s.Capacity != capacity.String() {
			continue
		}
		key := chance.New(b.w.cfg.Seed, "ordered", s.Zone).At2(portable.HashString(s.Type), portable.HashString(s.Capacity))
		spells = append(spells, Spell{
			From: s.At, Until: s.At.Add(s.Duration), Depth: s.Depth, Cause: CauseOrdered,
			key: key.At2(uint64(s.At), uint64(s.Duration)), silent: s.NoNotice,
		})
	}
	return spells
}
