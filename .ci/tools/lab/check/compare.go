package check

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/spotter-dev/spotter/.ci/tools/lab/measure"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/scenarios/trace"
	prices "github.com/spotter-dev/spotter/scenarios/trace/measure"
)

// A Comparison is how far a trace A is from a trace B. B is what A should be
// like: relative distances are in parts of B's figures.
type Comparison struct {
	// A and B are both as the coarser of the two would have seen them.
	A, B *measure.Statistics

	Rows []Row

	// Judged is how many figures were compared with a tolerance, and Missed how many of
	// them are outside it. Passed reports that at least one figure was judged and that all
	// judged figures are within their tolerance.
	Judged, Missed int
	Passed         bool

	// Tolerances are those that judged a row.
	Tolerances []Tolerance

	// Notes say what a reader must know to trust the rows.
	Notes []string
}

// A Row is one figure of both traces.
type Row struct {
	Name, Label, Unit string

	// A, B and Distance are NaN where unknown.
	A, B, Distance float64

	Kind Kind

	// Judged says that Tolerance was in force. Pass is true for a row that was
	// not judged.
	Tolerance    float64
	Judged, Pass bool

	// Why justifies the tolerance, or says why it was not applied.
	Why string
}

// shownOnly is the reason of rows that no tolerance is for.
const shownOnly = "shown only"

// ErrNothing is returned when two traces have no figure in common.
var ErrNothing = errors.New("nothing to compare")

// Compare measures a and b as the coarser of them sees and judges how far a is
// from b. The error is ErrTolerance or ErrNothing.
func Compare(a, b *trace.Trace, o Options) (*Comparison, error) {
	c := &Comparison{}
	oa, ob := c.eyes(a, b, o)
	c.B = measure.Measure(b, ob)
	if c.B.Depth != nil {
		oa.Classes = classesOf(c.B.Depth)
	}
	c.A = measure.Measure(a, oa)
	var names []string
	fb := Figures(c.B)
	for i := range fb {
		names = append(names, fb[i].Name)
	}
	l, err := o.limits(names)
	if err != nil {
		return nil, err
	}
	at := map[string]*Figure{}
	fa := Figures(c.A)
	for i := range fa {
		at[fa[i].Name] = &fa[i]
	}
	for i := range fb {
		switch f, has := at[fb[i].Name]; {
		case has && !f.known() && !fb[i].known():
		case has:
			c.judge(f, &fb[i], l)
		case c.both(&fb[i]):
			c.judge(&Figure{Value: math.NaN()}, &fb[i], l)
		}
	}
	if len(c.Rows) == 0 {
		return nil, fmt.Errorf("%w: %s and %s have no figure in common", ErrNothing, a.Name, b.Name)
	}
	c.Passed = c.Judged > 0 && c.Missed == 0
	c.remark()
	return c, nil
}

// both reports whether A, which has no figure like f, records at all what f is
// about: what it costs, or whether it can be had.
func (c *Comparison) both(f *Figure) bool {
	if slices.ContainsFunc(priceFigures(c.B), func(p Figure) bool { return p.Name == f.Name }) {
		return !c.A.Prices.Modelled
	}
	if f.Depth {
		return c.A.Depth != nil
	}
	return c.A.Availability != nil
}

// eyes returns the options with which to measure each of the traces.
func (c *Comparison) eyes(a, b *trace.Trace, o Options) (oa, ob measure.Options) {
	oa, ob = o.Options, o.Options
	if o.Sampling == nil {
		sa, sb := prices.SamplingOf(a), prices.SamplingOf(b)
		switch {
		case coarser(&sa, &sb):
			ob.Sampling = &sa
			c.note("prices of %s are seen as %s was sampled, about every %s", b.Name, a.Name, figures.Duration(sa.Interval))
		case coarser(&sb, &sa):
			oa.Sampling = &sb
			c.note("prices of %s are seen as %s was sampled, about every %s", a.Name, b.Name, figures.Duration(sb.Interval))
		}
	}
	if o.Probe == 0 {
		pa, pb := measure.ProbeOf(a), measure.ProbeOf(b)
		switch {
		case !recordsAvailability(a) || !recordsAvailability(b):
		case 2*pa > 3*pb:
			ob.Probe = pa
			c.note("availability of %s is probed every %s, as that of %s was", b.Name, figures.Duration(pa), a.Name)
		case 2*pb > 3*pa:
			oa.Probe = pb
			c.note("availability of %s is probed every %s, as that of %s was", a.Name, figures.Duration(pb), b.Name)
		}
	}
	return oa, ob
}

