package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A warning is a caveat that readers must see.
type warning struct {
	Text string

	// Command repeats the run that the warning is about; empty if there is no command.
	Command string
}

// missingShown is the maximum number of missing runs that are listed.
const missingShown = 5

// warnings returns the reasons not to take the results at face value.
func warnings(r *eval.Report, running bool) []warning {
	var out []warning
	if r.Stopped && !running {
		out = append(out, warning{Text: "What did not finish is left out of all figures."}) // the verdict contains the numbers
	}
	for i := range r.Traces {
		t := &r.Traces[i]
		switch {
		case t.Synthetic:
			out = append(out,
				warning{Text: fmt.Sprintf("The prices are synthetic: the trace %s was generated and not recorded (%s). Savings under real prices will differ.", t.Name, strings.TrimSuffix(t.About, "."))})
		case t.Scripted:
			out = append(out,
				warning{Text: fmt.Sprintf("The prices are scripted: those of the trace %s were written by hand (%s). Savings under real prices will differ.", t.Name, strings.TrimSuffix(t.About, "."))})
		case t.Modelled:
			out = append(out,
				warning{Text: fmt.Sprintf("The trace %s has no prices of its own: they are modelled as a share of the price on demand.", t.Name)})
		}
	}
	out = append(out, reclaimWarnings(r)...)
	out = append(out, missingRuns(r)...)
	for _, text := range format.Warnings(r) {
		out = append(out, warning{Text: sentence(text)})
	}
	if slices.ContainsFunc(r.Groups, func(g eval.Group) bool { return len(g.Cases) == 1 }) {
		out = append(out, warning{Text: "Of some scenario one window was run: its figures hold for that window only."})
	}
	for _, line := range format.Violations(r) {
		out = append(out, warning{Text: line + "."})
	}
	return append(out, noted(r)...)
}

// sentence ends text with a full stop and starts it with a capital if the first word is not a name.
func sentence(text string) string {
	word, _, _ := strings.Cut(text, " ")
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") == "" {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	return strings.TrimSuffix(text, ".") + "."
}

// reclaimWarnings describes the source of reclaims.
func reclaimWarnings(r *eval.Report) []warning {
	var said []string
	for i := range r.Config.Cases {
		if s := r.Config.Cases[i].Bound.Reclaims(); !slices.Contains(said, s) {
			said = append(said, s)
		}
	}
	const always = " Notices, rebalance recommendations and refusals of launches on demand are always modelled."
	switch {
	case len(said) == 1 && said[0] == "recorded":
		return []warning{{Text: "Reclaims and refused launches are recorded." + always}}
	case len(said) == 1:
		return []warning{{Text: "Reclaims and refused launches are " + said[0] + "." + always}}
	}
	return []warning{{Text: "Reclaims and refused launches are " + strings.Join(said, " in some scenarios, ") +
		" in others." + always}}
}

// missingRuns lists the runs that failed, the first of them with their errors.
func missingRuns(r *eval.Report) []warning {
	var out []warning
	for i := range r.Runs {
		run := &r.Runs[i]
		if run.Err == nil || run.Unfinished() {
			continue
		}
		if len(out) == missingShown {
			return append(out, warning{Text: fmt.Sprintf("And %s are missing.",
				figures.Count(r.Missing()-missingShown, "more run"))})
		}
		first, _, _ := strings.Cut(run.Err.Error(), "\n")
		out = append(out, warning{
			Text:    fmt.Sprintf("The run of %s in %s with seed %d is missing: %s", run.Policy, run.Scenario, run.Seed, first),
			Command: r.Command(i),
		})
	}
	return out
}

// noted returns the distinct warnings of scenarios and, for the runs of each scenario, the number
// of runs with warnings and the first warning.
func noted(r *eval.Report) []warning {
	var out []warning
	for i := range r.Config.Cases {
		k := &r.Config.Cases[i]
		for _, text := range k.Bound.Warnings {
			if w := (warning{Text: k.Scenario + ": " + text}); !slices.Contains(out, w) {
				out = append(out, w)
			}
		}
	}
	for i := range r.Groups {
		warned, of, first := 0, 0, ""
		for p := range r.Config.Policies {
			for _, at := range runsOf(r, &r.Groups[i], p) {
				run := &r.Runs[at]
				of++
				if len(run.Result.Warnings) == 0 {
					continue
				}
				if warned++; first == "" {
					first, _, _ = strings.Cut(run.Policy+": "+run.Result.Warnings[0], "\n")
				}
			}
		}
		if warned > 0 {
			name := r.Groups[i].Scenario
			out = append(out, warning{Text: fmt.Sprintf("%s: %d of %s had faults that did not stop them, first %s", name,
				warned, figures.Count(of, "run"), first)})
		}
	}
	return out
}
