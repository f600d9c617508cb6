package weather

import (
	"fmt"
	"math"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A Market contains the properties of a market that the weather depends on.
type Market struct {
	// Name is unique. Draws are keyed by its hash.
	Name string

	Provider, Region, Zone, Type string

	// Family is the series of the type. The types of a family in a zone share their calm and their
	// stressed hours.
	Family string

	// Spot reports that the provider may reclaim nodes. GPU reports that the type has accelerators,
	// whose capacity is smaller.
	Spot, GPU bool

	// Auction reports that nodes are lost to higher bids, which the weather does not draw. For such
	// a Spot market, it draws only the slots and the shortages that the scenario orders.
	Auction bool

	// Band is the published band. For BandUnknown, a Spot market's band is drawn.
	Band policy.Band

	// Twin is the name of the Spot market of the same type and zone, if this is an on-demand
	// market. Its Band and its Available then describe the twin.
	Twin string

	// Available is a recorded availability, which replaces the modelled shortages and reclaims of
	// this market; nil if none is recorded.
	Available *Availability
}

// An Availability is a sequence of observations of whether nodes were available: Up[i] at At[i]. At
// is ascending. The first and last values also apply before and after all observations.
type Availability struct {
	At []policy.Time
	Up []bool

	// Nodes[i] is the number of nodes available at At[i]; it is above 0 if Up[i]. It is nil if the
	// recording has no numbers.
	Nodes []int32

	// Gap[i] is the time between the previous probe and At[i], in milliseconds: the change happened
	// in (At[i] − Gap[i], At[i]]. 0 means that the change happened at At[i] itself. It is nil if
	// every time is exact, as in a list of events. A gap that extends before At[i−1] is truncated
	// there.
	Gap []policy.Time
}

// An OrderedShortage is a capacity shortage specified by a scenario. The intensity does not scale
// it.
type OrderedShortage struct {
	At       policy.Time
	Duration time.Duration

	// Depth is the share of nodes that are taken, from 0 (launches are refused and no node is
	// taken) to 1.
	Depth float64

	// Zone, Type and Capacity ("spot" or "on-demand") restrict the markets; empty matches all.
	Zone, Type, Capacity string

	// NoNotice reports that nodes are lost without notice, as in the failure of a zone. On-demand
	// nodes never have a notice.
	NoNotice bool
}

// A NoticeFault is an interval in which notices are late or missing.
type NoticeFault struct {
	At       policy.Time
	Duration time.Duration

	// Share is the probability that a notice due in the interval is affected.
	Share float64

	// Delay is the delay of such a notice; 0 means that it never comes. A notice that would come
	// after the node is gone never comes either.
	Delay time.Duration
}

// An APIFault is an interval in which calls fail with probability Share.
type APIFault struct {
	At       policy.Time
	Duration time.Duration
	Share    float64
}

// A Config contains everything except the markets that the weather of a run depends on.
type Config struct {
	// Seed is the seed of all draws.
	Seed uint64

	// Trace is the digest of the trace that the weather is drawn for. It is part of
	// [Weather.Digest] and does not affect draws.
	Trace [32]byte

	// From is the start of the run, including the warm-up, and To its end. The weather is drawn to
	// one hour beyond To, so that it contains the notices before To of reclaims after it.
	From, To policy.Time

	// Intensity multiplies the rate of the calendars and the frequency of shortages. At 0, only
	// recorded and ordered events happen.
	Intensity float64

	// Slots, if above 0, replaces the drawn number of nodes that every Spot market can hold. A
	// recorded depth is limited to it.
	Slots int

	// OnDemandShortages makes on-demand launches of scarce types fail at times; see
	// [Params.OnDemandShare].
	OnDemandShortages bool

	// Shortages, NoticeFaults and APIFaults are specified by the scenario.
	Shortages    []OrderedShortage
	NoticeFaults []NoticeFault
	APIFaults    []APIFault

	// GoogleNotice, if set, is the time from a notice to the reclaim of nodes of Google Cloud,
	// instead of that of [policy.NoticeLead]; 0 means that there is no notice.
	GoogleNotice *time.Duration

	// Truth is how the drawn weather differs from the model.
	Truth Truth

	Params Params
}

// IntensityMax is the maximum valid intensity. Shortages stop increasing earlier: those of scarce
// types at 16, and those of a common type in the worst band at about 100, where all shortages of
// its groups affect it. Calendars continue to increase.
const IntensityMax = 1000

// validate returns an error that names the first field out of range.
func (c *Config) validate() error {
	switch {
	case c.From < 24*hour:
		return fmt.Errorf("weather: From is %d, must be later than the first day of 1970", c.From)
	case c.To <= c.From:
		return fmt.Errorf("weather: To is %v, must be later than From, %v", c.To, c.From)
	case c.To.Sub(c.From) > spanMax:
		return fmt.Errorf("weather: From %v to To %v is longer than the %v that can be drawn", c.From, c.To, spanMax)
	case !within(c.Intensity, 0, IntensityMax):
		return fmt.Errorf("weather: Intensity is %v, must be from 0 to %d", c.Intensity, IntensityMax)
	case c.Slots < 0 || c.Slots > slotsMax:
		return fmt.Errorf("weather: Slots is %d, must be from 0 to %d", c.Slots, slotsMax)
	}
	if err := c.Truth.validate(); err != nil {
		return err
	}
	if x := c.intensity(); x > IntensityMax {
		return fmt.Errorf("weather: Intensity times Truth.Hazard is %v, must be from 0 to %d", x, IntensityMax)
	}
	for i, s := range c.Shortages {
		if err := checkInterval("Shortages", i, s.At, s.Duration, "Depth", s.Depth); err != nil {
			return err
		}
		if s.Capacity != "" && s.Capacity != policy.Spot.String() && s.Capacity != policy.OnDemand.String() {
			return fmt.Errorf("weather: Shortages[%d].Capacity is %q, must be %q, %q or empty", i, s.Capacity, policy.Spot,
				policy.OnDemand)
		}
	}
	for i, s := range c.NoticeFaults {
		if err := checkInterval("NoticeFaults", i, s.At, s.Duration, "Share", s.Share); err != nil {
			return err
		}
		if s.Delay < 0 {
			return fmt.Errorf("weather: NoticeFaults[%d].Delay is %v, must not be negative", i, s.Delay)
		}
	}
	for i, s := range c.APIFaults {
		if err := checkInterval("APIFaults", i, s.At, s.Duration, "Share", s.Share); err != nil {
			return err
		}
	}
	return c.Params.validate()
}

// intensity returns the factor of the rate of the calendars and the frequency of shortages.
func (c *Config) intensity() float64 { return float64(c.Intensity * factor(c.Truth.Hazard)) }

// Values beyond these bounds are assumed to be typing errors and would require gigabytes.
const (
	spanMax  = 2 * 365 * 24 * time.Hour
	slotsMax = 100_000
)

func checkInterval(list string, i int, at policy.Time, d time.Duration, name string, share float64) error {
	switch {
	case at <= 0:
		return fmt.Errorf("weather: %s[%d].At is %d, must be later than 1970", list, i, at)
	case d <= 0:
		return fmt.Errorf("weather: %s[%d].Duration is %v, must be above 0", list, i, d)
	case !within(share, 0, 1):
		return fmt.Errorf("weather: %s[%d].%s is %v, must be from 0 to 1", list, i, name, share)
	}
	return nil
}

// within reports whether lo ≤ x ≤ hi; false for NaN.
func within(x, lo, hi float64) bool { return x >= lo && x <= hi && !math.IsNaN(x) }

// checkMarkets returns an error that names the first incomplete or duplicate market.
func checkMarkets(markets []Market) error {
	seen := make(map[string]struct{}, len(markets))
	for i := range markets {
		m := &markets[i]
		if m.Name == "" || m.Zone == "" || m.Type == "" {
			return fmt.Errorf("weather: market %d (%q in zone %q, type %q) needs a name, a zone and a type", i, m.Name,
				m.Zone, m.Type)
		}
		if _, twice := seen[m.Name]; twice {
			return fmt.Errorf("weather: market %q is there twice", m.Name)
		}
		seen[m.Name] = struct{}{}
		if m.Band < policy.BandUnknown || int(m.Band) >= bands {
			return fmt.Errorf("weather: market %q: Band is %d, must be from %d to %d", m.Name, m.Band, policy.BandUnknown,
				bands-1)
		}
		if err := m.Available.check(); err != nil {
			return fmt.Errorf("weather: market %q: %w", m.Name, err)
		}
	}
	return nil
}

func (a *Availability) check() error {
	if a == nil {
		return nil
	}
	if len(a.At) != len(a.Up) || len(a.At) == 0 {
		return fmt.Errorf("Available has %d instants and %d values, must have as many of each and at least one", len(a.At),
			len(a.Up))
	}
	if err := a.checkNodes(); err != nil {
		return err
	}
	if a.Gap != nil && len(a.Gap) != len(a.At) {
		return fmt.Errorf("Available has %d instants and %d gaps, must have as many of each or no gap", len(a.At), len(a.Gap))
	}
	for i, gap := range a.Gap {
		if gap < 0 {
			return fmt.Errorf("Available.Gap[%d] is %d ms, must not be negative", i, gap)
		}
	}
	for i := 1; i < len(a.At); i++ {
		if a.At[i] <= a.At[i-1] {
			return fmt.Errorf("Available.At[%d] is %v, must be later than %v before it", i, a.At[i], a.At[i-1])
		}
	}
	return nil
}