// coarser reports whether s hides what other shows: its looks are at least half
// as far apart again.
func coarser(s, other *measure.Sampling) bool {
	return 2*s.Interval > 3*other.Interval
}

func recordsAvailability(t *trace.Trace) bool {
	return slices.ContainsFunc(t.Series, func(s trace.Series) bool { return s.Available != nil })
}

func (c *Comparison) note(format string, args ...any) {
	c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
}

// judge adds the row of a figure.
func (c *Comparison) judge(a, b *Figure, l *limits) {
	limit, judged := l.of(b)
	r := Row{Name: b.Name, Label: b.Label, Unit: b.Unit, A: a.Value, B: b.Value, Kind: b.Kind, Tolerance: math.NaN(),
		Pass: true}
	if judged {
		r.Kind = limit.Kind
	}
	r.Distance = distance(a, b, r.Kind)
	if _, asked := l.figures[b.Name]; !judged {
		r.Why = shownOnly
	} else if r.Why = excuse(a, b, asked); r.Why == "" {
		r.Judged, r.Tolerance, r.Why = true, limit.Value, limit.Why
		r.Pass = r.Distance <= limit.Value
		if math.IsNaN(r.Distance) {
			r.Why = "A has no such figure"
		}
		c.count(&r, limit)
	}
	c.Rows = append(c.Rows, r)
}

// excuse says why a figure is not judged although it has a tolerance; empty if it is
// judged. Fewer excuses apply to a figure that was requested by name.
func excuse(a, b *Figure, asked bool) string {
	switch {
	case !b.known():
		return "B has no such figure"
	case asked:
		return ""
	case b.Events < b.Fewest:
		return fmt.Sprintf("B has %d of the %d events that it takes", b.Events, b.Fewest)
	case !a.known() && b.Place:
		return "A has no such place"
	case b.Exposure > 0:
		// That A has few is what is judged, unless A is too small to have many.
		expected := float64(b.Events) / b.Exposure * a.Exposure
		if a.Events < b.Fewest && expected < float64(b.Fewest) {
			return fmt.Sprintf("A has %d of the %d events that it takes, and its size lets expect %.0f", a.Events, b.Fewest,
				expected)
		}
	case a.known() && a.Events < a.Fewest:
		return fmt.Sprintf("A has %d of the %d events that it takes", a.Events, a.Fewest)
	}
	return ""
}

func (c *Comparison) count(r *Row, limit Tolerance) {
	c.Judged++
	if !r.Pass {
		c.Missed++
	}
	if !slices.Contains(c.Tolerances, limit) {
		c.Tolerances = append(c.Tolerances, limit)
	}
}

// distance is how far a is from b. Where b is 0 only 0 is near.
func distance(a, b *Figure, kind Kind) float64 {
	switch kind {
	case KS:
		if !a.known() || !b.known() {
			return math.NaN()
		}
		return ks(a.sample, b.sample)
	case Relative:
		switch {
		case a.Value == b.Value:
			return 0
		case b.Value == 0 && !math.IsNaN(a.Value):
			return math.Inf(1)
		}
		return math.Abs(a.Value/b.Value - 1)
	case Absolute:
		return math.Abs(a.Value - b.Value)
	}
	return math.NaN()
}

// remark notes how the two differ where no figure shows it.
func (c *Comparison) remark() {
	a, b := c.A, c.B
	if ratio := a.Days() / b.Days(); ratio < 0.9 || ratio > 1.1 {
		c.note("A covers %.1f days and B %.1f: rates are compared, counts are not", a.Days(), b.Days())
	}
	if ratio := float64(a.Markets) / float64(b.Markets); ratio < 0.9 || ratio > 1.1 {
		c.note("A has %d markets and B %d", a.Markets, b.Markets)
	}
	for i, s := range [...]*measure.Statistics{a, b} {
		side := [...]string{"A", "B"}[i]
		if s.Prices.Modelled {
			c.note("prices of %s are modelled, not recorded: they are not compared", side)
		}
		if n := len(s.Prices.Unpriced); n > 0 {
			c.note("%d markets of %s have no on-demand price and no ratio", n, side)
		}
	}
	if b.Availability != nil && a.Availability == nil {
		c.note("A records no availability, so that nothing of it is compared")
	} else if b.Availability != nil {
		c.note("availability below half an hour of age is shown and not judged: probing misses the shortest spells")
	}
	if b.Depth != nil && a.Depth == nil {
		c.note("A records no depth, so that nothing of it is compared")
	}
	if c.Judged == 0 {
		c.note("nothing could be judged: that is no pass")
	}
}
