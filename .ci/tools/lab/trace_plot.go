package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/.ci/tools/lab/check"
	"github.com/spotter-dev/spotter/.ci/tools/lab/measure"
	"github.com/spotter-dev/spotter/eval/chart"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/pictures"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// draw writes the pictures of r into dir.
func (r *checked) draw(dir string, format chart.Format, dark bool) error {
	theme := chart.Light
	if dark {
		theme = chart.Dark
	}
	all := r.pictures(theme)
	files := make([]string, len(all))
	for i := range all {
		files[i] = filepath.Join(dir, all[i].Name+"."+format.String())
	}
	err := pictures.Write(files, format, all)
	if errors.Is(err, chart.ErrValue) {
		return err
	}
	if err != nil {
		return cli.Invalid(err, "give --plot a folder that can be written")
	}
	return nil
}

// A side is one of the traces of a picture.
type side struct {
	letter string
	t      *trace.Trace
	s      *measure.Statistics
}

func (r *checked) sides() []side {
	if r.B == nil {
		return []side{{"", r.A, r.Statistics}}
	}
	return []side{{"A", r.A, r.Comparison.A}, {"B", r.B, r.Comparison.B}}
}

// label names a side in a legend.
func (s *side) label() string {
	name := s.s.Name + ", " + source(s.s)
	if s.letter != "" {
		name = s.letter + ": " + name
	}
	return name
}

func source(s *measure.Statistics) string {
	switch {
	case s.Synthetic:
		return "synthetic"
	case s.Scripted:
		return "scripted"
	case s.Prices.Modelled:
		return "recorded availability"
	}
	return "recorded"
}

// note says where the numbers of the sides come from.
func note(sides []side) string {
	text := ""
	for i := range sides {
		s := &sides[i]
		if i > 0 {
			text += "; "
		}
		text += fmt.Sprintf("%s, %d markets, %s to %s", s.label(), s.s.Markets,
			s.s.From.Std().Format(time.DateOnly), s.s.To.Std().Format(time.DateOnly))
	}
	return text
}

// pictures are all that r has numbers for.
func (r *checked) pictures(theme chart.Theme) []pictures.Named {
	sides := r.sides()
	frame := chart.Frame{Theme: theme, Note: note(sides)}
	all := distributions(frame, sides)
	for i := range sides {
		s := &sides[i]
		if pic := paths(frame, s); pic != nil && !s.s.Prices.Modelled {
			all = append(all, pictures.Named{Name: suffixed("prices", s.letter), Picture: pic})
		}
		if pic := states(frame, s); pic != nil {
			all = append(all, pictures.Named{Name: suffixed("availability", s.letter), Picture: pic})
		}
	}
	if pic := hazards(frame, sides); pic != nil {
		all = append(all, pictures.Named{Name: "hazard", Picture: pic})
	}
	return all
}

func suffixed(name, letter string) string {
	switch letter {
	case "A":
		return name + "-a"
	case "B":
		return name + "-b"
	}
	return name
}

// distributions are the pictures of distribution functions.
func distributions(frame chart.Frame, sides []side) []pictures.Named {
	type kind struct {
		name, title, axis string
		log               bool
		curve             func(*measure.Statistics) check.Curve
	}
	var all []pictures.Named
	for _, k := range []kind{
		{"ratio", "Spot over on-demand: share of time at or below", "spot / on-demand", false,
			func(s *measure.Statistics) check.Curve { return check.CurveOf(s.Prices.Ratios) }},
		{"steps", "Size of a price change: share at or below", "size of a change (difference of logarithms)", true,
			func(s *measure.Statistics) check.Curve { return check.Unweighted(s.Prices.Steps) }},
		{"gaps", "Time for which a price held: share at or below", "hours until the next change", true,
			func(s *measure.Statistics) check.Curve { return check.Unweighted(s.Prices.Gaps) }},
		{"up", "Spells in which a node could be had: share at or below", "hours", true, upCurve},
		{"down", "Spells in which no node could be had: share at or below", "hours", true, downCurve},
	} {
		pic := &chart.Lines{Frame: frame}
		pic.Title = k.title
		pic.X = chart.Axis{Label: k.axis, Log: k.log || k.name == "ratio" && auction(sides)}
		pic.Y = chart.Axis{Label: "share", Percent: true, From: 0, To: 1}
		for i := range sides {
			c := k.curve(sides[i].s)
			if len(c.X) < 2 {
				continue
			}
			reach(&pic.X, &c)
			pic.Series = append(pic.Series, chart.Line{Name: sides[i].label(), X: c.X, Y: c.Y, Step: true,
				Dashed: sides[i].letter == "B"})
		}
		if len(pic.Series) > 0 {
			all = append(all, pictures.Named{Name: k.name, Picture: pic})
		}
	}
	return all
}

// auction reports whether a price was ever far above the on-demand price. Prices are then
// too far apart for an axis of equal steps.
func auction(sides []side) bool {
	return slices.ContainsFunc(sides, func(s side) bool {
		c := check.CurveOf(s.s.Prices.Ratios)
		return len(c.X) > 0 && c.X[len(c.X)-1] > 1.5
	})
}

// reach makes an axis cover the middle 99.8% of a distribution: a few outliers would
// compress the rest.
func reach(a *chart.Axis, c *check.Curve) {
	if !a.Log {
		return
	}
	low, high := c.X[0], c.X[len(c.X)-1]
	for i, y := range c.Y {
		if y <= 0.001 {
			low = c.X[i]
		}
		if y >= 0.999 {
			high = c.X[i]
			break
		}
	}
	if a.From >= a.To {
		a.From, a.To = low, high
	}
	a.From, a.To = min(a.From, low), max(a.To, high)
}

