package check

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spotter-dev/spotter/.ci/tools/lab/measure"
	"github.com/spotter-dev/spotter/policy/figures"
)

// kindOf says where prices come from.
func kindOf(s *measure.Statistics) string {
	switch {
	case s.Synthetic:
		return "synthetic"
	case s.Scripted:
		return "scripted"
	case s.Prices.Modelled:
		return "recorded availability, modelled prices"
	}
	return "recorded"
}

// Heading is one line that says what s is of.
func Heading(s *measure.Statistics) string {
	seen := "every change"
	switch {
	case s.Prices.Modelled && s.Availability != nil && s.Availability.Probe > 0:
		seen = "probed every " + figures.Duration(s.Availability.Probe)
	case s.Prices.Sampling.Interval > 0:
		seen = "sampled about every " + figures.Duration(s.Prices.Sampling.Interval)
	}
	return fmt.Sprintf("%s (%s): %d markets, %d types, %d zones, %s to %s, %.1f days, %s",
		s.Name, kindOf(s), s.Markets, s.Types, s.Zones, s.From.Std().Format(time.DateOnly), s.To.Std().Format(time.DateOnly), s.Days(), seen)
}

// A Report writes the statistics of a trace with what their figures are.
type Report struct{ *measure.Statistics }

// figure formats v with its unit; "-" if v is NaN.
func figure(v float64, unit string) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case math.IsInf(v, 0):
		return "∞"
	case unit == "share":
		return strconv.FormatFloat(100*v, 'f', 2, 64) + " %"
	}
	text := strconv.FormatFloat(v, 'g', 4, 64)
	if math.Abs(v) >= 1000 {
		text = strconv.FormatFloat(v, 'f', 0, 64)
	}
	if unit == "" {
		return text
	}
	return text + " " + unit
}

// gap formats a distance or a limit of it.
func gap(v float64, kind Kind, unit string) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case math.IsInf(v, 0):
		return "∞"
	case kind == Relative:
		return strconv.FormatFloat(100*v, 'f', 1, 64) + " %"
	case unit == "share":
		return strconv.FormatFloat(100*v, 'f', 2, 64) + " pt"
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

// Decision is "pass", "MISSED" or, for a row that was not judged, "-".
func (r *Row) Decision() string {
	switch {
	case !r.Judged:
		return "-"
	case r.Pass:
		return "pass"
	}
	return "MISSED"
}

// Summary is one line that says how the comparison ended.
func (c *Comparison) Summary() string {
	switch {
	case c.Judged == 0:
		return "nothing could be judged, which is no pass"
	case c.Missed == 0:
		return fmt.Sprintf("passed: all %d judged figures lie within their tolerances", c.Judged)
	}
	var missed []string
	for i := range c.Rows {
		if c.Rows[i].Judged && !c.Rows[i].Pass {
			missed = append(missed, c.Rows[i].Name)
		}
	}
	return fmt.Sprintf("missed: %d of %d judged figures lie outside of their tolerances: %s", c.Missed, c.Judged,
		strings.Join(missed, ", "))
}

// WriteTable writes s for a terminal, a figure a line.
func (s Report) WriteTable(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s\n\n", Heading(s.Statistics))
	for _, f := range Figures(s.Statistics) {
		if f.sample == nil && !math.IsNaN(f.Value) {
			fmt.Fprintf(b, "%-34s %12s  %s\n", f.Name, figure(f.Value, f.Unit), f.Label)
		}
	}
	return b.Flush()
}

// WriteTable writes c for a terminal.
func (c *Comparison) WriteTable(w io.Writer) error {
	fmt.Fprintf(w, "A %s\nB %s\n\n", Heading(c.A), Heading(c.B))
	wide := 0
	for i := range c.Rows {
		wide = max(wide, len(c.Rows[i].Name))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "%-*s\tA\tB\tdistance\tlimit\tverdict\t\n", wide, "figure")
	for i := range c.Rows {
		r := &c.Rows[i]
		fmt.Fprintf(t, "%-*s\t%s\t%s\t%s\t%s\t%s\t\n", wide, r.Name, figure(r.A, r.Unit), figure(r.B, r.Unit),
			gap(r.Distance, r.Kind, r.Unit), gap(r.Tolerance, r.Kind, r.Unit), r.Decision())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	c.explain(b, "\n%s\n", "  %s: %s\n")
	fmt.Fprintf(b, "\n%s\n", c.Summary())
	return b.Flush()
}

// explain writes the notes, why rows were not judged though a tolerance is for
// them, and what defends the tolerances.
func (c *Comparison) explain(b *bufio.Writer, heading, item string) {
	if len(c.Notes) > 0 {
		fmt.Fprintf(b, heading, "Notes")
		for _, n := range c.Notes {
			fmt.Fprintf(b, strings.Replace(item, "%s: ", "", 1), n)
		}
	}
	first := true
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Judged || r.Why == shownOnly {
			continue
		}
		if first {
			fmt.Fprintf(b, heading, "Not judged")
			first = false
		}
		fmt.Fprintf(b, item, r.Name, r.Why)
	}
	if len(c.Tolerances) > 0 {
		fmt.Fprintf(b, heading, "Tolerances")
	}
	for _, t := range c.Tolerances {
		fmt.Fprintf(b, item, t.Name+", "+t.Kind.String()+", "+number(t.Value), t.Why)
	}
}

