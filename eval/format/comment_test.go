package format

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/test/golden"
)

func commentOf(t *testing.T, r *eval.Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, r, Comment, Options{Width: 0, Details: true}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestCommentOutputs compares comments with files that were looked at: a change that
// fails, and a report that has nothing to compare with.
func TestCommentOutputs(t *testing.T) {
	golden.Hold(t, "testdata/golden/ci.comment.md", commentOf(t, ciReport(t)))
	r, err := eval.Run(t.Context(), shown(), fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	golden.Hold(t, "testdata/golden/report.comment.md", commentOf(t, r))
}

// A change within chance is no reason to begin a comment; one beyond it, a gate that
// fails, and a side that has nothing to compare with are.
func TestCommentQuiet(t *testing.T) {
	c := shown()
	c.Cases, c.Seeds, c.Gates = cases(1, "a"), eval.DefaultSeeds(10), nil
	report := func(gates ...eval.Gate) *eval.Report {
		t.Helper()
		c.Gates = gates
		r, err := eval.Run(t.Context(), c, fake{}.run)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	with := func(r *eval.Report, points float64) *eval.Report {
		setAgainst(t, r, func(*eval.OtherRun) float64 { return points })
		return r
	}
	first := report()
	if err := first.Compare(t.Context(), eval.Against{Other: refusing{}}, fake{}.run); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name  string
		r     *eval.Report
		quiet bool
		title string
	}{
		{"no change", with(report(), 0), true, "### ✓ Spotter: no change, $"},
		{"dearer", with(report(), 3), false, "### ✗ Spotter: +$"},
		{"cheaper", with(report(), -3), false, "### ✓ Spotter: −$"},
		{"a gate fails", with(report(mustGate(t, "spot:bill_usd.max <= 0")), 0), false, "### ✗ Spotter: no change, $"},
		{"first run", first, false, "### ⚠ Spotter: $"},
		{"nothing to compare with", report(), false, "### ✓ Spotter: $"},
	} {
		text := commentOf(t, x.r)
		rest, quiet := strings.CutPrefix(text, CommentQuiet+"\n")
		if quiet != x.quiet || !strings.HasPrefix(rest, x.title) {
			t.Errorf("%s: quiet is %v, want %v and %q:\n%.200s", x.name, quiet, x.quiet, x.title, text)
		}
		if says := "There is nothing to compare with"; strings.Contains(text, says) != (x.r.Comparison == nil || x.r == first) {
			t.Errorf("%s: wrong about what it is compared with:\n%.400s", x.name, text)
		}
	}
	if text := commentOf(t, first); !strings.Contains(text, "other side cannot run a") ||
		!strings.Contains(text, "| a, spot |") || !strings.Contains(text, "on demand `") {
		t.Errorf("the first run does not show the state, and why:\n%s", text)
	}
}

// The text of a comment where the workloads have another demand, where one of two scenarios is
// new, and where the other program reports no more than the bill.
func TestCommentSays(t *testing.T) {
	c := shown()
	c.Cases, c.Seeds, c.Gates = cases(1, "a", "b"), eval.DefaultSeeds(10), nil
	r, err := eval.Run(t.Context(), c, fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	setAgainst(t, r, func(*eval.OtherRun) float64 { return 3 })
	main := r.Comparison.Main()
	main.Demand, main.Before.Rough, main.Before.OnDemandBill, main.After.OnDemandBill = 10, true, 1000, 2000
	for i := range r.Comparison.Changes {
		if x := &r.Comparison.Changes[i]; x.Scenario != main.Scenario {
			x.Pairs, x.Changed = 0, 0
		}
	}
	r.Comparison.Warnings = []string{"the other side cannot run it"}
	text := commentOf(t, r)
	for _, want := range []string{"All on demand they would cost $1,000 → $2,000 a month.", "a month: nodes cost more\n",
		"Where “before” is empty there is nothing to compare with: the other side cannot run it", "| – | $"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%.1500s", want, text)
		}
	}
}

// A refusing side knows no scenario.
type refusing struct{}

func (refusing) Runs(context.Context, string, []string, []uint64) ([]eval.OtherRun, error) {
	return nil, fmt.Errorf("%w: no such file", eval.ErrRefused)
}

// TestCommentFits: however much is compared, a comment fits, with the end of what is
// collapsed.
func TestCommentFits(t *testing.T) {
	c := shown()
	c.Seeds, c.Cases = eval.DefaultSeeds(2), nil
	for i := range 60 {
		c.Cases = append(c.Cases, cases(1, fmt.Sprintf("worlds/team-%02d/%s.yaml", i, strings.Repeat("x", 80)))...)
	}
	r, err := eval.Run(t.Context(), c, fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	text := commentOf(t, r)
	if len(text) > MarkdownMax || !strings.HasSuffix(text, "\n</details>\n") || strings.Count(text, "<details>") != 1 {
		t.Errorf("%d bytes, which end with %q", len(text), text[len(text)-40:])
	}
	head, _, _ := strings.Cut(text, "<details>")
	if strings.Count(head, "\n| worlds") != reviewRowsMax || !strings.Contains(head, " more are below.") ||
		!strings.Contains(head, " more gates are below") {
		t.Errorf("what is not collapsed:\n%s", head)
	}
}

func TestSparkline(t *testing.T) {
	many := make([]float64, 101)
	for i := range many {
		many[i] = float64(100 - i)
	}
	for _, c := range []struct {
		values    []float64
		low, high float64
		want      string
	}{
		{[]float64{3, 1, 2}, 1, 3, "▁▅█"},
		{[]float64{5, 5}, 5, 5, "▁▁"},
		{[]float64{7}, 0, 7, "█"},
		{many, 0, 100, "▁▁▂▂▂▃▃▄▄▄▅▅▅▆▆▆▇▇██"},
	} {
		if got := sparkline(c.values, c.low, c.high); got != c.want {
			t.Errorf("%v: %s, want %s", c.values, got, c.want)
		}
	}
}

func TestMoneyWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{figures.Dollars(1234567.8), "$1,234,568"}, {figures.Dollars(99.994), "$99.99"}, {figures.Dollars(-1234),
			"−$1,234"}, {figures.Dollars(-0.001), "$0.00"},
		{figures.DollarChange(12), "+$12.00"}, {figures.DollarChange(0.001), "$0.00"}, {figures.DollarChange(-100), "−$100"},
		{changeWords(100, 150), "+$50.00 (+50%)"}, {changeWords(100, 98), "−$2.00 (−2.0%)"}, {changeWords(0, 5),
			"+$5.00"}, {changeWords(5, 5), "$0.00"},
		{arrow("1", "1"), "1"}, {arrow("1", "2"), "1 → 2"},
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
}