func upCurve(s *measure.Statistics) check.Curve {
	if s.Availability == nil {
		return check.Curve{}
	}
	return check.Unweighted(s.Availability.Ups)
}

func downCurve(s *measure.Statistics) check.Curve {
	if s.Availability == nil {
		return check.Curve{}
	}
	return check.Unweighted(s.Availability.Downs)
}

// pathsShown are the markets whose prices are drawn: those in the middle of
// each fifth by mean ratio.
const pathsShown = 5

// paths draws prices of some markets, nil if none has an on-demand price.
func paths(frame chart.Frame, s *side) chart.Picture {
	type market struct {
		series *trace.Series
		mean   float64
	}
	var markets []market
	for i := range s.t.Series {
		m := &s.t.Series[i]
		sum, hours := 0.0, 0.0
		for _, interval := range check.PriceIntervals(s.t, m) {
			if h := interval.To.Sub(interval.From).Hours(); !math.IsNaN(interval.Ratio) {
				sum, hours = sum+float64(interval.Ratio*h), hours+h
			}
		}
		if hours > 0 {
			markets = append(markets, market{m, sum / hours})
		}
	}
	if len(markets) == 0 {
		return nil
	}
	slices.SortStableFunc(markets, func(a, b market) int { return cmp.Compare(a.mean, b.mean) })
	pic := &chart.Lines{Frame: frame}
	pic.Title = fmt.Sprintf("Prices of %d of %d markets, spread evenly over their mean price",
		min(pathsShown, len(markets)), len(markets))
	pic.Note = note([]side{*s})
	pic.X, pic.Y = chart.Axis{Time: true}, chart.Axis{Label: "spot / on-demand", Log: auction([]side{*s})}
	taken := -1
	for i := range pathsShown {
		at := (2*i + 1) * len(markets) / (2 * pathsShown)
		if at == taken {
			continue
		}
		taken = at
		m := markets[at].series
		pic.Series = append(pic.Series, pathOf(s.t, m))
	}
	return pic
}

func pathOf(t *trace.Trace, m *trace.Series) chart.Line {
	line := chart.Line{Name: m.Zone + " " + m.Type, Step: true}
	last := policy.Time(0)
	for _, interval := range check.PriceIntervals(t, m) {
		line.X, line.Y = append(line.X, pictures.Seconds(interval.From)), append(line.Y, interval.Ratio)
		last = interval.To
	}
	line.X, line.Y = append(line.X, pictures.Seconds(last)), append(line.Y, line.Y[len(line.Y)-1])
	return line
}

// states draws when nodes could be had, nil where the trace does not record it.
func states(frame chart.Frame, s *side) chart.Picture {
	pic := &chart.Raster{Frame: frame, States: []string{"a node could be had", "none could be had"}}
	shown := 0
	for i := range s.t.Series {
		m := &s.t.Series[i]
		intervals := check.StateIntervals(s.t, m)
		if intervals == nil {
			continue
		}
		if shown++; shown > pictures.RowsShown {
			continue
		}
		strip := chart.Strip{Name: m.Zone + " " + m.Type}
		for _, interval := range intervals {
			if interval.State >= 0 {
				strip.Spans = append(strip.Spans, chart.Span{From: pictures.Seconds(interval.From),
					To: pictures.Seconds(interval.To), State: int(1 - interval.State)})
			}
		}
		pic.Rows = append(pic.Rows, strip)
	}
	if shown == 0 {
		return nil
	}
	pic.Title = "When a node could be had"
	pic.Note = note([]side{*s})
	if shown > pictures.RowsShown {
		pic.Note += fmt.Sprintf("; the first %d of %d markets that tell", pictures.RowsShown, shown)
	}
	pic.X = chart.Axis{Time: true}
	pic.Height = 130 + 26*len(pic.Rows)
	return pic
}

// hazards draws how often intervals end by their age; nil if unknown.
func hazards(frame chart.Frame, sides []side) chart.Picture {
	pic := &chart.Points{Frame: frame}
	pic.Title = "How often a spell with a node to be had ends, by its age (bars: 95 % of chance)"
	pic.X = chart.Axis{Label: "age of the spell in hours", Log: true}
	pic.Y = chart.Axis{Label: "ends per hour", Log: true}
	for i := range sides {
		a := sides[i].s.Availability
		if a == nil {
			continue
		}
		c := chart.Cloud{Name: sides[i].label(), Joined: true}
		for k := range a.Hazard {
			b := &a.Hazard[k]
			if b.Events == 0 {
				continue
			}
			// The two sides of a range stand apart, so that both can be seen.
			x := float64(middle(b) * (1 + 0.06*float64(i)))
			spread := portable.Exp(1.96 / math.Sqrt(float64(b.Events)))
			c.X, c.Y = append(c.X, x), append(c.Y, b.Hazard())
			c.YLow, c.YHigh = append(c.YLow, b.Hazard()/spread), append(c.YHigh, float64(b.Hazard()*spread))
		}
		if len(c.X) > 0 {
			pic.Series = append(pic.Series, c)
		}
	}
	if len(pic.Series) == 0 {
		return nil
	}
	return pic
}

// middle is an age within a bucket.
func middle(b *measure.Bucket) float64 {
	switch {
	case b.From == 0:
		return b.To / 2
	case math.IsInf(b.To, 1):
		return 2 * b.From
	}
	return math.Sqrt(b.From * b.To)
}
