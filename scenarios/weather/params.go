package weather

import (
	"fmt"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// bands is the number of published bands.
const bands = policy.BandCount

// A level is a kind of group of markets that lack capacity together.
type level int

// The levels, from the narrowest to the widest.
const (
	typeInZone level = iota
	typeInRegion
	wholeZone
	wholeRegion
	levels
)

// String returns the name used in keys.
func (l level) String() string {
	return [...]string{"type-zone", "type-region", "zone", "region"}[l]
}

// Params are the constants of the model. [Params.Assumptions] lists the evidence for each: a
// recording that it was fitted to, a published figure or an assumption. Events drawn with them are
// modelled and not recorded.
type Params struct {
	// BandMonthly is the probability that a node is reclaimed within a month of 730 hours, by band;
	// see [policy.MonthlyReclaims].
	BandMonthly [bands]float64

	// BandSharesCPU and BandSharesGPU are the shares of markets in each band, from which the band
	// of a market without a published one is drawn. They are from the Spot Instance Advisor for
	// Linux of 2025-06-28.
	BandSharesCPU, BandSharesGPU [bands]float64

	// SlotsCPU and SlotsGPU are the median numbers of nodes that a market can hold, and SlotsSigma
	// the standard deviation of the logarithm. With greater values, a policy can concentrate more
	// nodes in one market.
	SlotsCPU, SlotsGPU, SlotsSigma float64

	// FrailtySigma is the standard deviation of the logarithm of the factor, with mean 1, by which
	// the actual rates of markets in the same band differ.
	FrailtySigma float64

	// HourOfDay and DayOfWeek (Sunday first) are factors of the calendars' rate by the local time
	// of the region. Each has mean 1. They are the relative unavailability of V100 in us-west-2,
	// February 2023: .36 at 01–06 hours local against .50 at 13–16, .26 on Sunday against .50 in
	// midweek.
	HourOfDay [24]float64
	DayOfWeek [7]float64

	// CalmHours and StressedHours are the mean lengths of the two states of a family in a zone, and
	// Stressed is the factor of the calendars' rate in the second. The factor in the first follows
	// from the mean being 1.
	CalmHours, StressedHours, Stressed float64

	// GapShape is the Weibull shape of the time between two shortages of a group of common types,
	// and LengthShape and LengthScale (hours) are the Weibull parameters of their length. Fitted:
	// those of the up and down times of r5.16xlarge in three zones of us-east-1, probed every 34 s
	// for six days of April 2023.
	GapShape, LengthShape, LengthScale float64

	// CandidateGap is the mean time between two shortages of a group, in hours. Each of its markets
	// has the share of these shortages that its band requires. A milder market has only shortages
	// that the harsher ones have too.
	CandidateGap float64

	// ShortageShare is the part of a band's rate that shortages of each level contribute, from the
	// narrowest level: a type in a zone, a type in a region, a zone, a region. Calendars contribute
	// the rest, since a published frequency counts every interruption.
	ShortageShare [levels]float64

	// Scarce is the law of the availability of types with accelerators in the highest, unbounded
	// band. It replaces the shortages of the type in its zone and its region. Fitted: the mean of
	// the laws of V100 in three regions and nine zones, probed every 195 s for 45 days from
	// February 2023. A law fitted to another recording may replace it. Its width is fitted to the
	// only recording of depth, of 16 H100 at once in 13 zones of Google Cloud every ten minutes for
	// ten days of October 2025, which was not used for the other constants.
	Scarce Law

	// DepthCalm is the mean slack, in standard deviations, of types with accelerators whose markets
	// the law of scarce types does not close: types in a milder band, or with only a recorded
	// availability. At 2.3, they are at their minimum depth, one node, in one hour of a hundred.
	// Modelled: no measurement is known.
	DepthCalm float64

	// DepthWhole is the probability that a shortage takes every slot. Published: of the drops of 16
	// V100 requested together 36–72% took all. Otherwise, its depth is drawn from the beta
	// distribution with DepthA and DepthB. Fitted: the share of a fleet of 32 p3 nodes that was
	// lost within 3 minutes, in 43 losses over 11 hours. That fleet never lost all of its nodes
	// together; the number of its zones is unknown.
	DepthWhole, DepthA, DepthB float64

	// OnDemandShare is the part of the shortages of a scarce type (with accelerators, or in the
	// highest, unbounded band) that are so deep that on-demand launches are refused too. For the
	// law of scarce types, it is a part of their time. With a greater value, the on-demand baseline
	// waits more often. Modelled: providers state that on-demand launches may find no capacity, and
	// no measurement of the frequency is known. It has no effect unless [Config.OnDemandShortages]
	// is set.
	OnDemandShare float64

	// TakeWindow is the time after the start of a shortage within which it takes its slots: more
	// than 92% of simultaneous interruptions affect the same type and zone within 3 minutes. A
	// shorter shortage, which some of scarce types and of recordings are, takes its slots before it
	// ends; those of common types last at least this long.
	TakeWindow time.Duration

	// NoticeLost is the share of notices that never come, and NoticeLate the share that comes with
	// only a part of the lead, which depends on the provider: see [policy.NoticeLead]. Modelled: no
	// measurement is known.
	NoticeLost, NoticeLate float64

	// RecommendedShare is the share of reclaims that a rebalance recommendation precedes, and
	// RecommendedLead the mean time from the recommendation to the notice. According to the AWS
	// documentation, a recommendation may come before the notice or together with it; the time
	// between them is modelled. A recommendation comes at most an hour before the reclaim.
	RecommendedShare float64
	RecommendedLead  time.Duration

	// RecommendedPrecision is the share of recommendations that precede the reclaim of their node
	// within an hour. The others are false alarms, whose rate is a constant multiple of the
	// market's mean reclaim rate, modulated by its rhythm. They are single ones, in proportion to
	// calendars, and bursts with the depth of shortages. With a smaller value, alarms are more
	// frequent. If reclaims are frequent, some false alarms precede an unrelated reclaim by chance,
	// which increases the observed precision. That bursts are false as often as single
	// recommendations is modelled.
	RecommendedPrecision float64
}

// DefaultParams returns the constants that runs use by default.
func DefaultParams() Params {
	return Params{
		BandMonthly:   policy.MonthlyReclaims(),
		BandSharesCPU: [bands]float64{.22, .19, .14, .13, .33},
		BandSharesGPU: [bands]float64{.19, .10, .11, .11, .50},
		SlotsCPU:      50,
		SlotsGPU:      4,
		SlotsSigma:    0.7,
		FrailtySigma:  0.8,
		HourOfDay: [24]float64{
			.90, .84, .84, .84, .84, .84, .84, .90, .96, 1.02, 1.08, 1.12,
			1.15, 1.17, 1.17, 1.17, 1.17, 1.14, 1.10, 1.03, 1.01, .98, .96, .93,
		},
		DayOfWeek:            [7]float64{.60, 1.04, 1.14, 1.16, 1.14, 1.06, .86},
		CalmHours:            48,
		StressedHours:        6,
		Stressed:             4,
		GapShape:             0.585,
		LengthShape:          0.78,
		LengthScale:          0.325,
		CandidateGap:         24,
		ShortageShare:        [levels]float64{.25, .125, .1, .025},
		DepthCalm:            2.3,
		DepthWhole:           .5,
		DepthA:               1.1,
		DepthB:               6.4,
		OnDemandShare:        .1,
		TakeWindow:           180 * time.Second,
		NoticeLost:           .01,
		NoticeLate:           .02,
		RecommendedShare:     .6,
		RecommendedLead:      10 * time.Minute,
		RecommendedPrecision: .25,
		Scarce:               scarceLaw(),
	}
}

// scarceLaw returns the default of Params.Scarce.
func scarceLaw() Law {
	return Law{
		Paces:  []float64{0.25, 1, 4, 16, 100},
		Common: []float64{0, 0.045, 0.34, 0.195, 0.08},
		Own:    []float64{0.035, 0.02, 0.17, 0.085, 0.03},
		Unrest: 0.4,
		Mean:   0.44,
		Spread: 0.79,

		Width:       0.73,
		WidthSpread: 1.3,
		Hour: [24]float64{
			.27, .25, .21, .16, .09, .03, -.03, -.08, -.12, -.15, -.17, -.19,
			-.19, -.19, -.19, -.17, -.14, -.10, -.04, .03, .10, .17, .22, .26,
		},
		Weekday: [7]float64{-.01, -.03, -.13, -.19, -.07, .21, .21},
	}
}

// validate returns an error that names the first constant out of range.
func (p *Params) validate() error {
	for b, m := range p.BandMonthly {
		if !within(m, 0, 0.99) {
			return fmt.Errorf("weather: Params.BandMonthly[%d] is %v, must be from 0 to 0.99", b, m)
		}
	}
	for _, c := range []struct {
		name      string
		x, lo, hi float64
	}{
		{"SlotsCPU", p.SlotsCPU, 1, slotsMax},
		{"SlotsGPU", p.SlotsGPU, 1, slotsMax},
		{"SlotsSigma", p.SlotsSigma, 0, 3},
		{"FrailtySigma", p.FrailtySigma, 0, 3},
		{"CalmHours", p.CalmHours, 1, 1e4},
		{"StressedHours", p.StressedHours, 1, 1e4},
		{"Stressed", p.Stressed, 1, 1 + p.CalmHours/p.StressedHours},
		{"GapShape", p.GapShape, 0.2, 5},
		{"LengthShape", p.LengthShape, 0.2, 5},
		{"LengthScale", p.LengthScale, 0.01, 1e4},
		{"CandidateGap", p.CandidateGap, 0.1, 1e5},
		{"DepthCalm", p.DepthCalm, -5, 5},
		{"DepthWhole", p.DepthWhole, 0, 1},
		{"DepthA", p.DepthA, 0.05, 100},
		{"DepthB", p.DepthB, 0.05, 100},
		{"OnDemandShare", p.OnDemandShare, 0.001, 1},
		{"TakeWindow in seconds", p.TakeWindow.Seconds(), 1, 3600},
		{"NoticeLost + NoticeLate", p.NoticeLost + p.NoticeLate, 0, 1},
		{"NoticeLost", p.NoticeLost, 0, 1},
		{"RecommendedShare", p.RecommendedShare, 0, 1},
		{"RecommendedLead in seconds", p.RecommendedLead.Seconds(), 0, 1800},
		{"RecommendedPrecision", p.RecommendedPrecision, 0.01, 1},
	} {
		if !within(c.x, c.lo, c.hi) {
			return fmt.Errorf("weather: Params.%s is %v, must be from %v to %v", c.name, c.x, c.lo, c.hi)
		}
	}
	for l := range levels {
		if !within(p.ShortageShare[l], 0, 1) {
			return fmt.Errorf("weather: Params.ShortageShare of %v is %v, must be from 0 to 1", l, p.ShortageShare[l])
		}
	}
	if calendars := p.calendarShare(); calendars < 0 {
		return fmt.Errorf("weather: Params.ShortageShare adds up to %v, must be at most 1", 1-calendars)
	}
	return p.Scarce.validate()
}
