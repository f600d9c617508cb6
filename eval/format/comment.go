package format

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/figures"
)

// CommentQuiet begins a comment that says nothing new: all gates hold, and what
// changed is within what chance explains. It is good for bringing an older comment
// up to date, and no reason to begin one.
const CommentQuiet = "<!-- spotter: nothing new -->"

// How much of each stands above the part that is collapsed.
const (
	commentRowsMax   = 10
	commentGatesMax  = 10
	commentCausesMax = 3
)

// manifest is the policy that a scenario's own CapacityPools name.
const manifest = "manifest"

// A commentRow is what one policy spends in one scenario. Before is nil where
// there is nothing to compare with, and change nil without a comparison.
type commentRow struct {
	scenario, policy        string
	before, after, onDemand *eval.Spending
	change                  *eval.Change
}

func (x *commentRow) name() string { return x.scenario + ", " + x.policy }

// writeComment writes the report for who reviews a change: what it costs, which
// gates hold, and why, and below that, collapsed, the whole report in Markdown.
// It is at most [MarkdownMax] long.
func writeComment(w io.Writer, r *eval.Report) error {
	rows := commentRows(r)
	main := mainRow(r, rows)
	var b bytes.Buffer
	if commentQuiet(r) {
		b.WriteString(CommentQuiet + "\n")
	}
	b.WriteString("### " + escape(commentTitle(r, main)) + "\n")
	if text := commentLack(r); text != "" {
		b.WriteString("\n" + escape(text) + "\n")
	}
	writeCommentTable(&b, rows)
	if main != nil && main.change != nil && main.change.Demand > 0 {
		fmt.Fprintf(&b, "\nThe workloads ask for something else. All on demand they would cost %s a month.\n", arrow(figures.Dollars(main.before.OnDemandBill), figures.Dollars(main.after.OnDemandBill)))
	}
	writeCommentGates(&b, r)
	if main != nil {
		writeCauses(&b, main)
		writeSparklines(&b, main)
	}
	b.WriteString("\n<details><summary>Every policy, the worst runs, and the commands that repeat them</summary>\n\n" + escape(Title(r)) + "\n")
	const foot = "\n</details>\n"
	parts := blocks(r)
	for i := range parts {
		parts[i].head = strings.Replace(parts[i].head, "\n## ", "\n#### ", 1)
	}
	_, err := io.WriteString(w, cutToFit(b.String(), parts, MarkdownMax-len(foot))+foot)
	return err
}

// commentQuiet reports whether there is nothing that a reviewer has to know.
func commentQuiet(r *eval.Report) bool {
	c := r.Comparison
	return c != nil && !c.BeyondNoise() && r.ExitCode() == 0 && c.Outcome != eval.NotComparable
}

// commentRows are the changes that are any, or all of them where none is; without
// a comparison every policy but on-demand.
func commentRows(r *eval.Report) []commentRow {
	var out []commentRow
	for i := range r.Groups {
		g := &r.Groups[i]
		onDemand := r.Spending(g, slices.Index(r.Config.Policies, eval.OnDemand))
		for p, name := range r.Config.Policies {
			after := r.Spending(g, p)
			if r.Comparison == nil && name != eval.OnDemand && len(after.Costs) > 0 {
				out = append(out, commentRow{scenario: g.Scenario, policy: name, after: &after, onDemand: &onDemand})
			}
			x := changeOf(r, g.Scenario, name)
			switch {
			case x == nil, x.Pairs == 0 && len(after.Costs) == 0:
			case x.Pairs == 0:
				out = append(out, commentRow{g.Scenario, name, nil, &after, &onDemand, x})
			case x.Changed > 0 || r.Comparison.Outcome == eval.Equal:
				out = append(out, commentRow{g.Scenario, name, &x.Before, &x.After, &onDemand, x})
			}
		}
	}
	return out
}

