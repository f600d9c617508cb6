package eval

import (
	"strings"
	"testing"
)

// Each of three worlds is won by another policy; the lines name them, and a
// distance of exactly the mark does not count.
func TestStandings(t *testing.T) {
	r := &Report{Config: Config{Policies: []string{OnDemand, "spotvortex", "spot", "static"}}}
	r.Groups = []Group{{}}
	for name, saved := range map[string][4]float64{
		"calm": {0, 60, 50, 30}, "rough": {0, 60, -8, -3}, "mixed": {0, 60, 1, 2},
	} {
		g := Group{Scenario: name}
		for p, v := range saved {
			s := PolicyReport{Policy: r.Config.Policies[p], Summaries: make([]Summary, len(metrics))}
			*s.summary("net_savings_pct") = Summary{N: 1, Median: v}
			g.Policies = append(g.Policies, s)
		}
		r.Groups = append(r.Groups, g)
	}
	got := strings.Join(r.standingLines(), "\n")
	for _, want := range []string{
		"on-demand is the best of the three in 1 (rough), and more than 3 points behind the best of them in 1 (calm).",
		"spot is the best of the three in 1 (calm), and more than 3 points behind the best of them in 1 (rough).",
		"static is the best of the three in 1 (mixed), and more than 3 points behind the best of them in 1 (calm).",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %q in\n%s", want, got)
		}
	}
	_, rows := r.standingTable()
	for _, row := range rows {
		if row[0] == "rough" && strings.Join(row[1:], "|") != "0.0 (−60.0)|60.0 (best)|-8.0 (−68.0)|-3.0 (−63.0)" {
			t.Errorf("row %q", row)
		}
	}
	r.Groups = r.Groups[:2]
	if r.standingLines() != nil {
		t.Error("one scenario has no standings")
	}
}
