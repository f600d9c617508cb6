package eval

import (
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/eval/stats"
	"github.com/spotter-dev/spotter/scenarios"
)

// gapLine is the line of a hunted scenario's head that says how bad it is, below zero where the policy
// no longer does badly there.
var gapLine = regexp.MustCompile(`(?m)^# Gap: (\S+) (-?[0-9.]+) points of the on-demand bill behind (\S+) in the median of seeds 101 to 110, `)

// gapSlack is how many points a gap may grow by before a change of a policy is called worse, and
// shrink by before the head has to say the new one.
const gapSlack = 1.5

// TestHunted: in the scenarios in which a policy was found to do badly it does no worse than is
// written there, and not much better: then the head is to say so.
func TestHunted(t *testing.T) {
	l := newLibrary(false)
	names := scenarios.Hunted()
	if len(names) != 10 {
		t.Errorf("there are %d hunted scenarios, want ten", len(names))
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			text, err := scenarios.Source(name)
			if err != nil {
				t.Fatal(err)
			}
			m := gapLine.FindSubmatch(text)
			if m == nil {
				t.Fatalf("%s does not say its gap", name)
			}
			was, err := strconv.ParseFloat(string(m[2]), 64)
			if err != nil {
				t.Fatal(err)
			}
			policy, rule := string(m[1]), string(m[3])
			c := Config{Policies: slices.Compact([]string{OnDemand, rule, policy}), Baseline: rule,
				Cases: []Case{{Scenario: name, Bound: evaltest.Embedded(t, name)}}}
			for seed := uint64(101); seed <= 110; seed++ {
				c.Seeds = append(c.Seeds, seed)
			}
			runs, err := Runs(t.Context(), c, l.run)
			if err != nil {
				t.Fatal(err)
			}
			var gaps []float64
			for i := range runs {
				if runs[i].Policy == policy {
					gaps = append(gaps, -runs[i].Value("net_savings_delta_pct").V)
				}
			}
			switch gap := stats.Median(gaps); {
			case gap > was+gapSlack:
				t.Errorf("%s is %.1f points behind %s, and was %.1f", policy, gap, rule, was)
			case gap < was-gapSlack:
				t.Errorf("%s is %.1f points behind %s, and was %.1f: write that into the head of %s.yaml", policy, gap, rule, was, name)
			}
		})
	}
}
