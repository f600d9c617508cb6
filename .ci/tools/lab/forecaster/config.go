package forecaster

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/.ci/tools/lab/fit"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// A Config says which data to make. Start from [DefaultConfig].
type Config struct {
	// Seed chooses all draws: clusters, prices and generated weather.
	Seed uint64

	// Recordings hold recorded availability, from which rows are made whose
	// labels were recorded. There may be none.
	Recordings []*trace.Trace

	// HoldOut are the regions of which nothing is trained on or chosen by.
	HoldOut []string

	// Regions are the regions of generated realisations, except those held out.
	Regions []string

	// TrainUntil and ChooseUntil split time: rows to train on are before the first, rows to
	// choose by between the two, and rows to report on after the second. 0 puts them at
	// half and at seven tenths of the first recording.
	TrainUntil, ChooseUntil policy.Time

	// Copies is how many clusters meet each recorded region in rows to train
	// on; to choose and to report there are half as many.
	Copies int

	// Generated is how many realisations are drawn to train on; to choose there are a
	// quarter and to report half as many.
	Generated int

	// Scarce is how many realisations of accelerators alone are drawn to train on; a
	// quarter as many are drawn to choose by. Their laws are fitted to the training part of
	// the recordings.
	Scarce int

	// Days is how long a generated realisation lasts.
	Days int

	// RecordedShare and GeneratedShare are the parts of the markets and ticks of
	// a realisation that become rows.
	RecordedShare, GeneratedShare, ScarceShare float64

	laws []regionLaw
}

// A regionLaw is the law that was fitted to a recorded region.
type regionLaw struct {
	region string
	law    weather.Law
}

// DefaultConfig returns what is made where nothing else is said.
func DefaultConfig() Config {
	return Config{
		Seed: 1, HoldOut: []string{"us-west-2"}, Regions: []string{"us-east-1", "us-east-2", "eu-west-1", "ap-southeast-2"},
		Copies: 24, Generated: 240, Scarce: 300, Days: 8, RecordedShare: 0.2, GeneratedShare: 0.04, ScarceShare: 0.03,
	}
}

// Horizons are how far labels look ahead.
var Horizons = []time.Duration{time.Hour, 6 * time.Hour}

// The gap between two splits is the longest horizon plus the price history that a row uses.
// The experience of a cluster starts empty in each split.
const (
	lookAhead = 6 * time.Hour
	history   = 4 * time.Hour
	tick      = 10 * time.Minute
)

// validate completes the configuration and names what is wrong in it.
func (c *Config) validate() error {
	for _, n := range [...]struct {
		name        string
		n, from, to int
	}{
		{"copies", c.Copies, 2, 1000}, {"generated", c.Generated, 0, 10_000}, {"scarce", c.Scarce, 0, 10_000}, {"days",
			c.Days, 2, 60},
	} {
		if n.n < n.from || n.n > n.to {
			return fmt.Errorf("%s: %d is not from %d to %d", n.name, n.n, n.from, n.to)
		}
	}
	for _, x := range [...]struct {
		name string
		x    float64
	}{{"recorded share", c.RecordedShare}, {"generated share", c.GeneratedShare}, {"scarce share", c.ScarceShare}} {
		if !(x.x > 0 && x.x <= 1) {
			return fmt.Errorf("%s: %v is not in (0, 1]", x.name, x.x)
		}
	}
	if len(c.HoldOut) == 0 {
		return errors.New("hold out: no region is named, and a forecaster cannot be judged by what it was trained on")
	}
	for _, r := range c.HoldOut {
		if slices.Contains(c.Regions, r) {
			return fmt.Errorf("hold out: %s is a region to train on", r)
		}
	}
	if c.Generated > 0 && len(c.Regions) == 0 {
		return errors.New("regions: none is named to draw worlds in")
	}
	if c.Generated == 0 && len(c.Recordings) == 0 {
		return errors.New("there is neither a recording nor a world to draw")
	}
	if err := c.cut(); err != nil {
		return err
	}
	return c.fit()
}

// fit fits the laws of scarce types to what of the recordings is to train on.
func (c *Config) fit() error {
	c.laws = nil
	for _, r := range c.Recordings {
		var series []trace.Series
		for _, s := range r.Series {
			n, _ := slices.BinarySearch(s.At, c.TrainUntil.Add(-lookAhead-history))
			if s.Available == nil || n == 0 || slices.Contains(c.HoldOut, s.Region) {
				continue
			}
			x := trace.Series{Provider: s.Provider, Region: s.Region, Zone: s.Zone, Type: s.Type, Product: s.Product}
			// Without depth and prices on demand rows repeat each other, which a trace
			// drops in place: the recording keeps its own.
			x.At, x.Spot, x.Available = slices.Clone(s.At[:n]), slices.Clone(s.Spot[:n]), slices.Clone(s.Available[:n])
			if s.ProbeGap != nil {
				x.ProbeGap = slices.Clone(s.ProbeGap[:n])
			}
			series = append(series, x)
		}
		if len(series) == 0 {
			continue
		}
		t, err := trace.New(r.Name, series)
		if err != nil {
			return err
		}
		law, err := fit.Estimate(t)
		if errors.Is(err, fit.ErrNoAvailability) {
			continue
		}
		if err != nil {
			return fmt.Errorf("recording %s: %w", r.Name, err)
		}
		for i := range law.Regions {
			c.laws = append(c.laws, regionLaw{law.Regions[i].Region, law.Regions[i].Law})
		}
	}
	if len(c.laws) == 0 {
		c.Scarce = 0 // nothing says what they would be like
	}
	return nil
}

// cut puts the bounds of the splits where none are given.
func (c *Config) cut() error {
	from, span := policy.TimeOf(time.Date(2023, 2, 15, 0, 0, 0, 0, time.UTC)), 45*24*time.Hour
	for i, r := range c.Recordings {
		if !slices.ContainsFunc(r.Series, func(s trace.Series) bool { return s.Available != nil }) {
			return fmt.Errorf("recording %s: it does not say when nodes could be had", r.Name)
		}
		if i == 0 {
			from, span = r.From, r.To.Sub(r.From)
		}
	}
	c.TrainUntil = cmp.Or(c.TrainUntil, policy.TimeOf(from.Add(span/2).Std().Truncate(24*time.Hour)))
	c.ChooseUntil = cmp.Or(c.ChooseUntil, policy.TimeOf(from.Add(span*7/10).Std().Truncate(24*time.Hour)))
	if c.ChooseUntil.Sub(c.TrainUntil) < 24*time.Hour {
		return fmt.Errorf("train until %v, choose until %v: there must be a day between them", c.TrainUntil, c.ChooseUntil)
	}
	return nil
}
