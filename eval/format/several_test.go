package format

import (
	"bytes"
	"strings"
	"testing"
)

// TestMarkdownOfSeveral: of several scenarios Markdown has what the terminal has: one table of the
// policies over all of them, one of who is first where, and that of each scenario, with its winners
// marked.
func TestMarkdownOfSeveral(t *testing.T) {
	r := acrossReport(t)
	var out bytes.Buffer
	if err := AnswerOf(r).Markdown(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| POLICY | FIRST IN | WORST SHORTFALL points | WORST OUTAGE min | FROM SPOT min |\n",
		"| calm | spot, portfolio | 60.0 | ",
		"| rough | static | 20.0 | ",
		"| mixed | portfolio | 50.0 | ",
		"- spot: 44 outage min (0 from Spot) in rough, window 1, seed 4 `spotter sim rough --policy spot --seed 4 --from 2026-01-05T00:00:00Z --trace synthetic`\n",
		"\n## rough\n\n| POLICY | BILL $ | SAVED $ | ", "\n| ▸ static | 80.00 | 20.00 | 20.0 | ", "\n| spot ! | 20.00 | 80.00 | 80.0 | ",
		"\\* is the baseline, spotvortex: ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), "\n| ▸ spot |"); n != 1 {
		t.Errorf("spot is first in calm alone, and marked %d times", n)
	}
}
