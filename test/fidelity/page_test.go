package fidelity

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/test/golden"
)

// The pages that show the random days: the totals are a part of the first, between two
// markers, and the second lists all days.
const (
	totalsPage = "../../docs/fidelity.md"
	daysPage   = "../../docs/random-days.md"

	totalsBegin = "<!-- random days, by go test ./test/fidelity -run TestPages -rewrite -->\n"
	totalsEnd   = "<!-- end of random days -->\n"
)

// TestPages: the pages show the random days that are kept, and nothing else.
func TestPages(t *testing.T) {
	var totals, list strings.Builder
	list.WriteString(daysIntro)
	for v := scenarios.OldestKarpenter; v <= scenarios.NewestKarpenter; v++ {
		days := keptDays(t, v)
		if len(days) == 0 {
			continue
		}
		if totals.Len() == 0 {
			fmt.Fprintln(&totals,
				"| Karpenter (days) | figure | error of the mean | simulated and real run apart | two real runs apart | beyond that | within 20 simulated |")
			fmt.Fprintln(&totals, "|:--|:--|--:|--:|--:|--:|--:|")
		}
		totals.WriteString(totalsTable(v, days))
		fmt.Fprintf(&list, "\n## Karpenter %v\n\n%s", v, dayTable(days))
	}
	if totals.Len() == 0 {
		fmt.Fprintln(&totals, "No day is published yet.")
		fmt.Fprint(&list, "\nNo day is published yet.\n")
	}
	page, err := os.ReadFile(totalsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, opened := strings.Cut(string(page), totalsBegin)
	_, after, closed := strings.Cut(rest, totalsEnd)
	if !opened || !closed {
		t.Fatalf("%s lacks the markers of the random days", totalsPage)
	}
	golden.Hold(t, totalsPage, before+totalsBegin+"\n"+totals.String()+"\n"+totalsEnd+after)
	golden.Hold(t, daysPage, list.String())
}

const daysIntro = `# Random days

Every random day, in the simulator and twice on a real control plane with Karpenter's core: [how it is done](fidelity.md#random-days).
A cell has the mean and the range of 20 simulated runs, then both real runs. The trajectory is the integral of the difference between
the numbers of nodes, of a simulated and a real run and of both real ones, as a part of the real node-hours. The commit is that from
which a day was drawn, simulated and played; a second one simulated it again.
`

// totalsTable returns the rows of a version.
func totalsTable(v scenarios.KarpenterVersion, days []*drawnDay) string {
	var b strings.Builder
	for i, x := range totals(days) {
		first, errs, covered := "", "", ""
		if i == 0 {
			first = fmt.Sprintf("%v (%d)", v, len(days))
		}
		if x.name != drawnTrajectory {
			_, from, to := x.coverage()
			errs, covered = x.err.percent(true), fmt.Sprintf("%d of %d (%.0f to %.0f%%)", x.covered, x.runs, 100*from, 100*to)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", first, x.name, errs, x.simulated.percent(false),
			x.real.percent(false), x.beyond.percent(true), covered)
	}
	return b.String()
}