// changeOf returns the change of a policy in a scenario, nil where it was not compared.
func changeOf(r *eval.Report, scenario, policy string) *eval.Change {
	if r.Comparison == nil {
		return nil
	}
	i := slices.IndexFunc(r.Comparison.Changes, func(x eval.Change) bool { return x.Scenario == scenario && x.Policy == policy })
	if i < 0 {
		return nil
	}
	return &r.Comparison.Changes[i]
}

// mainRow is the one that the title is about: that of the headline, and without
// one, of the first scenario, what its manifests name or what costs least. It is
// nil without any.
func mainRow(r *eval.Report, rows []commentRow) *commentRow {
	if r.Comparison != nil {
		headline := r.Comparison.Main()
		if i := slices.IndexFunc(rows, func(x commentRow) bool { return x.change == headline }); headline != nil && i >= 0 {
			return &rows[i]
		}
	}
	var best *commentRow
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

// commentTitle is the outcome in one line.
func commentTitle(r *eval.Report, main *commentRow) string {
	mark, c := "✓", r.Comparison
	switch {
	case r.ExitCode() != 0:
		mark = "✗"
	case c != nil && (c.Outcome == eval.Undecided || c.Outcome == eval.NotComparable):
		mark = "⚠"
	}
	text := mark + " Spotter: "
	switch {
	case main == nil:
		text += "no run was finished"
	case main.before == nil:
		text += figures.Dollars(main.after.Bill) + " a month"
		if saved := main.after.SavedPct(); saved.Known {
			text += ", " + figures.Percent(saved.V, 0) + " saved"
		}
	case main.change.Changed == 0:
		text += "no change, " + figures.Dollars(main.after.Bill) + " a month"
	default:
		text += changeWords(main.before.Bill, main.after.Bill) + " a month"
		if d := main.after.OutageMinutes - main.before.OutageMinutes; math.Abs(d) >= 0.5 {
			text += ", " + figures.Signed(d, 0) + " outage minutes"
		}
		if c.Outcome != eval.Worse && !c.BeyondNoise() {
			text += ", within what chance explains"
		}
	}
	failed, _ := gatesByResult(r)
	switch n := r.Missing(); {
	case r.Stopped:
		text += "; stopped before the end"
	case n > 0:
		text += fmt.Sprintf("; %s of %s broke", figures.Integer(n), figures.Count(len(r.Runs), "run"))
	case len(failed) > 0:
		text += fmt.Sprintf("; %s of %s failed", figures.Integer(len(failed)), figures.Count(len(r.Gates), "gate"))
	}
	return text
}

// commentLack says why something has no before, and nothing where all have one.
func commentLack(r *eval.Report) string {
	const state = "There is nothing to compare with: these are the figures of this commit."
	c := r.Comparison
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

// writeCommentTable writes the first rows, with before and change where one has them.
func writeCommentTable(b *bytes.Buffer, rows []commentRow) {
	if len(rows) == 0 {
		return
	}
	compared := slices.ContainsFunc(rows, func(x commentRow) bool { return x.before != nil })
	heading := []string{"A month", "All on demand", "Bill", "Saved", "Outage minutes"}
	if compared {
		heading = []string{"A month", "Bill before", "Bill after", "Change", "Saved against on-demand", "Outage minutes"}
	}
	var cells [][]string
	for i := range rows[:min(len(rows), commentRowsMax)] {
		x := &rows[i]
		bill, saved, outages := figures.Dollars(x.after.Bill), textOf(x.after.SavedPct(), wholePercents), figures.Number(x.after.OutageMinutes, 0)
		row := []string{x.name()}
		switch {
		case !compared:
			row = append(row, figures.Dollars(x.after.OnDemandBill), bill, saved, outages)
		case x.before == nil:
			row = append(row, figures.Unknown, bill, figures.Unknown, saved, outages)
		default:
			row = append(row, figures.Dollars(x.before.Bill), bill, changeWords(x.before.Bill, x.after.Bill),
				arrow(textOf(x.before.SavedPct(), wholePercents), saved), arrow(figures.Number(x.before.OutageMinutes, 0), outages))
		}
		cells = append(cells, row)
	}
	markdownTable(b, heading, cells)
	if n := len(rows) - len(cells); n > 0 {
		fmt.Fprintf(b, "\n%d more are below.\n", n)
	}
}

// writeCommentGates writes what the comparison comes to, the gates that failed, and
// then the others.
func writeCommentGates(b *bytes.Buffer, r *eval.Report) {
	b.WriteByte('\n')
	if c := r.Comparison; c != nil {
		words := map[eval.Outcome]string{
			eval.Equal: "every run is equal", eval.NoWorse: "not worse", eval.Worse: "worse, beyond what chance explains",
			eval.Undecided: "undecided", eval.NotComparable: "not comparable",
		}
		line := outcomeMark(c.Outcome) + " compared with " + c.Other + ": " + words[c.Outcome]
		if len(c.Seeds) > len(r.Config.Seeds) && len(r.Gates) > 0 {
			line += fmt.Sprintf(", by %s where the gates have %d", figures.Count(len(c.Seeds), "seed"), len(r.Config.Seeds))
		}
		markdownItem(b, line)
	}
	gates := slices.Clone(r.Gates)
	slices.SortStableFunc(gates, func(x, y eval.GateResult) int {
		if x.Pass == y.Pass {
			return 0
		} else if x.Pass {
			return 1
		}
		return -1
	})
	for i := range gates {
		if i == commentGatesMax {
			fmt.Fprintf(b, "- %d more gates are below\n", len(gates)-i)
			break
		}
		markdownItem(b, gateWords(r, &gates[i]))
	}
}

// writeCauses writes the largest causes of the difference to before, and without
// one to on-demand. What is less than a hundredth of the largest is none.
func writeCauses(b *bytes.Buffer, x *commentRow) {
	before, title := x.before, "Why"
	if before == nil {
		before, title = x.onDemand, "Why it is not the on-demand bill"
	}
	causes := eval.Causes(before, x.after)
	for i, c := range causes[:min(len(causes), commentCausesMax)] {
		if size := math.Abs(c.Amount); size < 0.005 || size < math.Abs(causes[0].Amount)/100 {
			break
		}
		if i == 0 {
			b.WriteString("\n**" + title + "** (" + escape(x.name()) + ")\n\n")
		}
		fmt.Fprintf(b, "%d. %s a month: %s\n", i+1, figures.DollarChange(c.Amount), escape(causeWords(c, before, x.after)))
	}
}

// causeWords says what is different, with the figures of both sides.
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
		if a < b {
			return fmt.Sprintf("more of the capacity is on Spot: %s → %s", figures.Share(a, 1), figures.Share(b, 1))
		}
		return fmt.Sprintf("less of the capacity is on Spot: %s → %s", figures.Share(a, 1), figures.Share(b, 1))
	case eval.CauseCapacity:
		return partWords(before.Capacity, after.Capacity) + than("more", "less") + " capacity is held"
	case eval.CauseSpotPrice:
		return "an hour of Spot capacity is " + partWords(before.SpotBill*after.SpotCapacity, after.SpotBill*before.SpotCapacity) + than("dearer", "cheaper")
	case eval.CauseOnDemandPrice:
		return "an hour of on-demand capacity is " +
			partWords((before.Bill-before.SpotBill)*(after.Capacity-after.SpotCapacity), (after.Bill-after.SpotBill)*(before.Capacity-before.SpotCapacity)) + than("dearer", "cheaper")
	case eval.CauseOutages:
		return fmt.Sprintf("outages cost %s: %s → %s minutes", than("more", "less"), figures.Whole(before.OutageMinutes), figures.Whole(after.OutageMinutes))
	case eval.CauseJobs:
		return than("more", "less") + " work is not done in time"
	}
	return "nodes cost " + than("more", "less")
}

// partWords say by which part a changes to become b, before what it does, and
// nothing where that cannot be said.
func partWords(a, b float64) string {
	if a <= 0 {
		return ""
	}
	return figures.Percent(math.Abs(b-a)/a*100, 1) + " "
}
