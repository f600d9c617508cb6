package format

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/sim"
)

// TestGateWords: results of gates are said for each scenario in every output.
func TestGateWords(t *testing.T) {
	c := shown()
	c.Cases, c.Gates = cases(1, "web-week", "batch-night", "shop"), []eval.Gate{
		mustGate(t, "spot:outage_minutes.median <= 10"), mustGate(t,
			"spot in shop:outage_minutes.median <= 10"), mustGate(t, "outage_minutes.max >= 0"),
	}
	runner := func(ctx context.Context, j eval.Job) (*sim.Result, error) {
		r, err := fake{}.run(ctx, j)
		r.OutageMinutes = map[string]int64{"batch-night": 12}[j.Scenario]
		return r, err
	}
	r, err := eval.Run(context.Background(), c, runner)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := gatesOf(r, "spot", "web-week"), gatesOf(r, "spot", "batch-night"); a != "pass" || b != "fail" {
		t.Errorf("lines of CSV say %s in web-week and %s in batch-night", a, b)
	}
	for f, want := range map[Format]string{
		Table: "✗ spot in batch-night: outage_minutes.median <= 10, is 12", Markdown: `- ✗ spot in batch-night: outage\_minutes.median &lt;= 10, is 12`,
		JUnit: `name="spot in batch-night:outage_minutes.median &lt;= 10"`,
	} {
		var out bytes.Buffer
		if err := Write(&out, r, f, Options{Width: 200, Details: true}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s does not say %q", f, want)
		}
	}
}
