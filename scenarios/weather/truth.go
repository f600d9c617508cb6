package weather

import (
	"fmt"
	"math"
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// A Correlation is a model of which reclaims happen together.
type Correlation uint8

// The correlations of reclaims.
const (
	// CorrelationModelled means that shortages of the model's groups take many slots at once, and
	// calendars take single ones.
	CorrelationModelled Correlation = iota

	// CorrelationNone means that every slot is lost independently: shortages refuse launches and
	// take no nodes, and the calendars have the total rate of the market.
	CorrelationNone

	// CorrelationZone means that every reclaim is part of a shortage of the zone, at the total rate
	// of the market: there are no calendars, and no shortages of types or regions. Scarce types of
	// a zone share their slack.
	CorrelationZone
)

// A Truth describes how the drawn weather and prices differ from the model whose constants policies
// and forecasters use too. It changes no published data (bands, placement scores, bid percentiles,
// forecasts of a trace), no recorded data except prices, and no events that a scenario orders. A
// factor of 0 means 1, so the zero Truth is the model itself.
type Truth struct {
	// Name is the name in flags and output; empty for the unchanged model. About describes in a
	// sentence what the truth changes.
	Name, About string

	// Hazard multiplies the rate of the calendars and the frequency of shortages, in addition to
	// [Config.Intensity].
	Hazard float64

	// Correlation determines which reclaims happen together. It does not change the mean reclaim
	// rate of a node.
	Correlation Correlation

	// NoNotices means that no reclaim has a notice; recommendations are unchanged. Lead multiplies
	// the time from a notice to its reclaim.
	NoNotices bool
	Lead      float64

	// Depth multiplies the share of slots that a shortage takes, up to 1.
	Depth float64

	// Slots multiplies the number of nodes that a Spot market can hold, which is at least 1.
	Slots float64

	// Volatility multiplies the distance of the logarithm of a Spot price from its mean over the
	// run. Flat sets every price to its mean; see [Truth.Prices].
	Volatility float64
	Flat       bool
}

// Truths returns the truths under which a comparison is repeated to determine how much it depends
// on the model. The first is the unchanged model.
func Truths() []Truth {
	return []Truth{
		{},
		{Name: "hazard-0.3", Hazard: 0.3, About: "reclaims and shortages come 0.3 times as often"},
		{Name: "hazard-3", Hazard: 3, About: "reclaims and shortages come 3 times as often"},
		{Name: "hazard-10", Hazard: 10, About: "reclaims and shortages come 10 times as often"},
		{Name: "alone", Correlation: CorrelationNone,
			About: "as many reclaims, each of one node by itself: shortages refuse launches and take no node"},
		{Name: "by-zone", Correlation: CorrelationZone, About: "as many reclaims, all of them in shortages of a whole zone"},
		{Name: "no-notice", NoNotices: true, About: "no reclaim has a notice"},
		{Name: "late-notice", Lead: 0.1, About: "notices come with a tenth of the time that the provider promises"},
		{Name: "depth-2", Depth: 2, About: "shortages take twice the share of nodes, at most all"},
		{Name: "prices-2", Volatility: 2,
			About: "the logarithm of a Spot price is twice as far from its mean over the run, and no price above on demand that was not"},
		{Name: "prices-flat", Flat: true, About: "every Spot price is its mean over the run"},
		{Name: "slots-0.2", Slots: 0.2, About: "Spot markets hold a fifth of the nodes, at least one"},
	}
}

// modelledName is the name of the unchanged model.
const modelledName = "modelled"

// TruthNamed returns the truth with this name, or an error that lists all names.
func TruthNamed(name string) (Truth, error) {
	var names []string
	for _, t := range Truths() {
		if t.String() == name {
			return t, nil
		}
		names = append(names, t.String())
	}
	return Truth{}, fmt.Errorf("there is no market model %q; known are %s", name, strings.Join(names, ", "))
}

// String returns the name.
func (t Truth) String() string {
	if t.Name == "" {
		return modelledName
	}
	return t.Name
}

// Modelled reports whether t is the unchanged model.
func (t *Truth) Modelled() bool { return *t == Truth{} }

// LeadOf returns the time from a notice to the reclaim if the provider promises lead; 0 means that
// there is no notice.
func (t *Truth) LeadOf(lead policy.Time) policy.Time {
	if t.NoNotices {
		return 0
	}
	return policy.Time(float64(float64(lead) * factor(t.Lead)))
}

// slots returns the number of nodes that a market can hold, where n is that of the model.
func (t *Truth) slots(n int32) int32 {
	if n <= 0 || t.Slots == 0 {
		return n
	}
	return max(1, int32(float64(float64(n)*t.Slots)+0.5))
}

// depth returns the share of slots that a drawn or recorded shortage takes, where d is that of the
// model.
func (t *Truth) depth(d float64, cause Cause) float64 {
	if t.Correlation == CorrelationNone && cause == CauseShortage {
		return 0
	}
	return min(1, float64(d*factor(t.Depth)))
}

// factor returns x, or 1 if x is 0.
func factor(x float64) float64 {
	if x == 0 {
		return 1
	}
	return x
}

// validate returns an error that names the first field out of range.
func (t *Truth) validate() error {
	for _, f := range []struct {
		name   string
		x, max float64
	}{{"Hazard", t.Hazard, IntensityMax}, {"Lead", t.Lead, 10}, {"Depth", t.Depth, 1000}, {"Slots", t.Slots,
		1000}, {"Volatility", t.Volatility, 100}} {
		if !within(f.x, 0, f.max) {
			return fmt.Errorf("weather: Truth.%s is %v, must be from 0 to %v", f.name, f.x, f.max)
		}
	}
	if t.Correlation > CorrelationZone {
		return fmt.Errorf("weather: Truth.Correlation is %d, must be from 0 to %d", t.Correlation, CorrelationZone)
	}
	return nil
}

// truth writes the changes of t; nothing for the unchanged model.
func (d *digester) truth(t *Truth) {
	if t.Modelled() {
		return
	}
	bits := math.Float64bits
	d.record(recordTruth, flags(t.NoNotices, t.Flat), int32(t.Correlation), bits(t.Volatility), bits(t.Hazard),
		bits(t.Lead), bits(t.Depth))
	d.record(recordTruth, 0, 0, 0, bits(t.Slots), 0, 0)
}
