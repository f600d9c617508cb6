package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy/figures"
)

// What namespaces cost is the mean over the runs of which that is known, for a month, with the
// namespace first that costs most and the winner's column before the others.
func TestNamespaces(t *testing.T) {
	c := shown("web-week")
	c.Gates = nil
	r := compared(t, c, fake{})
	g := &r.Groups[0]
	if namespaces(r, g) != nil {
		t.Error("a table of nothing")
	}
	for i := range r.Runs {
		run := &r.Runs[i]
		if run.Policy == "static:share=0.3" {
			continue
		}
		shop := 1.0
		if run.Policy == "spot" {
			shop = float64(1 + 2*(run.Seed%2)) // seeds 1 to 5: 3, 1, 3, 1, 3
		}
		of := *run.Result
		of.NamespaceCosts = map[string]float64{"shop": shop, Idle: 0.5}
		run.Result = &of
	}
	x := namespaces(r, g)
	if got := []string{x.Rows[0][0].Text, x.Rows[1][0].Text}; !slices.Equal(got, []string{"shop", Idle}) || x.Head[1].Text != "★ spot" {
		t.Fatalf("rows %v, first column %q", got, x.Head[1].Text)
	}
	// A window has a day, and a month 730 hours: 2.2 dollars a window are 66.92 a month.
	if x.Rows[0][1].Text != "$66.92" || x.Rows[0][1].Sub != "+$36.50" || x.Rows[1][1].Text != "$15.21" {
		t.Errorf("spot has %+v and %+v", x.Rows[0][1], x.Rows[1][1])
	}
	at := slices.IndexFunc(x.Head, func(h heading) bool { return h.Text == "static:share=0.3" })
	if x.Rows[0][at].Text != figures.Unknown {
		t.Errorf("a policy of which nothing is known costs %q", x.Rows[0][at].Text)
	}
}

// The winner is first and marked, before what saves more and does not keep the manifests.
func TestWinnerFirst(t *testing.T) {
	r := compared(t, shown("web-week"), fake{})
	if first := comparison(r, &r.Groups[0]).Rows[0][0]; first.Text != "★ spot" || first.Class != "winner" {
		t.Errorf("the first row is of %+v", first)
	}
	r.Groups[0].Policies[slices.Index(r.Config.Policies, "spot")].Violating = 1
	rows := comparison(r, &r.Groups[0]).Rows
	if last := rows[len(rows)-1][0]; rows[0][0].Text != "★ portfolio" || last.Text != "spot !" || last.Sub != "manifests not kept" {
		t.Errorf("the first row is of %+v, the last of %+v", rows[0][0], last)
	}
}

// Every picture of policies has a group for each of its series, and as many for its own legend
// where that names policies.
func TestSeriesCanBeHidden(t *testing.T) {
	all := elements(t, written(t, compared(t, shown("web-week"), fake{samples: 24})))
	pictures := 0
	for i, e := range all {
		series, ok := e.attr["data-series"]
		if e.name != "div" || !ok {
			continue
		}
		pictures++
		groups := 0
		for _, x := range all[i+1:] {
			if len(x.path) <= len(e.path) {
				break
			}
			if x.name == "g" && x.attr["class"] == "series" {
				groups++
			}
		}
		if n := len(strings.Fields(series)); groups != n && groups != 2*n {
			t.Errorf("%d groups for the %d series %s", groups, n, series)
		}
	}
	if pictures != 5 { // all but that of reclaims
		t.Errorf("%d pictures of policies", pictures)
	}
	if got := seriesAttribute([][]int{{1, 2}, {0}}); got != ` data-series="1,2 0"` {
		t.Errorf("the attribute is %q", got)
	}
}
