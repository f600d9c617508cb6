package trace

import (
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/tracetest"
)

var at, cents, made = tracetest.At, tracetest.Cents, tracetest.New

func TestInfoText(t *testing.T) {
	tr := made(t, "small", at(6, 0),
		trace.Series{
			Provider: "aws", Region: "us-east-1", Zone: "us-east-1b", Type: "m5.large",
			At: []policy.Time{at(1, 3), at(1, 9), at(3, 0), at(4, 23)}, Spot: cents(4, 5, -1, 6),
			OnDemand: cents(10, 10, 10, 11), Available: []int8{1, 0, 0, -1},
		},
		trace.Series{
			Provider: "aws", Region: "us-east-1", Zone: "us-east-1a", Type: "c5.large",
			At: []policy.Time{at(1, 0), at(2, 12)}, Spot: cents(3, 4),
		},
		trace.Series{
			Provider: "aws", Region: "us-east-1", Zone: "us-east-1a", Type: "c5.large", Product: "Windows",
			At: []policy.Time{at(1, 1), at(2, 11), at(2, 13)}, Spot: cents(13, 14, -1),
		},
		trace.Series{
			Provider: "gcp", Region: "us-central1", Zone: "us-central1-a", Type: "n2 odd/name",
			At: []policy.Time{at(2, 0)}, Spot: cents(7),
		})
	for _, c := range []struct {
		change func(*trace.Trace)
		want   string
	}{
		{func(t *trace.Trace) {}, "recorded"},
		{func(t *trace.Trace) { t.Unmarked = true }, "of unknown origin"},
		{func(t *trace.Trace) { t.Meta = map[string]string{trace.MetaModelled: "prices are modelled"} }, "modelled (the recording has none)"},
		{func(t *trace.Trace) { t.Synthetic = true }, "synthetic (generated, not recorded)"},
	} {
		c.change(tr)
		text := inventoryOf(tr).text(false)
		for _, want := range []string{
			c.want, "2026-01-01 00:00Z to 2026-01-06 00:00Z (5.0 days)",
			"aws, gcp", "4 of 3 instance types", "for 1 markets", "2 unknown",
			"gcp/us-central1/us-central1-a/n2 odd/name",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
		if strings.Contains(text, "NaN") {
			t.Errorf("NaN in\n%s", text)
		}
	}
}

// Rackspace publishes no on-demand price: a modelled one is counted as such.
func TestModelledOnDemand(t *testing.T) {
	v := inventoryOf(made(t, "auction", at(5, 0), trace.Series{
		Provider: "rackspace", Region: "us-east-iad-1", Zone: "us-east-iad-1", Type: "gp.vs1.medium-iad",
		At: []policy.Time{at(1, 0)}, Spot: []policy.Money{policy.Dollars(0.005)},
	}))
	if v.Derived != 1 || len(v.Unpriced) != 0 || !strings.Contains(v.text(false), "1 modelled") {
		t.Errorf("%d modelled, %v unknown", v.Derived, v.Unpriced)
	}
}
