package format

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/figures"
)

// Maximum numbers of rows, gates and causes in a review.
const (
	reviewRowsMax   = 10
	reviewGatesMax  = 10
	reviewCausesMax = 3
)

// manifest is the policy that follows the scenario's own CapacityPools.
const manifest = "manifest"

// A spendingRow is the spending of one policy in one scenario. before is nil if there is nothing to
// compare with, change is nil if the report has no comparison.
type spendingRow struct {
	scenario, policy        string
	before, after, onDemand *eval.Spending
	change                  *eval.Change
}

func (x *spendingRow) name() string { return x.scenario + ", " + x.policy }

// reviewOf returns the part of a report for reviewers of a change: the cost, the results of gates,
// and the reasons.
func reviewOf(r *eval.Report) Review {
	rows, c := spendingRows(r), r.Comparison
	main := mainRow(r, rows)
	v := Review{
		Title: Verdict{toneOf(r), "Spotter: " + strings.Join(append([]string{reviewTitle(r, main)}, demandsOf(r)...), "; ")},
		Quiet: c != nil && !c.BeyondNoise() && r.ExitCode() == 0 && c.Outcome != eval.NotComparable,
		Fold:  "Every policy, the worst runs, and the commands that repeat them",
	}
	if v.Title.Tone == Plain {
		v.Title.Tone = Good
	}
	if r.Stopped {
		v.Title.Text += "; stopped before the end"
	}
	v.Sections = append(v.Sections, Section{About: lackOf(c)}, Section{Table: spendingTable(rows[:min(len(rows),
		reviewRowsMax)])})
	if n := len(rows) - reviewRowsMax; n > 0 {
		v.Sections = append(v.Sections, Section{About: fmt.Sprintf("%d more are below.", n)})
	}
	if main != nil && main.change != nil && main.change.Demand > 0 {
		v.Sections = append(v.Sections,
			Section{About: "The workloads request something else. All on demand they would cost " +
				arrow(figures.Dollars(main.before.OnDemandBill), figures.Dollars(main.after.OnDemandBill)) + " a month."})
	}
	v.Sections = append(v.Sections, Section{Items: reviewGates(r)})
	if main != nil {
		v.Sections = append(v.Sections, causesOf(main), Section{About: sparklines(main)})
	}
	return v
}

// spendingRows returns the rows of the policies whose results changed, or of all policies if no
// result changed. Without a comparison, it returns the rows of all policies except on-demand.
func spendingRows(r *eval.Report) []spendingRow {
	var out []spendingRow
	for i := range r.Groups {
		g := &r.Groups[i]
		onDemand := r.Spending(g, slices.Index(r.Config.Policies, eval.OnDemand))
		for p, name := range r.Config.Policies {
			after := r.Spending(g, p)
			if r.Comparison == nil {
				if name != eval.OnDemand && len(after.Costs) > 0 {
					out = append(out, spendingRow{g.Scenario, name, nil, &after, &onDemand, nil})
				}
				continue
			}
			all := r.Comparison.Changes
			at := slices.IndexFunc(all, func(x eval.Change) bool { return x.Scenario == g.Scenario && x.Policy == name })
			switch {
			case at < 0, all[at].Pairs == 0 && len(after.Costs) == 0:
			case all[at].Pairs == 0:
				out = append(out, spendingRow{g.Scenario, name, nil, &after, &onDemand, &all[at]})
			case all[at].Changed > 0 || r.Comparison.Outcome == eval.Equal:
				out = append(out, spendingRow{g.Scenario, name, &all[at].Before, &all[at].After, &onDemand, &all[at]})
			}
		}
	}
	return out
}

// mainRow returns the row that the title describes: that of the headline, or without a comparison,
// in the first scenario, the row of the policy manifest or else the cheapest one. It returns nil if
// there are no rows.
func mainRow(r *eval.Report, rows []spendingRow) *spendingRow {
	if r.Comparison != nil {
		headline := r.Comparison.Main()
		if i := slices.IndexFunc(rows, func(x spendingRow) bool { return x.change == headline }); headline != nil && i >= 0 {
			return &rows[i]
		}
	}
	var best *spendingRow
	for i := range rows {
		x := &rows[i]
		if x.scenario != rows[0].scenario {
			break
		}
		if best == nil || x.policy == manifest || best.policy != manifest && x.after.Cost() < best.after.Cost() {
			best = x
		}
	}
	return best
}