// WriteMarkdown writes s as a table.
func (s Report) WriteMarkdown(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s\n\n| figure | value | what it is |\n|---|---:|---|\n", Heading(s.Statistics))
	for _, f := range Figures(s.Statistics) {
		if f.sample == nil && !math.IsNaN(f.Value) {
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", f.Name, figure(f.Value, f.Unit), f.Label)
		}
	}
	return b.Flush()
}

// WriteMarkdown writes c as a table with its notes.
func (c *Comparison) WriteMarkdown(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "**A** %s  \n**B** %s\n\n%s.\n\n", Heading(c.A), Heading(c.B), c.Summary())
	fmt.Fprint(b, "| figure | A | B | distance | limit | verdict | what it is |\n|---|---:|---:|---:|---:|---|---|\n")
	for i := range c.Rows {
		r := &c.Rows[i]
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", r.Name, figure(r.A, r.Unit), figure(r.B, r.Unit),
			gap(r.Distance, r.Kind, r.Unit), gap(r.Tolerance, r.Kind, r.Unit), r.Decision(), r.Label)
	}
	c.explain(b, "\n%s:\n\n", "- %s: %s\n")
	return b.Flush()
}

// A figureJSON is a figure as it is written; one without a value is left out.
type figureJSON struct {
	Name  string  `json:"name"`
	Label string  `json:"label"`
	Unit  string  `json:"unit,omitempty"`
	Value float64 `json:"value"`
}

type statisticsJSON struct {
	Name      string       `json:"name"`
	Synthetic bool         `json:"synthetic"`
	Scripted  bool         `json:"scripted"`
	Modelled  bool         `json:"modelled_prices"`
	From      time.Time    `json:"from"`
	To        time.Time    `json:"to"`
	Markets   int          `json:"markets"`
	Types     int          `json:"types"`
	Zones     int          `json:"zones"`
	Rows      int          `json:"rows"`
	Interval  float64      `json:"sampled_every_hours,omitempty"`
	Probe     float64      `json:"probed_every_seconds,omitempty"`
	Figures   []figureJSON `json:"figures,omitempty"`
}

func header(s *measure.Statistics) statisticsJSON {
	j := statisticsJSON{
		Name: s.Name, Synthetic: s.Synthetic, Scripted: s.Scripted, Modelled: s.Prices.Modelled, From: s.From.Std(), To: s.To.Std(),
		Markets: s.Markets, Types: s.Types, Zones: s.Zones, Rows: s.Rows, Interval: s.Prices.Sampling.Interval.Hours(),
	}
	if s.Availability != nil {
		j.Probe = s.Availability.Probe.Seconds()
	}
	return j
}

// MarshalJSON writes the figures that have a value.
func (s Report) MarshalJSON() ([]byte, error) {
	j := header(s.Statistics)
	for _, f := range Figures(s.Statistics) {
		if known(f.Value) != nil {
			j.Figures = append(j.Figures, figureJSON{f.Name, f.Label, f.Unit, f.Value})
		}
	}
	return json.Marshal(j)
}

type rowJSON struct {
	Name      string   `json:"name"`
	Label     string   `json:"label"`
	Unit      string   `json:"unit,omitempty"`
	A         *float64 `json:"a,omitempty"`
	B         *float64 `json:"b,omitempty"`
	Kind      Kind     `json:"kind"`
	Distance  *float64 `json:"distance,omitempty"`
	Tolerance *float64 `json:"tolerance,omitempty"`
	Judged    bool     `json:"judged"`
	Pass      bool     `json:"pass"`
	Why       string   `json:"why"`
}

// MarshalJSON writes c; a number that is not known is left out.
func (c *Comparison) MarshalJSON() ([]byte, error) {
	rows := make([]rowJSON, len(c.Rows))
	for i := range c.Rows {
		r := &c.Rows[i]
		rows[i] = rowJSON{
			r.Name, r.Label, r.Unit, known(r.A), known(r.B), r.Kind, known(r.Distance), known(r.Tolerance),
			r.Judged, r.Pass, r.Why,
		}
	}
	return json.Marshal(struct {
		A       statisticsJSON `json:"a"`
		B       statisticsJSON `json:"b"`
		Passed  bool           `json:"passed"`
		Judged  int            `json:"judged"`
		Missed  int            `json:"missed"`
		Summary string         `json:"summary"`
		Rows    []rowJSON      `json:"rows"`
		Notes   []string       `json:"notes,omitempty"`
	}{header(c.A), header(c.B), c.Passed, c.Judged, c.Missed, c.Summary(), rows, c.Notes})
}

// known returns nil for a number that JSON cannot write.
func known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
