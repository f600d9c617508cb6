package format

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/scenarios"
)

// titledMax is the maximum number of scenarios that a title names; more are only counted.
const titledMax = 4

// Title describes the scope of the comparison in one line. If the comparison was stopped, the title
// starts with its progress.
func Title(r *eval.Report) string {
	if text := Incomplete(r); text != "" {
		return text + " · " + compared(r)
	}
	return compared(r)
}

// compared describes scenarios and their intervals, the numbers of seeds, policies and runs, and
// the origin of prices and reclaims.
func compared(r *eval.Report) string {
	var names []string
	scenarios := r.Groups
	if len(scenarios) > titledMax {
		names = []string{figures.Count(len(scenarios), "scenario") + " (" +
			figures.Count(len(r.Config.Cases), "window") + ")"}
		scenarios = nil
	}
	for _, g := range scenarios {
		first := r.Config.Cases[g.Cases[0]].Bound
		last := &r.Config.Cases[g.Cases[len(g.Cases)-1]]
		names = append(names, fmt.Sprintf("%s (%s, %s to %s)", r.Config.Cases[g.Cases[0]].Scenario,
			figures.Count(len(g.Cases), "window"), Instant(first.Start), Instant(last.End())))
	}
	return strings.Join(names, ", ") + " · " + figures.Count(len(r.Config.Seeds), "seed") + " · " +
		figures.Count(len(r.Config.Policies), "policy") + " · " + figures.Count(len(r.Runs), "run") + " · " + origins(r)
}

// origins describes the distinct origins of prices and reclaims of the cases.
func origins(r *eval.Report) string {
	var all []string
	for i := range r.Config.Cases {
		w := r.Config.Cases[i].Bound
		reclaims := w.Reclaims() + " reclaims"
		if strings.Contains(w.Reclaims(), " ") {
			reclaims = "reclaims " + w.Reclaims()
		}
		text := w.Trace.Prices() + " prices, " + reclaims
		if w.StartCluster != scenarios.StartEmpty {
			text += ", started on " + w.StartCluster.Nodes()
		}
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, "; ")
}

// Settings describes the configuration of the report, one item per setting. Text after a line break
// in an item is a command.
func Settings(r *eval.Report) []string {
	c := &r.Config
	lines := []string{
		"policies " + strings.Join(c.Policies, ", ") + "; baseline " + c.Baseline,
		"seeds " + seedList(c.Seeds),
	}
	var scenarios []string
	for i := range c.Cases {
		w := c.Cases[i].Bound
		line := fmt.Sprintf("%s: warm-up %s, ready grace %s, intensity %s", c.Cases[i].Scenario, figures.Duration(w.WarmUp),
			figures.Duration(w.ReadyGrace), figures.Number(w.Intensity, figures.Few))
		if w.Slots > 0 {
			line += fmt.Sprintf(", slots %d", w.Slots)
		}
		if w.Karpenter != 0 {
			line += fmt.Sprintf(", Karpenter %v", w.Karpenter)
		}
		line += ", start " + w.StartCluster.String()
		if w.NodeFee != 0 {
			line += fmt.Sprintf(", node fee %s an hour", w.NodeFee.Short())
		}
		if !w.Truth.Modelled() {
			line += ", truth " + w.Truth.String()
		}
		line += fmt.Sprintf(", scenario %x", w.Digest[:6])
		if w.Deviation != "" {
			line += "; simulated as it is, compared with what happened: " + w.Deviation
		}
		if len(scenarios) == 0 || scenarios[len(scenarios)-1] != line {
			scenarios = append(scenarios, line)
		}
	}
	lines = append(lines, scenarios...)
	for _, g := range c.Gates {
		lines = append(lines, "gate "+g.String())
	}
	if c.Version != "" {
		lines = append(lines, "version "+c.Version)
	}
	if c.Invocation != "" {
		lines = append(lines, "repeat with\n    "+c.Invocation)
	}
	return lines
}

// Incomplete describes the progress of a comparison that was stopped. It is empty if the comparison
// was not stopped.
func Incomplete(r *eval.Report) string {
	switch done := r.Done(); {
	case !r.Stopped:
		return ""
	case done == len(r.Runs):
		return fmt.Sprintf("INCOMPLETE: stopped after all %s, while bounds or the comparison were worked out",
			figures.Count(done, "run"))
	default:
		return fmt.Sprintf("INCOMPLETE: stopped after %s of %s", figures.Integer(done), figures.Count(len(r.Runs), "run"))
	}
}

// inScenario returns " in SCENARIO" if there are several scenarios, else "".
func inScenario(r *eval.Report, scenario string) string {
	if len(r.Groups) == 1 {
		return ""
	}
	return " in " + scenario
}