// reviewTitle describes the cost of main, or its change.
func reviewTitle(r *eval.Report, main *spendingRow) string {
	switch {
	case main == nil:
		return "no run was finished"
	case main.before == nil:
		text := figures.Dollars(main.after.Bill) + " a month"
		if saved := main.after.SavedPct(); saved.Known {
			text += ", " + figures.Percent(saved.V, 0) + " saved"
		}
		return text
	case main.change.Changed == 0:
		return "no change, " + figures.Dollars(main.after.Bill) + " a month"
	}
	text := changeWords(main.before.Bill, main.after.Bill) + " a month"
	if d := main.after.OutageMinutes - main.before.OutageMinutes; math.Abs(d) >= 0.5 {
		text += ", " + figures.Signed(d, 0) + " outage minutes"
	}
	if r.Comparison.Outcome != eval.Worse && !r.Comparison.BeyondNoise() {
		text += ", within what chance explains"
	}
	return text
}

// lackOf explains why rows have no values before the change; it is empty if all have them.
func lackOf(c *eval.Comparison) string {
	const state = "There is nothing to compare with: these are the figures of this commit."
	if c == nil {
		return state
	}
	lacks := 0
	for i := range c.Changes {
		if c.Changes[i].Pairs == 0 {
			lacks++
		}
	}
	switch lacks {
	case 0:
		return ""
	case len(c.Changes):
		return state + " " + strings.Join(c.Warnings, "; ")
	}
	return "Where “before” is empty there is nothing to compare with: " + strings.Join(c.Warnings, "; ")
}

// spendingTable returns the table of monthly costs, with the columns before and change if at least
// one row has them.
func spendingTable(rows []spendingRow) Grid {
	var t Grid
	compared := slices.ContainsFunc(rows, func(x spendingRow) bool { return x.before != nil })
	t.Headings = Headings("A month", "All on demand", "Bill", "Saved", "Outage minutes")
	if compared {
		t.Headings = Headings("A month", "Bill before", "Bill after", "Change", "Saved against on-demand", "Outage minutes")
	}
	whole := func(s *eval.Spending) (bill, saved, outages string) {
		percents := func(x float64) string { return figures.Percent(x, 0) }
		return figures.Dollars(s.Bill), textOf(s.SavedPct(), percents), figures.Number(s.OutageMinutes, 0)
	}
	for i := range rows {
		x := &rows[i]
		bill, saved, outages := whole(x.after)
		switch {
		case !compared:
			t.Rows = append(t.Rows, Cells(x.name(), figures.Dollars(x.after.OnDemandBill), bill, saved, outages))
		case x.before == nil:
			t.Rows = append(t.Rows, Cells(x.name(), figures.Unknown, bill, figures.Unknown, saved, outages))
		default:
			was, savedWas, outagesWas := whole(x.before)
			t.Rows = append(t.Rows, Cells(x.name(), was, bill, changeWords(x.before.Bill, x.after.Bill),
				arrow(savedWas, saved), arrow(outagesWas, outages)))
		}
	}
	return t
}

// reviewGates describes the outcome of the comparison, the failed gates, and then the passed ones.
func reviewGates(r *eval.Report) (lines []string) {
	if c := r.Comparison; c != nil {
		words := map[eval.Outcome]string{
			eval.Equal: "every run is equal", eval.NoWorse: "not worse", eval.Worse: "worse, beyond what chance explains",
			eval.Undecided: "undecided", eval.NotComparable: "not comparable",
		}
		line := Verdict{toneOfOutcome(c.Outcome), "compared with " + c.Other + ": " + words[c.Outcome]}.String()
		if len(c.Seeds) > len(r.Config.Seeds) && len(r.Gates) > 0 {
			line += fmt.Sprintf(", by %s where the gates have %d", figures.Count(len(c.Seeds), "seed"), len(r.Config.Seeds))
		}
		lines = append(lines, line)
	}
	for n, pass := 0, 0; pass < 2; pass++ {
		for i := range r.Gates {
			if r.Gates[i].Pass != (pass == 1) {
				continue
			}
			if n == reviewGatesMax {
				return append(lines, fmt.Sprintf("%d more gates are below", len(r.Gates)-n))
			}
			lines, n = append(lines, gateWords(r, &r.Gates[i])), n+1
		}
	}
	return lines
}

// causesOf lists the largest causes of the difference to before, or to on-demand if before is nil.
// It omits causes smaller than a hundredth of the largest.
func causesOf(x *spendingRow) Section {
	before, title := x.before, "Why"
	if before == nil {
		before, title = x.onDemand, "Why it is not the on-demand bill"
	}
	s := Section{Heading: title + " (" + x.name() + ")", Numbered: true}
	causes := eval.Causes(before, x.after)
	for _, c := range causes[:min(len(causes), reviewCausesMax)] {
		if size := math.Abs(c.Amount); size < 0.005 || size < math.Abs(causes[0].Amount)/100 {
			break
		}
		s.Items = append(s.Items, figures.DollarChange(c.Amount)+" a month: "+causeWords(c, before, x.after))
	}
	return s
}

