package report

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// traces returns the table of the sources of prices.
func traces(r *eval.Report) *table {
	t := &table{Caption: "Prices", Head: headings("'Trace", "'Prices are", "'From", "'To", "'What it is")}
	for i := range r.Traces {
		x := &r.Traces[i]
		t.Rows = append(t.Rows, []cell{{Text: x.Name}, badIf(x.Synthetic || x.Scripted, x.Prices()),
			{Text: format.Instant(x.From)}, {Text: format.Instant(x.To)},
			{Text: x.About, Class: "prose"}})
	}
	return t
}

// casesTable returns the table of scenarios, with a row for each window.
func casesTable(r *eval.Report) *table {
	t := &table{
		Caption: "Scenarios and windows", Note: "Digests are SHA-256: of the scenario file, and of the trace's content in the window. Intensity multiplies the rate of reclaims and the frequency of capacity shortages. The bound is what no policy can undercut, bill and outage cost together; the one by slots is the least of the seeds, in whose weather a market has a limited number of nodes.",
		Head: headings("'Scenario", "'Window", "Warm-up", "Ready grace", "Intensity", "Markets", "'Slots", "'Reclaims are",
			"Bound", "Bound by slots", "'Digests|scenario, trace"),
	}
	for i := range r.Config.Cases {
		k := &r.Config.Cases[i]
		w := k.Bound
		slots := "drawn by seed"
		if w.Slots > 0 {
			slots = figures.Integer(w.Slots)
		}
		bound, bySlots := unknown, unknown
		if i < len(r.Oracles) && r.Oracles[i].Cost > 0 {
			bound.Text, bySlots.Text = figures.Dollars(r.Oracles[i].Cost.Float()), figures.Dollars(r.Oracles[i].Slots.Float())
		}
		t.Rows = append(t.Rows, []cell{
			{Text: k.Scenario}, {Text: format.Instant(w.Start), Sub: "to " + format.Instant(w.Start.Add(w.Duration))},
			{Text: figures.Duration(w.WarmUp)}, {Text: figures.Duration(w.ReadyGrace)},
			{Text: figures.Number(w.Intensity, figures.Few)}, {Text: figures.Integer(len(w.Markets))},
			{Text: slots}, {Text: w.Reclaims()}, bound, bySlots,
			{Text: hex.EncodeToString(w.Digest[:])[:16], Sub: hex.EncodeToString(w.TraceDigest[:])[:16], Class: "code"},
		})
	}
	return t
}

// model returns the table of the constants of the market model and their sources.
func model() *table {
	t := &table{
		Caption: "The market model",
		Note:    "What is neither in the trace nor in the scenario is drawn by seed from these. Policies of one comparison meet the same draws.",
		Head:    headings("'Constant", "'Value", "'Basis", "'Source"),
	}
	p := weather.DefaultParams()
	for _, a := range p.Assumptions() {
		t.Rows = append(t.Rows, []cell{{Text: a.Name}, {Text: a.Value, Class: "prose"}, {Text: fmt.Sprint(a.Basis)},
			{Text: a.Source, Class: "prose"}})
	}
	return t
}

// A setting is an entry of the configuration, or a value with its description.
type setting struct {
	Name, Unit, Value string

	// Command is shown as a command that can be copied.
	Command string
}

// settings returns the configuration, except for what the table of scenarios shows.
func settings(r *eval.Report) []setting {
	c := &r.Config
	out := []setting{
		{Name: "Policies", Value: strings.Join(c.Policies, ", ")},
		{Name: "Baseline", Value: c.Baseline},
		{Name: "Discounts of commitments", Value: fmt.Sprintf("%s for one year, %s for three (modelled)",
			figures.Share(c.Discount1y, figures.Few), figures.Share(c.Discount3y, figures.Few))},
		{Name: "Confidence", Value: fmt.Sprintf("%s each, so that the intervals of all policies hold together at 95%%",
			figures.Share(r.Level, figures.Few))},
	}
	for _, line := range format.Settings(r) {
		name, rest, _ := strings.Cut(line, " ")
		switch _, command, found := strings.Cut(line, "\n"); {
		case found:
			out = append(out, setting{Name: "Repeat it with", Command: strings.TrimSpace(command)})
		case name == "seeds" || name == "gate" || name == "version":
			out = append(out, setting{Name: strings.ToUpper(name[:1]) + name[1:], Value: rest})
		}
	}
	return out
}
