package check

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/.ci/tools/lab/measure"
)

// Options say how traces are seen and judged. The zero value sees them as they
// are and judges by [DefaultTolerances].
type Options struct {
	measure.Options

	// Tolerances replace the limits of the default ones. A key is the name of
	// a tolerance, of which several figures may share one, or of a single
	// figure, which is then judged even if it is not by default.
	Tolerances map[string]float64
}

// ErrTolerance is returned for a tolerance that does not exist or cannot be.
var ErrTolerance = errors.New("no such tolerance")

// A Kind says how the distance between two figures is measured.
type Kind uint8

// The kinds of distance.
const (
	// Shown is not measured: the figure is shown for both.
	Shown Kind = iota

	// Relative is |A/B − 1|.
	Relative

	// Absolute is |A − B|.
	Absolute

	// KS is the statistic of Kolmogorov and Smirnov: the greatest difference
	// between two distribution functions, 0…1.
	KS
)

func (k Kind) String() string {
	return [...]string{"shown", "relative", "absolute", "KS"}[k]
}

// MarshalText writes a kind as its name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// A Tolerance is how far apart two figures may be.
type Tolerance struct {
	Name  string
	Kind  Kind
	Value float64

	// Why defends Value.
	Why string
}

// The names of the tolerances.
const (
	tolRate        = "change-rate"
	tolUnmoved     = "unmoved"
	tolRatio       = "ratio"
	tolMomentum    = "autocorrelation"
	tolZones       = "zone-correlation"
	tolHazard      = "hazard"
	tolHazardLong  = "hazard-beyond-day"
	tolState       = "state-correlation"
	tolAllDown     = "all-down"
	tolAllDownRare = "all-down-rare"
	tolDepthShare  = "depth-share"
	tolDepthHour   = "depth-hour"
	tolDepthZones  = "depth-correlation"
)

// DefaultTolerances returns the tolerances by which figures are judged when
// nothing else is said. Figures that none is for are shown and not judged.
func DefaultTolerances() []Tolerance {
	return []Tolerance{
		{tolRate, Relative, 0.10,
			"it decides how often a policy is asked to reconsider; the halves of four of five AWS recordings differ by 0 to 9 %"},
		{tolUnmoved, Absolute, 0.05,
			"a market that never moves can be trusted for ever, so that a policy must not meet many more of them; the halves of four of five AWS recordings differ by 0 to 4 points"},
		{tolRatio, Relative, 0.15,
			"savings are one less this ratio: at 0.32, fifteen percent are five points of the bill; the halves of recordings differ by up to 8 %, by 26 % where the market moved to another level"},
		{tolMomentum, Absolute, 0.10,
			"it is what a price rule could exploit; the halves of recordings differ by 0.02 to 0.09, recordings of different years by 0.15 to 0.5"},
		{tolZones, Absolute, 0.10,
			"spreading over zones helps as far as they move apart; the halves of recordings differ by 0.03 to 0.16, recordings of different years by up to 0.8"},
		{tolHazard, Relative, 0.25,
			"it is about two standard errors of the ratio of two hazards of 150 spells each; the halves of the V100 recording of 2023 differ by 3 to 11 % up to an age of 8 h"},
		{tolHazardLong, Relative, 0.35,
			"the V100 recording of 2023 has 39 spells that end beyond a day, which alone leaves a standard error of a sixth"},
		{tolState, Absolute, 0.10,
			"zones that fail together undo a spread over zones; the halves of the V100 recording of 2023 differ by 0.01 to 0.04"},
		{tolAllDown, Relative, 0.30,
			"it is the time in which no choice of zones helps; the halves of the V100 recording of 2023 differ by 1.7- and 2.6-fold, so that less can be asked of a period than of its generator"},
		{tolAllDownRare, Relative, 0.50,
			"where all zones are down less than a tenth of the time, as in us-west-2, some dozens of spells are all that was recorded"},
		{tolDepthShare, Absolute, 0.05,
			"it decides how long jobs wait that need many nodes at once; the halves of the H100 recording of 2025 differ by up to 3 points in zones that mostly hold some, by 6 to 18 in those that seldom do and by 36 in the two that never do, so that only a draw chosen to be like those days can meet it"},
		{tolDepthHour, Absolute, 0.10,
			"it decides what a launch that was refused may hope for within the hour; the halves of the H100 recording of 2025 differ by 0.05 to 0.16"},
		{tolDepthZones, Absolute, 0.10,
			"another zone helps as far as it is deep when this one is not; the halves of the H100 recording of 2025 differ by 0.02"},
	}
}

// eventsMin is how many events a figure of rare events needs on both sides to
// be judged: below it, chance alone moves it by more than a third.
const eventsMin = 30

// limits are the tolerances in force, by name.
type limits struct {
	known []Tolerance

	// figures are the limits given for single figures.
	figures map[string]float64
}

// limits merges the default tolerances with those of o. In addition to a tolerance, a limit
// may name one of figures.
func (o Options) limits(figures []string) (*limits, error) {
	l := &limits{known: DefaultTolerances(), figures: map[string]float64{}}
	names := make([]string, 0, len(o.Tolerances))
	for name := range o.Tolerances {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		value := o.Tolerances[name]
		if !(value >= 0) || math.IsInf(value, 0) {
			return nil, fmt.Errorf("%w: %s=%v: a limit is a number from 0 up", ErrTolerance, name, value)
		}
		at := slices.IndexFunc(l.known, func(t Tolerance) bool { return t.Name == name })
		switch {
		case at >= 0:
			l.known[at].Value = value
			l.known[at].Why = "as given"
		case slices.Contains(figures, name):
			l.figures[name] = value
		default:
			return nil, fmt.Errorf("%w: %q; there are %s, and the names of the figures in the table", ErrTolerance, name,
				strings.Join(l.names(), ", "))
		}
	}
	return l, nil
}

func (l *limits) names() []string {
	names := make([]string, len(l.known))
	for i := range l.known {
		names[i] = l.known[i].Name
	}
	return names
}

// of returns the tolerance for a figure, and whether there is one.
func (l *limits) of(f *Figure) (Tolerance, bool) {
	kind := f.Kind
	at := slices.IndexFunc(l.known, func(t Tolerance) bool { return t.Name == f.Tolerance })
	if at >= 0 {
		kind = l.known[at].Kind
	}
	if value, ok := l.figures[f.Name]; ok {
		return Tolerance{f.Name, kind, value, "as given"}, kind != Shown
	}
	if at < 0 {
		return Tolerance{}, false
	}
	return l.known[at], true
}
