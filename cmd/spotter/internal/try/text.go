package try

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/sim"
)

// title returns the name of a policy in the output.
func (x *sight) title(policy string) string {
	switch policy {
	case asIs:
		switch {
		case x.withoutCluster:
			return "its pools, consolidated (as-is)"
		case len(x.options.NodePools) > 0:
			return "your own NodePools, consolidated (as-is)"
		}
		return "your own pools, consolidated (as-is)"
	case onDemand:
		return "on demand only"
	case karpenter:
		return "Spot allowed (karpenter)"
	}
	return "Spotter (portfolio)"
}

// verdict summarises in a sentence the cost of Spotter compared with today's cost, and its worst
// run.
func (r *result) verdict() string {
	p := r.row(portfolio)
	change := figures.Percent(-p.Change, 1) + " less"
	if p.Change > 0 {
		change = figures.Percent(p.Change, 1) + " more"
	}
	return fmt.Sprintf("%s costs %s a month, %s than %s; too few pods ready in the worst run: %s.", p.Title, p.month(),
		change, r.Now.title(), p.Worst.sentence())
}

// answer returns the output for r.
func (r *result) answer() *format.Answer {
	now := r.Now.sentence(r.Prices)
	a := &format.Answer{
		Verdicts: []format.Verdict{{Text: r.verdict()}, {Text: strings.ToUpper(now[:1]) + now[1:] + "."}},
		About: fmt.Sprintf("Simulated on %s Spot prices from %s to %s, with %s of when Spot nodes are taken.%s",
			r.Prices, r.From[:10], r.To[:10], figures.Count(r.Seeds, "draw"), r.written()),
		Next: r.Next.step(), Warnings: r.warnings(),
	}
	if r.Manifests != "" {
		a.Verdicts = append(a.Verdicts, format.Verdict{Text: "This is of " + r.Manifests + "."})
	}
	var longest []string
	t := format.Grid{Headings: format.Headings("POLICY", "$ A MONTH", "CHANGE", "SPOT", "TOO FEW PODS READY, WORST RUN")}
	t.Rows = []format.Row{format.Cells(r.Now.title(), figures.Dollars(r.Now.Month), figures.Unknown,
		figures.RoughShare(r.Now.Share), "not measured")}
	for i := range r.Policies {
		p := &r.Policies[i]
		t.Rows = append(t.Rows, format.Cells(p.Title, p.month(), figures.PercentChange(p.Change, 1),
			figures.RoughShare(p.Share), p.Worst.short()))
		if p.Worst.Incidents > 0 {
			longest = append(longest, p.Title+": "+p.Worst.sentence())
		}
	}
	a.Tables, a.Details = []format.Grid{t}, []format.Section{{Heading: "Too few pods ready, worst runs", Items: longest}}
	return a
}

// written names the folder of the files and their names, empty without files.
func (r *result) written() string {
	if len(r.Files) == 0 {
		return ""
	}
	dir, names := filepath.Dir(r.Files[0]), []string{}
	for _, file := range r.Files {
		if filepath.Dir(file) != dir {
			return " Written to " + strings.Join(r.Files, ", ")
		}
		names = append(names, filepath.Base(file))
	}
	return " Written to " + dir + ": " + strings.Join(names, ", ")
}

// warnings returns the assumptions and omissions. The first of each kind comes first.
func (r *result) warnings() (first []string) {
	var rest []string
	for _, of := range []struct {
		title string
		all   []string
	}{{"Assumed: ", r.Assumed}, {"Left out: ", r.LeftOut}} {
		for i, text := range of.all {
			if text = of.title + strings.TrimSuffix(text, ".") + "."; i == 0 {
				first = append(first, text)
			} else {
				rest = append(rest, text)
			}
		}
	}
	return append(first, rest...)
}

// step returns s in the form of an answer.
func (s *step) step() format.Step {
	return format.Step{Do: s.Do, Command: strings.Join(s.Commands, "\n")}
}

// title returns the name of the first row.
func (c *cost) title() string {
	if c.Of == paidToday {
		return "what you pay today"
	}
	return c.Of
}

// month formats the monthly cost with its interval.
func (p *row) month() string {
	if p.Low == nil || figures.Dollars(*p.Low) == figures.Dollars(*p.High) {
		return figures.Dollars(p.Month)
	}
	return figures.Interval(p.Month, *p.Low, *p.High, figures.Dollars)
}

// causes describe the causes of outages.
var causes = [sim.OutageCauses]string{
	sim.CauseReclaim: "Spot nodes taken", sim.CauseRefused: "no Spot capacity", sim.CauseMove: "nodes moved", sim.CauseProvisioner: "nodes consolidated",
	sim.CauseFault: "a zone lost", sim.CauseBudget: "a GPU budget", sim.CausePreemption: "preempted", sim.CauseGrowth: "slow to start",
}

// sentence describes how long too few pods were ready in the worst run, and why.
func (x *worst) sentence() string {
	if x.Incidents == 0 {
		return "never"
	}
	longest := figures.Duration(time.Duration(x.Longest * float64(time.Second)))
	why := fmt.Sprintf("%v: %s (%s)", longest, x.Workload, causes[x.cause])
	if x.Incidents == 1 {
		return "once, " + why
	}
	return x.short() + "; longest " + why
}

// short describes how long too few pods were ready in the worst run.
func (x *worst) short() string {
	if x.Incidents == 0 {
		return "never"
	}
	return fmt.Sprintf("%s, %s min", figures.Count(x.Incidents, "time"), figures.Integer(x.Minutes))
}

// answer returns the output for the fleet: a row for each cluster and their sum.
func (x *fleet) answer() *format.Answer {
	of := func(month, change float64) string {
		return figures.Dollars(month) + " (" + figures.PercentChange(change, 1) + ")"
	}
	t := format.Grid{Headings: format.Headings("$ A MONTH", "TODAY", "OWN POOLS, CONSOLIDATED", "ON DEMAND ONLY",
		"SPOT ALLOWED", "SPOTTER")}
	sum := format.Cells("all", figures.Dollars(x.Sum.Now))
	for _, p := range x.Sum.Policies {
		sum.Cells = append(sum.Cells, format.Cell{Text: of(p.Month, p.Change)})
	}
	var next format.Grid
	a := &format.Answer{}
	if files := x.Clusters[0].Files; len(files) > 0 {
		a.About = "Written: a folder for each in " + filepath.Dir(filepath.Dir(files[0]))
	}
	for _, r := range x.Clusters {
		row := format.Cells(r.Context, figures.Dollars(r.Now.Month))
		for i := range r.Policies {
			row.Cells = append(row.Cells, format.Cell{Text: of(r.Policies[i].Month, r.Policies[i].Change)})
		}
		t.Rows = append(t.Rows, row)
		next.Rows = append(next.Rows, format.Cells(fmt.Sprintf("%s: %s prices, %s; next: %s", r.Context, r.Prices,
			figures.Count(r.Seeds, "draw"), r.Next.Do)))
		for _, c := range r.Next.Commands {
			next.Rows = append(next.Rows, format.Cells("  "+c))
		}
	}
	t.Rows = append(t.Rows, sum)
	a.Tables = []format.Grid{t, next}
	return a
}
