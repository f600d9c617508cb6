package generate

import (
	"fmt"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// A Kind is a price process.
type Kind string

// The kinds of law.
const (
	// Walk: the provider changes each price every few hours by a small step, mostly in the
	// direction of the previous one. AWS has done so since 2017.
	Walk Kind = "walk"

	// Auction: bids set the price, which moves to and fro around a level and at times is far above
	// it. AWS held such auctions until 2017.
	Auction Kind = "auction"

	// Jumps: the price stays at a level for days, and bids raise it by a factor for a while. This
	// is the quiet auction of Rackspace.
	Jumps Kind = "jumps"

	// List: the provider publishes a list of prices on few dates, as Google and Azure do.
	List Kind = "list"
)

// A Law is a stochastic model of the prices of markets. It describes the logarithm of the ratio of
// the price to the on-demand price.
type Law struct {
	// Name is the name of the preset, or of the trace that the law was fitted to. Imitates
	// describes in one line the prices that it imitates.
	Name     string `json:"name"`
	Imitates string `json:"imitates"`
	Kind     Kind   `json:"kind"`

	// Provider is the provider whose markets are drawn if none are specified.
	Provider string `json:"provider"`

	// Unit is the smallest price. Every price is a multiple of it.
	Unit policy.Money `json:"unit"`

	// Least and Most are the bounds of price ratios.
	Least float64 `json:"least"`
	Most  float64 `json:"most"`

	// Level is the mean of the logarithm of a market's price ratio.
	Level Spread `json:"level"`

	// Classes are the levels of types with and without accelerators, if the recording distinguishes
	// them; nil if Level applies to all types.
	Classes *Classes `json:"classes,omitempty"`

	// Still is the share of markets whose price never changes, in each fifth of the markets by
	// level, the cheapest first.
	Still [5]float64 `json:"still"`

	// StillShared is the share of the variance of this property that the zones of a type have in
	// common.
	StillShared float64 `json:"still_shared"`

	// Activity is the activity of the other markets: in a walk and an auction, the number of
	// changes per day; under jumps, the number of times per year that bids raise the price; in a
	// list, the share of the dates at which a price changes.
	Activity Spread `json:"activity"`

	// Size is the standard deviation of the steps of a market or, under jumps and lists, the median
	// size of its steps.
	Size Spread `json:"size"`

	// Tail is the shape of the distribution of steps: above 0, large steps are more frequent than
	// in the normal distribution; at -1, all steps have the same size.
	Tail float64 `json:"tail"`

	// StepMost is the maximum size of a step.
	StepMost float64 `json:"step_most"`

	// Scatter is the standard deviation of the distance of the first price from its level, as a
	// multiple of Size.
	Scatter float64 `json:"scatter"`

	// Pull is the share of the distance from its level by which a price returns in each step.
	Pull float64 `json:"pull"`

	// Together is the share of the variance of steps that the zones of a type have in common.
	Together float64 `json:"together"`

	// The parameters of the kind of law; the others are nil.
	Walk    *WalkLaw    `json:"walk,omitempty"`
	Auction *AuctionLaw `json:"auction,omitempty"`
	Jumps   *JumpsLaw   `json:"jumps,omitempty"`
	List    *ListLaw    `json:"list,omitempty"`
}

// Classes are levels by class of types. The lowest price ratios in a recording occur for a few
// types with accelerators. Without classes, any type may have them, and the cheapest of many types
// then costs far less than it ever did.
type Classes struct {
	Plain       Spread `json:"plain"`
	Accelerated Spread `json:"accelerated"`

	// Family is the share of the variance of levels that the types of a family have in common. It
	// is part of the share that the zones of a type have in common.
	Family float64 `json:"family"`
}

func (c *Classes) validate() error {
	return first(c.Plain.validate("classes.plain", -20, 20), c.Accelerated.validate("classes.accelerated", -20, 20),
		within("classes.family", c.Family, 0, min(c.Plain.Shared, c.Accelerated.Shared)))
}

// A WalkLaw contains the parameters of a walk.
type WalkLaw struct {
	// TickLeast and TickMost are the bounds of the time between two ticks of a market's clock,
	// which is uniformly distributed, in hours.
	TickLeast float64 `json:"tick_least_hours"`
	TickMost  float64 `json:"tick_most_hours"`

	// Momentum is the correlation of the persistent part of a step with that of the step six hours
	// before. Jitter is the share of the variance of steps that does not persist.
	Momentum float64 `json:"momentum"`
	Jitter   float64 `json:"jitter"`

	// Cycle is the length of a cycle in days. In each cycle, a market moves during one interval,
	// whose length depends on its activity, and rests otherwise.
	Cycle float64 `json:"cycle_days"`

	// Skip is the share of ticks within an interval at which the price does not change.
	Skip float64 `json:"skip"`

	// Hidden controls the effect of moves that are too small for the unit of prices. At 0, a market
	// moves more often to compensate, so that its price changes as often as its activity specifies
	// if that is possible. At 1, it does not, so that the prices of cheap markets change less often
	// than those of expensive ones.
	Hidden float64 `json:"hidden,omitempty"`
}

// An AuctionLaw contains the parameters of an auction.
type AuctionLaw struct {
	// The time between two changes is TickLeast hours plus a log-normal excess. TickSpread is the
	// standard deviation of the logarithm of the excess.
	TickLeast  float64 `json:"tick_least_hours"`
	TickSpread float64 `json:"tick_spread"`

	// Noise is the share of the variance of steps that the next step reverts.
	Noise float64 `json:"noise"`

	// Spikes is the number of times per year that bids raise the price of a market to at least
	// SpikeLeast times on-demand. SpikeHours is the median duration of a spike, and SpikeSpread the
	// standard deviation of the duration's logarithm. SpikeTail is the mean of the logarithm of the
	// height relative to SpikeLeast.
	Spikes      Spread  `json:"spikes_per_year"`
	SpikeLeast  float64 `json:"spike_least"`
	SpikeTail   float64 `json:"spike_tail"`
	SpikeHours  float64 `json:"spike_hours"`
	SpikeSpread float64 `json:"spike_spread"`
}

// A JumpsLaw contains the parameters of jumps.
type JumpsLaw struct {
	// Every is the time in hours between two rounds of the auction.
	Every float64 `json:"every_hours"`

	// Stay is the mean time for which a price stays raised, in hours.
	Stay float64 `json:"stay_hours"`

	// Spread is the standard deviation of the logarithm of the size of a jump.
	Spread float64 `json:"spread"`
}

// A ListLaw contains the parameters of a list.
type ListLaw struct {
	// Dates is the number of dates of change per month. DayOfMonth is the earliest usual day, and
	// DaySpread the number of days by which it may be later.
	Dates      float64 `json:"dates_per_month"`
	DayOfMonth int     `json:"day_of_month"`
	DaySpread  int     `json:"day_spread"`

	// Spread is the standard deviation of the logarithm of the size of a step.
	Spread float64 `json:"spread"`
}

func wrongValue(name string, value any, must string) error {
	return fmt.Errorf("%w: %s is %v, %s", trace.ErrValue, name, value, must)
}

func share(name string, v float64) error { return within(name, v, 0, 1) }

func within(name string, v, least, most float64) error {
	if !(v >= least && v <= most) {
		return wrongValue(name, v, fmt.Sprintf("it must be from %v to %v", least, most))
	}
	return nil
}

// Validate returns an error about the first field whose value is invalid.
func (l *Law) Validate() error {
	if l.Unit <= 0 {
		return wrongValue("unit", l.Unit, "it must be above 0")
	}
	if !(l.Least > 0 && l.Most > l.Least) {
		return wrongValue("least to most", fmt.Sprint(l.Least, " to ", l.Most), "least must be above 0 and below most")
	}
	activityMax := 1e5
	if l.Kind == List {
		activityMax = 1
	}
	checks := []error{
		l.Level.validate("level", -20, 20), l.Activity.validate("activity", 0, activityMax),
		l.Size.validate("size", 0, 20), within("tail", l.Tail, -1, 10), within("step_most", l.StepMost, 1e-6, 20),
		within("scatter", l.Scatter, 0, 1e4),
		share("pull", l.Pull), share("together", l.Together), share("still_shared", l.StillShared),
	}
	for _, s := range l.Still {
		checks = append(checks, within("still", s, 0, 1))
	}
	for _, err := range checks {
		if err != nil {
			return err
		}
	}
	if l.Classes != nil {
		if err := l.Classes.validate(); err != nil {
			return err
		}
	}
	switch {
	case l.Kind == Walk && l.Walk != nil:
		return l.Walk.validate()
	case l.Kind == Auction && l.Auction != nil:
		return l.Auction.validate()
	case l.Kind == Jumps && l.Jumps != nil:
		return l.Jumps.validate()
	case l.Kind == List && l.List != nil:
		return l.List.validate()
	}
	return wrongValue("kind", fmt.Sprintf("%q", l.Kind),
		"it must be walk, auction, jumps or list, with the parameters of that kind")
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *WalkLaw) validate() error {
	return first(
		within("walk.tick_least_hours", w.TickLeast, 1.0/60, 1e4),
		within("walk.tick_most_hours", w.TickMost, w.TickLeast, 1e4),
		within("walk.momentum", w.Momentum, 0, 0.9999),
		share("walk.jitter", w.Jitter),
		within("walk.cycle_days", w.Cycle, 0.5, 1e4),
		within("walk.skip", w.Skip, 0, 0.99),
		share("walk.hidden", w.Hidden),
	)
}

func (a *AuctionLaw) validate() error {
	return first(
		within("auction.tick_least_hours", a.TickLeast, 1.0/3600, 1e4),
		within("auction.tick_spread", a.TickSpread, 0, 5),
		share("auction.noise", a.Noise),
		a.Spikes.validate("auction.spikes_per_year", 0, 1e5),
		within("auction.spike_least", a.SpikeLeast, 1e-3, 1e3),
		within("auction.spike_tail", a.SpikeTail, 0, 10),
		within("auction.spike_hours", a.SpikeHours, 1.0/60, 1e4),
		within("auction.spike_spread", a.SpikeSpread, 0, 5),
	)
}

func (j *JumpsLaw) validate() error {
	return first(
		within("jumps.every_hours", j.Every, 1.0/60, 1e4),
		within("jumps.stay_hours", j.Stay, 1.0/60, 1e5),
		within("jumps.spread", j.Spread, 0, 5),
	)
}

func (l *ListLaw) validate() error {
	return first(
		within("list.dates_per_month", l.Dates, 0.01, 1),
		within("list.day_of_month", float64(l.DayOfMonth), 1, 28),
		within("list.day_spread", float64(l.DaySpread), 0, 27),
		within("list.spread", l.Spread, 0, 5),
	)
}
