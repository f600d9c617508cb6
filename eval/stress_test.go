package eval

import (
	"testing"

	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// TestConditionsOfATruth: runs under two truths cannot be set against each other.
func TestConditionsOfATruth(t *testing.T) {
	w := evaltest.Scenario("web-week", 0)
	seen := map[string]bool{}
	for _, truth := range weather.Truths() {
		seen[EvidenceOf(w.Under(truth)).Conditions] = true
	}
	if len(seen) != len(weather.Truths()) {
		t.Errorf("%d truths have %d conditions", len(weather.Truths()), len(seen))
	}
}

// TestWorseRun: of runs that save alike the one that is out for longer is the worse.
func TestWorseRun(t *testing.T) {
	for _, x := range []struct {
		saved, outage, otherSaved, otherOutage float64
		want                                   bool
	}{{9, 0, 10, 5, true}, {10, 5, 9, 0, false}, {10, 5, 10, 3, true}, {10, 3, 10, 5, false}, {10, 3, 10, 3, false}} {
		if got := worseRun(x.saved, x.outage, x.otherSaved, x.otherOutage); got != x.want {
			t.Errorf("%+v: worse is %v", x, got)
		}
	}
}
