package format

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/scenarios"
)

// billNote describes what bills include.
func billNote(c *eval.Config) string {
	of := "nodes"
	for i := range c.Cases {
		if slices.ContainsFunc(c.Cases[i].Bound.Pools, func(p policy.Pool) bool { return p.Fees != policy.NodeFees{} }) {
			of = "nodes, with their fees and volumes"
		}
	}
	return "Bills are of " + of + "; data transfer between zones is in none."
}

// Notes returns the remarks below the tables, in sentences.
func Notes(r *eval.Report) []string {
	notes := append(traceNotes(r), truthNotes(&r.Config)...)
	notes = append(notes,
		"Capacity, that is when launches are refused, comes from where the reclaims come from; refusals on demand, notices and recommendations are always modelled.",
		savedNote(&r.Config))
	if r.Config.Today == nil {
		notes = append(notes,
			fmt.Sprintf("* is the baseline, %s: change on it is in savings, run by run under the same weather, in percent of the on-demand bill; vs * is in outage minutes, in the worst run.", r.Config.Baseline))
	}
	notes = append(notes,
		"Moved are pods evicted by drains and consolidation; lost are pods that went down with reclaimed nodes.")
	if len(r.Groups) > 1 {
		notes = append(notes, AcrossNote)
	}
	if len(Violations(r)) > 0 {
		notes = append(notes,
			"! marks a policy that did not keep the manifests: it is never first, never the best fixed mix, and no shortfall is measured to it.")
	}
	notes = append(notes, intervalNotes(r)...)
	notes = append(notes, fmt.Sprintf("Commitments are modelled as %s off on-demand for one year and %s for three.",
		figures.Share(r.Config.Discount1y, figures.Few), figures.Share(r.Config.Discount3y,
			figures.Few)), billNote(&r.Config))
	if i := slices.IndexFunc(r.Config.Cases, func(k eval.Case) bool { return len(k.Bound.GPUBudgets) > 0 }); i >= 0 {
		notes = append(notes,
			fmt.Sprintf("What the budgets of %s keep out is no outage, but it is unserved, and work of jobs that they keep from finishing is paid as unfinished. On-demand pays for that too, so more than its bill can be saved.", r.Config.Cases[i].Scenario))
	}
	return append(append(notes, scenarioNotes(&r.Config)...), unschedulableNotes(r)...)
}

// unschedulableNotes lists the pods that fit no available node, each once.
func unschedulableNotes(r *eval.Report) (notes []string) {
	for i := range r.Runs {
		if r.Runs[i].Err != nil || r.Runs[i].Result == nil {
			continue
		}
		for _, line := range r.Runs[i].Result.Unschedulable {
			if note := r.Runs[i].Job.Scenario + ": " + line; !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
	}
	return notes
}

// savedNote explains savings.
func savedNote(c *eval.Config) string {
	if c.Today != nil {
		return "Figures are medians over the runs of a scenario, a month has 730 hours, and saved is how far a bill is below " + c.Today.Name + ", outages not deducted."
	}
	return "Figures are medians over the runs of a scenario. Saved is the on-demand bill and outage cost less the policy's own: money after what outages cost."
}

// traceNotes describes each trace, and whether its prices and reclaims are recorded. Every format
// contains these notes.
func traceNotes(r *eval.Report) []string {
	var notes []string
	for i := range r.Traces {
		t := &r.Traces[i]
		name := t.Name
		if t.About != "" {
			name += " (" + strings.TrimSuffix(t.About, ".") + ")"
		}
		notes = append(notes, fmt.Sprintf("Trace %s: %s prices, %s to %s; reclaims are %s.%s", name, t.Prices(),
			Instant(t.From), Instant(t.To), reclaims(r, t), partRead(t)))
	}
	return notes
}

// partRead describes how many bytes of a trace were read, unless it was read completely.
func partRead(t *scenarios.TraceInfo) string {
	if t.Traffic == nil || t.Traffic.Read == t.Traffic.Stored {
		return ""
	}
	return fmt.Sprintf(" Read: %d of %d bytes.", t.Traffic.Read, t.Traffic.Stored)
}

// reclaims describes the source of reclaims in the cases that use trace t. A trace may contain the
// availability of some markets only.
func reclaims(r *eval.Report, t *scenarios.TraceInfo) string {
	said := "modelled"
	for i := range r.Config.Cases {
		if w := r.Config.Cases[i].Bound; w.Trace == *t && w.Reclaims() != said {
			said = w.Reclaims()
		}
	}
	return said
}

// scenarioNotes lists what was omitted from the scenarios of c, each once.
func scenarioNotes(c *eval.Config) (notes []string) {
	for i := range c.Cases {
		for _, w := range c.Cases[i].Bound.Warnings {
			note := c.Cases[i].Scenario + ": " + w
			if !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
	}
	return notes
}

// truthNotes describes the truths of the scenarios of c, except the unchanged market model.
func truthNotes(c *eval.Config) (notes []string) {
	for i := range c.Cases {
		t := c.Cases[i].Bound.Truth
		note := fmt.Sprintf("Truth %v: %s. No policy knows it.", t, t.About)
		if !t.Modelled() && !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	return notes
}
