package weather

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// announcedMax is the maximum time from the first announcement of a reclaim to the reclaim. The
// weather is drawn for this time beyond the end of the run.
const announcedMax = hour

// never is later than every instant of a run.
const never policy.Time = 1 << 61

// New draws the weather of the markets. The result for a market depends neither on the other
// markets nor on their order.
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

	// intensity is the intensity of the configuration times the hazard factor of its truth.
	intensity float64

	// The streams of the permanent properties of a market, and of the events in this run. The keys
	// of the latter include the start of the run, since otherwise two windows with the same seed
	// would have the same weather, shifted.
	slots, band, frailty, recorded           chance.Key
	state, shortage, calendar, notice, alarm chance.Key
	alarmBurst                               chance.Key

	rhythms map[uint64]*rhythm
	groups  map[uint64]*group

	scratch []policy.Time
	exposed []exposure
	outages []Outage
	deep    []Outage // the parts of outages that affect on-demand launches too
	bursts  []Shortage
}

func newBuilder(cfg Config, markets int) *builder {
	from := uint64(cfg.From)
	stream := func(name string) chance.Key { return chance.Stream(cfg.Seed, name) }
	w := &Weather{cfg: cfg, markets: make([]market, 0, markets)}
	w.cfg.Shortages = slices.Clone(cfg.Shortages)
	w.cfg.NoticeFaults = slices.Clone(cfg.NoticeFaults)
	w.cfg.APIFaults = slices.Clone(cfg.APIFaults)
	return &builder{
		w: w, p: &w.cfg.Params, end: cfg.To + announcedMax, intensity: cfg.intensity(),
		slots: stream("slots"), band: stream("band"), frailty: stream("frailty"), recorded: stream("recorded"),
		state: stream("state").At1(from), shortage: stream("squeeze").At1(from), calendar: stream("calendar").At1(from),
		notice: stream("notice").At1(from), alarm: stream("alarm").At1(from),
		alarmBurst: stream("alarm-burst").At1(from),
		rhythms:    make(map[uint64]*rhythm), groups: make(map[uint64]*group),
	}
}

// lead returns the time from a notice to the reclaim of nodes of a provider.
func (c *Config) lead(provider string) policy.Time {
	if c.GoogleNotice != nil && provider == policy.GCP {
		return policy.Time(c.GoogleNotice.Milliseconds())
	}
	return policy.Time(policy.NoticeLead(provider).Milliseconds())
}

// add draws the weather of one market.
func (b *builder) add(m *Market) {
	mk := market{hash: portable.HashString(m.Name), name: m.Name, spot: m.Spot, band: policy.BandUnknown, slots: Unlimited,
		lead: b.w.cfg.lead(m.Provider)}
	if m.Spot {
		if !m.Auction {
			mk.band, mk.modelled = b.bandOf(m)
		}
		mk.slots = b.slotsOf(m, mk.hash)
		b.deepen(&mk, m)
	}
	b.shortages(&mk, m)
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
		mk.rate, mk.shortageRate = mk.rate+mk.shortageRate, 0
	case CorrelationZone:
		mk.rate = 0 // it is part of shortageRate
	}
	b.calendars(&mk)
	b.w.markets = append(b.w.markets, mk)
}

// calendarRate returns the mean rate of the calendars of a market with this band in the model, in
// reclaims per node-hour.
func (b *builder) calendarRate(m *Market, band policy.Band) float64 {
	factor := frailty(b.frailty.At1(m.groupHash(typeInZone)), b.p.FrailtySigma)
	return float64(float64(float64(b.p.rate(band)*b.p.calendarShare())*factor) * b.intensity)
}

// bandOf returns the published band of a market, or a drawn one. A drawn band is the same for a
// type in all zones of a region, as published bands are.
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

// slotsOf returns the number of nodes that a market can hold.
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

// An exposure is the degree to which a market is affected by the shortages of one of its groups: by
// this share of the candidates, whose mean gap is in hours.
type exposure struct {
	level      level
	share, gap float64
}

// exposures appends the exposures of a market with this band to its groups, from level first on.
func (b *builder) exposures(to []exposure, m *Market, band policy.Band, first level) []exposure {
	gap := func(l level) float64 {
		return b.p.CandidateGap / frailty(b.frailty.At1(m.groupHash(l)), b.p.FrailtySigma)
	}
	for l := first; l < levels; l++ {
		to = append(to, exposure{l, b.p.share(l, band, b.intensity), gap(l)})
	}
	if b.w.cfg.Truth.Correlation != CorrelationZone {
		return to
	}
	rate := b.calendarRate(m, band)
	for _, x := range to {
		rate += b.p.taken(x)
	}
	of := exposure{wholeZone, 1, gap(wholeZone)}
	of.share = rate / b.p.taken(of)
	return append(to[:0], of)
}

// taken returns the mean number of times per node-hour that the shortages of an exposure take a
// slot in the model.
func (p *Params) taken(x exposure) float64 {
	return float64(min(1, x.share)*p.DepthMean()) / (x.gap + p.lengthMean())
}

// groupOf returns the market's group of a level. Gap is the mean time between its candidates, in
// hours.
func (b *builder) groupOf(m *Market, l level, gap float64) *group {
	id := portable.Mix(m.groupHash(l), uint64(l))
	g := b.groups[id]
	if g == nil {
		g = newGroup(b.p, b.shortage.At1(id), gap, b.w.cfg.From, b.end)
		b.groups[id] = g
	}
	return g
}