// causeWords describes the difference with the values of both sides.
func causeWords(c eval.Cause, before, after *eval.Spending) string {
	than := func(more, less string) string {
		if c.Amount < 0 {
			return less
		}
		return more
	}
	switch c.Kind {
	case eval.CauseSpotShare:
		a, b := before.SpotShare(), after.SpotShare()
		word := "less"
		if a < b {
			word = "more"
		}
		return fmt.Sprintf("%s of the capacity is on Spot: %s → %s", word, figures.Share(a, 1), figures.Share(b, 1))
	case eval.CauseCapacity:
		return partWords(before.Capacity, after.Capacity) + than("more", "less") + " capacity is held"
	case eval.CauseSpotPrice:
		return "an hour of Spot capacity is " +
			partWords(before.SpotBill*after.SpotCapacity, after.SpotBill*before.SpotCapacity) + than("more expensive", "cheaper")
	case eval.CauseOnDemandPrice:
		return "an hour of on-demand capacity is " +
			partWords((before.Bill-before.SpotBill)*(after.Capacity-after.SpotCapacity),
				(after.Bill-after.SpotBill)*(before.Capacity-before.SpotCapacity)) +
			than("more expensive", "cheaper")
	case eval.CauseOutages:
		return fmt.Sprintf("outages cost %s: %s → %s minutes", than("more", "less"),
			figures.Whole(before.OutageMinutes), figures.Whole(after.OutageMinutes))
	case eval.CauseJobs:
		return than("more", "less") + " work is not done in time"
	}
	return "nodes cost " + than("more", "less")
}

// partWords returns the relative change from a to b in percent, followed by a space. It is empty if
// a is not positive.
func partWords(a, b float64) string {
	if a <= 0 {
		return ""
	}
	return figures.Percent(math.Abs(b-a)/a*100, 1) + " "
}

// sparkWidth is the maximum number of runs in a sparkline; for more runs, it shows quantiles.
const sparkWidth = 20

// sparklines draws the costs of all runs in ascending order, before and after on the same scale.
func sparklines(x *spendingRow) string {
	sides, names := []*eval.Spending{x.before, x.after}, []string{"before", "after"}
	if x.before == nil {
		sides, names = []*eval.Spending{x.onDemand, x.after}, []string{"on demand", x.policy}
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, s := range sides {
		if len(s.Costs) == 0 {
			return ""
		}
		low, high = min(low, slices.Min(s.Costs)), max(high, slices.Max(s.Costs))
	}
	of := "bill"
	if sides[0].OutageCost+sides[1].OutageCost > 0 {
		of = "bill and cost of outages"
	}
	var parts []string
	for i, s := range sides {
		span := figures.Dollars(slices.Min(s.Costs))
		if most := figures.Dollars(slices.Max(s.Costs)); most != span {
			span += " to " + most
		}
		parts = append(parts, names[i]+" `"+sparkline(s.Costs, low, high)+"` "+span)
	}
	return "A month's " + of + " in each run, cheapest first: " + strings.Join(parts, ", ")
}

// sparkline draws values in ascending order, as bars between low and high.
func sparkline(values []float64, low, high float64) string {
	bars := []rune("▁▂▃▄▅▆▇█")
	sorted := slices.Sorted(slices.Values(values))
	out := make([]rune, min(len(sorted), sparkWidth))
	for i := range out {
		at := len(sorted) - 1
		if i < len(out)-1 {
			at = i * (len(sorted) - 1) / (len(out) - 1)
		}
		level := 0
		if high > low {
			level = int((sorted[at]-low)/(high-low)*float64(len(bars)-1) + 0.5)
		}
		out[i] = bars[level]
	}
	return string(out)
}

// changeWords describes the change from a to b, also in percent if a is positive.
func changeWords(a, b float64) string {
	text := figures.DollarChange(b - a)
	if a > 0 && b != a {
		part := (b - a) / a * 100
		digits := 0
		if math.Abs(part) < 10 {
			digits = 1
		}
		text += " (" + figures.PercentChange(part, digits) + ")"
	}
	return text
}

// arrow returns "a → b", or b if both are equal.
func arrow(a, b string) string {
	if a == b {
		return b
	}
	return a + " → " + b
}
