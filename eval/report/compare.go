package report

import (
	"fmt"
	"io"
	"slices"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/chart"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/eval/stats"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/policy/portable"
)

// WriteComparison writes the comparison c of newer with older to w as one HTML file. If it fails to
// create the page, it writes nothing.
func WriteComparison(w io.Writer, c *eval.Comparison, older, newer *eval.Recorded) error {
	p := &page{
		Title: "Two reports compared", Subject: fmt.Sprintf("%s against %s", recordedName(newer), recordedName(older)),
		Version: newer.Version,
		Summary: comparisonSummary(c), Builds: changes(c), Weeks: &weekList{},
	}
	for _, text := range format.AnswerOfComparison(c).Warnings {
		p.Warnings = append(p.Warnings, warning{Text: sentence(text)})
	}
	for i := range newer.Cases {
		name := newer.Cases[i].Scenario
		if slices.ContainsFunc(p.Scenarios, func(x scenario) bool { return x.Name == name }) {
			continue
		}
		x, err := beforeAndAfter(fmt.Sprintf("scenario-%d", i+1), name, older, newer)
		if err != nil {
			return fmt.Errorf("making the HTML report: %s: %w", name, err)
		}
		p.Scenarios = append(p.Scenarios, x)
	}
	m := p.whole(func(m *markup) {
		m.addf("<main>\n")
		p.outcome(m)
		p.one(m, "builds", "What changed", p.Builds)
		p.scenarios(m, "Scenarios")
		p.warnings(m)
	})
	_, err := m.WriteTo(w)
	return err
}

// recordedName returns the name of a report and the version that wrote it.
func recordedName(r *eval.Recorded) string {
	if r.Version == "" {
		return r.Name
	}
	return r.Name + " (spotter " + r.Version + ")"
}

// A tally is the result of a policy in a scenario of one report.
type tally struct {
	runs int

	// saved is in percent of the on-demand bill of each run, month in dollars per month.
	saved, month []float64

	// out is the number of outage minutes of the worst run.
	out int64
}

// tallyOf aggregates the runs of a policy in a scenario.
func tallyOf(r *eval.Recorded, scenario, policy string) tally {
	var t tally
	for i := range r.Runs {
		x := &r.Runs[i]
		if x.Scenario != scenario || x.Policy != policy || x.Err != "" {
			continue
		}
		at := slices.IndexFunc(r.Runs, func(o eval.OtherRun) bool {
			return o.Scenario == scenario && o.Window == x.Window && o.Seed == x.Seed && o.Policy == eval.OnDemand &&
				o.Err == "" && o.Bill > 0
		})
		window := eval.CaseOf(r.Cases, scenario, x.Window)
		if at < 0 || window == nil || window.Duration() <= 0 {
			continue
		}
		od := &r.Runs[at]
		saved := (od.Bill + od.OutageCost - x.Bill - x.OutageCost).Float()
		t.runs++
		t.saved = append(t.saved, saved/od.Bill.Float()*100)
		t.month = append(t.month, saved*(eval.MonthHours/window.Duration().Hours()))
		t.out = max(t.out, x.OutageMinutes)
	}
	return t
}

// beforeAndAfter returns the section on one scenario: a table and a picture of both sides.
func beforeAndAfter(id, name string, older, newer *eval.Recorded) (scenario, error) {
	t := &table{
		Caption: "Before and after in " + name, Sortable: true,
		Note: "Savings are medians over the runs of each report, after what outages cost; outage minutes are those of the worst run. What changed, above, compares run by run.",
		Head: headings("'Policy", "Saved before|$ a month", "Saved after|$ a month", "Change|$ a month", "Saved before|%",
			"Saved after|%", "Worst outage before|minutes",
			"Worst outage after|minutes"),
	}
	a := &artist{id: id}
	pic := &chart.Boxes{Frame: a.frame("Net savings before and after", "net savings, % of the on-demand bill", "",
		2*len(newer.Policies))}
	var detail []string
	for p, policy := range newer.Policies {
		old, now := tallyOf(older, name, policy), tallyOf(newer, name, policy)
		t.Rows = append(t.Rows, tallyRow(policy, &old, &now))
		if policy == eval.OnDemand {
			continue
		}
		for _, side := range []struct {
			word string
			of   *tally
		}{{"before", &old}, {"after", &now}} {
			if side.of.runs > 0 {
				b := boxOf(short(policy)+", "+side.word, side.of.saved)
				b.Colour = p + 1
				pic.Rows = append(pic.Rows, b)
				detail = append(detail, fmt.Sprintf("%s, %s: from %s to %s, median %s.", policy, side.word, percent(b.Least),
					percent(b.Greatest), percent(b.Median)))
			}
		}
	}
	if len(pic.Rows) > 0 {
		pic.Height = max(200, 110+len(pic.Rows)*rowHeight)
		h := &hover{Kind: "rows"}
		h.rows(detail)
		a.add(pic, &pic.Frame, h, nil,
			"A dot is a run, the box holds the middle half of them, and the bar in it is the median.", detail)
	}
	return scenario{ID: id, Name: name, Span: "before and after", Compared: t, Figures: a.figures}, a.err
}

// tallyRow returns the table row of a policy.
func tallyRow(policy string, old, now *tally) []cell {
	row := append(texts(policy), unknown, unknown, unknown, unknown, unknown, unknown, unknown)
	for i, t := range []*tally{old, now} {
		if t.runs > 0 {
			row[1+i].Text, row[4+i].Text = figures.Dollars(stats.Median(t.month)), oneDecimal(stats.Median(t.saved))
			row[6+i].Text = figures.Integer(t.out)
		}
	}
	if old.runs > 0 && now.runs > 0 {
		d := stats.Median(now.month) - stats.Median(old.month)
		row[3], row[7] = badIf(d < 0, figures.DollarChange(d)), badIf(now.out > old.out, row[7].Text)
	}
	return row
}

// boxOf returns the distribution of values, which must not be empty.
func boxOf(name string, values []float64) chart.Box {
	s := slices.Sorted(slices.Values(values))
	at := func(q float64) float64 { return portable.Quantile(s, q) }
	return chart.Box{Name: name, Least: s[0], Q1: at(0.25), Median: at(0.5), Q3: at(0.75), Greatest: s[len(s)-1], Dots: s}
}