// scarce reports whether the law of scarce types applies to a market.
func scarce(m *Market, band policy.Band) bool { return m.GPU && band == bands-1 }

// groupHash returns the hash of the name of the market's group at a level.
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

// shortages draws the intervals in which the market is closed.
func (b *builder) shortages(mk *market, m *Market) {
	w := b.w
	from := len(w.shortages)
	switch {
	case m.Spot && m.Available != nil:
		w.shortages = b.recordedShortages(m.Name, m.Available, w.shortages)
	case m.Spot && !m.Auction && b.intensity > 0:
		w.shortages = b.drawnShortages(mk, m, w.shortages)
	case !m.Spot && w.cfg.OnDemandShortages && b.intensity > 0:
		w.shortages = b.onDemandShortages(m, w.shortages)
	}
	for i := range w.shortages[from:] {
		s := &w.shortages[from+i]
		s.Depth = w.cfg.Truth.depth(s.Depth, s.Cause)
	}
	w.shortages = b.orderedShortages(m, w.shortages)
	own := w.shortages[from:]
	slices.SortFunc(own, func(a, b Shortage) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Until, b.Until), cmp.Compare(a.key, b.key))
	})
	mk.shortagesFrom, mk.shortagesUntil = int32(from), int32(len(w.shortages))
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

// drawnShortages appends the shortages drawn for a market, and sets the rate at which they take its
// slots.
func (b *builder) drawnShortages(mk *market, m *Market, shortages []Shortage) []Shortage {
	first := typeInZone
	if scarce(m, mk.band) {
		shortages = b.scarceShortages(mk, m, shortages)
		first = wholeZone
	}
	b.exposed = b.exposures(b.exposed[:0], m, mk.band, first)
	for _, x := range b.exposed {
		shortages = b.groupOf(m, x.level, x.gap).appendShortages(b.p, x.share, shortages)
		mk.shortageRate += b.p.taken(x)
	}
	return shortages
}

// scarceBefore is how long before the run the drawing of outages of scarce types starts, so that
// nodes held at the start of the run are not lost to an outage that starts at the same moment.
const scarceBefore = 48 * hour

// scarceCopiesMax is the maximum intensity for scarce types. At this intensity, their markets have
// almost no capacity left.
const scarceCopiesMax = 16

// scarceShortages appends the outages of the law of scarce types. An intensity above 1 adds the
// outages of further draws of the law, and only a fraction of those of the last draw, so that a
// greater intensity has all shortages of a smaller one.
func (b *builder) scarceShortages(mk *market, m *Market, shortages []Shortage) []Shortage {
	law := &b.p.Scarce
	left := min(b.intensity, scarceCopiesMax)
	mk.shortageRate = float64(law.Rate(b.scarcePlace(m, 0).Mean)*left) * b.p.DepthMean()
	for copied := uint64(0); left > 0; copied++ {
		place := b.scarcePlace(m, copied)
		b.outages = law.Outages(b.outages[:0], place, b.w.cfg.From-scarceBefore, b.end)
		for _, o := range b.outages {
			k := place.Own.At2(scarceDraws, uint64(o.From))
			if o.Until <= b.w.cfg.From || k.At1(drawMark).Float() >= left {
				continue
			}
			shortages = append(shortages, Shortage{
				From: o.From, Until: o.Until, Depth: b.p.depth(k.At1(drawDepth)), Cause: CauseShortage, key: k.At1(drawTakes),
			})
		}
		left--
	}
	return shortages
}

// recordedShortages appends a shortage for every fall of the recorded availability of the named
// market. Its start and its end are drawn between the probes that enclose them.
func (b *builder) recordedShortages(name string, a *Availability, shortages []Shortage) []Shortage {
	k := b.recorded.At1(portable.HashString(name))
	up := true
	var fall Shortage
	for i := range a.At {
		switch {
		case up && !a.Up[i]:
			draw := k.At2(uint64(a.At[i]), 1)
			fall = Shortage{Depth: b.p.depth(draw.At1(0)), Cause: CauseRecorded, key: draw.At1(1)}
			if i > 0 {
				fall.From = a.between(k, i)
			}
		case !up && a.Up[i]:
			fall.Until = a.between(k, i)
			if fall.Until > b.w.cfg.From && fall.From < b.end {
				shortages = append(shortages, fall)
			}
		}
		up = a.Up[i]
	}
	if !up && fall.From < b.end {
		fall.Until = never
		shortages = append(shortages, fall)
	}
	return shortages
}

// orderedShortages appends the shortages of the scenario that affect the market. Their keys depend
// only on their own properties, so that an additional shortage does not change the others.
func (b *builder) orderedShortages(m *Market, shortages []Shortage) []Shortage {
	capacity := policy.OnDemand
	if m.Spot {
		capacity = policy.Spot
	}
	for i := range b.w.cfg.Shortages {
		s := &b.w.cfg.Shortages[i]
		if s.Zone != "" && s.Zone != m.Zone || s.Type != "" && s.Type != m.Type ||
			s.Capacity != "" && s.Capacity != capacity.String() {
			continue
		}
		key := chance.New(b.w.cfg.Seed, "ordered", s.Zone).At2(portable.HashString(s.Type), portable.HashString(s.Capacity))
		shortages = append(shortages, Shortage{
			From: s.At, Until: s.At.Add(s.Duration), Depth: s.Depth, Cause: CauseOrdered,
			key: key.At2(uint64(s.At), uint64(s.Duration)), silent: s.NoNotice,
		})
	}
	return shortages
}
