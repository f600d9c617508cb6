package weather

import (
	"fmt"
	"math"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A Market is what the weather needs to know of one thing that has a price.
type Market struct {
	// Name is unique. Draws are keyed by its hash.
	Name string

	Provider, Region, Zone, Type string

	// Family is the series of the type. Types of one family in one zone have
	// their calm and their stressed hours together.
	Family string

	// Spot says that the provider may take nodes back. GPU says that the type
	// has accelerators, of which there are fewer.
	Spot, GPU bool

	// Auction says that nodes are lost to higher bids, which the weather does not draw: of a Spot
	// market it draws only the slots and the shortages that the scenario orders.
	Auction bool

	// Band is the published band. For BandUnknown, a Spot market's band is drawn.
	Band policy.Band

	// Twin is the name of the Spot market of the same type and zone, if this market is on demand:
	// its Band and its Available are then those of the twin.
	Twin string

	// Available is a recorded availability, which then takes the place of
	// everything modelled in this market; nil without one.
	Available *Availability
}

// An Availability says at some instants whether nodes could be had: Up[i] at
// At[i]. At ascends. Before the first and after the last sample their values
// hold.
type Availability struct {
	At []policy.Time
	Up []bool

	// Nodes[i] is how many nodes could be had at At[i], above 0 where Up[i]; nil
	// where only whether one could be had is known.
	Nodes []int32

	// Gap[i] is how long before At[i] the probe before it was, in milliseconds:
	// what changed by At[i] did so at one instant in (At[i] − Gap[i], At[i]].
	// 0 means that the change happened at At[i] itself. It is nil where every
	// instant is exact, as in a list of events. A gap that reaches behind
	// At[i−1] ends there.
	Gap []policy.Time
}

// An OrderedShortage is a capacity shortage that a scenario orders. It is not
// scaled by the intensity.
type OrderedShortage struct {
	At       policy.Time
	Duration time.Duration

	// Depth is the share of nodes that are taken, from 0 (launches are refused and no node is
	// taken) to 1.
	Depth float64

	// Zone, Type and Capacity ("spot" or "on-demand") restrict it; empty
	// matches all.
	Zone, Type, Capacity string

	// NoNotice says that nodes are lost without a word, as when a zone fails.
	// Nodes on demand never have a notice.
	NoNotice bool
}

// A NoticeFault is a time in which notices are late or missing.
type NoticeFault struct {
	At       policy.Time
	Duration time.Duration

	// Share is the probability that a notice due in that time is concerned.
	Share float64

	// Delay is how late such a notice comes; 0 means never. One that would come
	// after the node is gone does not come.
	Delay time.Duration
}

// An APIFault is a time in which calls fail with probability Share.
type APIFault struct {
	At       policy.Time
	Duration time.Duration
	Share    float64
}

// A Config is what the weather of a run depends on, apart from the markets.
type Config struct {
	// Seed chooses the weather among all that are equally likely.
	Seed uint64

	// Trace is the digest of the trace that the weather is drawn for. It is the first part of
	// [Weather.Digest] and changes no draw.
	Trace [32]byte

	// From is the start of the run, warm-up included, and To its end. The weather is drawn to one
	// hour beyond To, so that it has the notices before To of reclaims after it.
	From, To policy.Time

	// Intensity multiplies the rate of the calendars and the frequency of
	// shortages. At 0 nothing happens that is not recorded or ordered.
	Intensity float64

	// Slots, when above 0, replaces the number of nodes that every Spot market holds, which is
	// otherwise drawn. A recorded depth holds within it.
	Slots int

	// OnDemandShortages has launches on demand of scarce types refused at times;
	// see [Params.OnDemandShare].
	OnDemandShortages bool

	// Shortages, NoticeFaults and APIFaults are ordered by the scenario.
	Shortages    []OrderedShortage
	NoticeFaults []NoticeFault
	APIFaults    []APIFault

	// Truth is how what is drawn departs from the model.
	Truth Truth

	Params Params
}

// IntensityMax is the greatest valid intensity. Shortages stop growing earlier: those of scarce
// types at 16, and those of a common type in the worst band at about 100, where it meets all
// shortages of its groups. Calendars continue to grow.
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

// intensity returns what multiplies the rate of the calendars and the frequency of
// shortages.
func (c *Config) intensity() float64 { return float64(c.Intensity * factor(c.Truth.Hazard)) }

// What is refused beyond these bounds is a slip of the pen and would need
// gigabytes.
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

// within reports whether lo ≤ x ≤ hi, which NaN is not.
func within(x, lo, hi float64) bool { return x >= lo && x <= hi && !math.IsNaN(x) }

// checkMarkets returns an error that names the first market that is not
// complete.
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
