package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/policy/figures"
)

// TestToday has a report of a cluster for which $300 a month are paid: that is the first row,
// and every saving that is shown is of it, and none of the on-demand bill.
func TestToday(t *testing.T) {
	c := shown("web-week")
	c.Gates = nil
	c.Today = &eval.Today{Name: "today's bill", Nodes: 7, SpotShare: 0.25, Month: 300}
	r := compared(t, c, fake{})
	g := &r.Groups[0]
	rows := comparison(r, g).Rows
	if len(rows) != len(g.Policies)+1 || rows[0][0].Text != "today's bill" || rows[0][1].Text != "$300" || rows[0][2].Text != "reference" {
		t.Fatalf("rows %+v", rows)
	}
	for i := range g.Policies {
		p := &g.Policies[i]
		month := p.Summary("bill_usd").Median * c.Today.PerMonth(r.Config.Cases[0].Bound.Duration)
		x := rows[1+slices.IndexFunc(rows[1:], func(row []cell) bool { return strings.TrimPrefix(row[0].Text, "★ ") == p.Policy })]
		if x[1].Text != figures.Dollars(month) || x[2].Text != figures.Number(100*(1-month/300), 1) {
			t.Errorf("%s: %s and %s, want %s and %.1f", p.Policy, x[1].Text, x[2].Text, figures.Dollars(month), 100*(1-month/300))
		}
	}
	all := strings.Join(append(newSummary(r, format.AnswerOf(r), false).Sentences, format.Notes(r)[0]), "\n")
	if !strings.Contains(all, "of today's bill;") || strings.Contains(all, "on-demand bill") {
		t.Errorf("the summary is\n%s", all)
	}
	page := written(t, r)
	if shown, _, _ := strings.Cut(page, `id="definitions"`); strings.Contains(shown,
		"net savings, % of the on-demand bill") || !strings.Contains(shown, "% of today&#39;s bill") {
		t.Error("savings of the page are not all of today's bill")
	}
}
