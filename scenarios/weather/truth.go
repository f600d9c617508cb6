package weather

import (
	"fmt"
	"math"
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// A Correlation says which reclaims come together.
type Correlation uint8

// The correlations of reclaims.
const (
	// CorrelationModelled has shortages of the groups of the model take many slots
	// at once, and calendars take single ones.
	CorrelationModelled Correlation = iota

	// CorrelationNone means that every slot is lost independently: shortages refuse launches and
	// take no nodes, and the calendars run at the whole rate of the market.
	CorrelationNone

	// CorrelationZone has every reclaim come from a shortage of the zone, at the
	// whole rate of the market: there are no calendars, and no shortages of
	// types or regions. Scarce types of a zone share their slack.
	CorrelationZone
)

// A Truth describes how the drawn weather and prices depart from the model whose constants policies
// and forecasters use too. It changes nothing that is published (bands, placement scores, bid
// percentiles, forecasts of a trace), nothing that was recorded except prices, and nothing that a
// scenario orders. A factor of 0 means 1, so the zero Truth is the model itself.
type Truth struct {
	// Name is what flags and output call it; empty for the model as it is. About
	// says in a sentence what it changes.
	Name, About string

	// Hazard multiplies the rate of the calendars and the frequency of shortages, in addition to
	// [Config.Intensity].
	Hazard float64

	// Correlation says which reclaims come together. How often a node is
	// reclaimed stays as it is in the mean.
	Correlation Correlation

	// NoNotices has no reclaim announced by a notice; recommendations come as
	// they do. Lead multiplies the time from a notice to its reclaim.
	NoNotices bool
	Lead      float64

	// Depth multiplies the share of slots that a shortage takes, up to 1.
	Depth float64

	// Slots multiplies the number of nodes that a Spot market holds, which stays at least 1.
	Slots float64

	// Volatility multiplies the distance of the logarithm of a Spot price from its mean over the
	// run, and Flat sets every price to its mean; see [Truth.Prices].
	Volatility float64
	Flat       bool
}

// Truths returns those under which a comparison is repeated to see how far it
// rests on the model; the first is the model as it is.
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

// modelledName is what the model as it is is called.
const modelledName = "modelled"

// TruthNamed returns the truth of this name, or an error that lists those there
// are.
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

// Modelled reports whether t is the model as it is.
func (t *Truth) Modelled() bool { return *t == Truth{} }

// LeadOf returns how long before a reclaim its notice comes where the provider
// promises lead; 0 for never.
func (t *Truth) LeadOf(lead policy.Time) policy.Time {
	if t.NoNotices {
		return 0
	}
	return policy.Time(float64(float64(lead) * factor(t.Lead)))
}

// slots returns how many nodes a market holds where the model has n.
func (t *Truth) slots(n int32) int32 {
	if n <= 0 || t.Slots == 0 {
		return n
	}
	return max(1, int32(float64(float64(n)*t.Slots)+0.5))
}

// depth returns the share of slots that a drawn or recorded shortage takes where
// the model has d.
func (t *Truth) depth(d float64, cause Cause) float64 {
	if t.Correlation == CorrelationNone && cause == CauseShortage {
		return 0
	}
	return min(1, float64(d*factor(t.Depth)))
}

// factor returns x, and 1 for the zero value.
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

// truth writes what t changes, nothing for the model as it is.
func (d *digester) truth(t *Truth) {
	if t.Modelled() {
		return
	}
	bits := math.Float64bits
	d.record(recordTruth, flags(t.NoNotices, t.Flat), int32(t.Correlation), bits(t.Volatility), bits(t.Hazard),
		bits(t.Lead), bits(t.Depth))
	d.record(recordTruth, 0, 0, 0, bits(t.Slots), 0, 0)
}
