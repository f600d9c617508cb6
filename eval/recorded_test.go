package eval

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// recorded returns a report of one week under on-demand for $100 and each of policies for $50
// plus an extra cost, under seeds from 1 to n.
func recorded(name string, n uint64, dearer float64, policies ...string) *Recorded {
	r := &Recorded{Name: name, Version: "v1", Policies: append([]string{OnDemand}, policies...),
		Cases: []CaseReport{{Scenario: "web", To: Instant(policy.Time(0).Add(7 * 24 * time.Hour)), Evidence: Evidence{Conditions: "same"}}}}
	for seed := uint64(1); seed <= n; seed++ {
		r.Seeds = append(r.Seeds, seed)
		for _, p := range r.Policies {
			x := OtherRun{Scenario: "web", Seed: seed, Policy: p, Weather: strings.Repeat("0a", 32),
				Hash: strings.Repeat("00", 32), Bill: policy.Dollars(100), Evidence: r.Cases[0].Evidence}
			if p != OnDemand {
				x.Bill = policy.Dollars(50 + dearer)
				if dearer != 0 {
					x.Hash = strings.Repeat("11", 32)
				}
			}
			r.Runs = append(r.Runs, x)
		}
	}
	return r
}

// Two recorded reports are compared run by run, over the seeds that both have.
func TestCompareRecorded(t *testing.T) {
	for _, c := range []struct {
		name         string
		older, newer *Recorded
		want         Outcome
		savings      float64
		seeds        int
	}{
		{"equal", recorded("a", 20, 0, "spot"), recorded("b", 20, 0, "spot"), Equal, 0, 20},
		{"dearer by $7 of $100", recorded("a", 20, 0, "spot"), recorded("b", 30, 7, "spot"), Worse, -7, 20},
		{"cheaper", recorded("a", 30, 7, "spot"), recorded("b", 20, 0, "spot"), NoWorse, 7, 20},
		{"too few seeds", recorded("a", 3, 0, "spot"), recorded("b", 20, 7, "spot"), Undecided, -7, 3},
		{"a policy that the older one lacks", recorded("a", 20, 0, "spot"), recorded("b", 20, 0, "portfolio", "spot"), Equal, 0, 20},
	} {
		got, err := CompareRecorded(c.older, c.newer)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		spot := got.Changes[slices.IndexFunc(got.Changes, func(x Change) bool { return x.Policy == "spot" })]
		if spot.Outcome != c.want || math.Abs(spot.Savings.Median-c.savings) > 1e-9 || spot.SavingsWeek != c.savings ||
			len(got.Seeds) != c.seeds || got.Other != "a" {
			t.Errorf("%s: %+v over %d seeds, want %s and %v", c.name, spot, len(got.Seeds), c.want, c.savings)
		}
	}
	if got, err := CompareRecorded(recorded("a", 20, 0), recorded("b", 30, 0, "spot")); err != nil || len(got.Changes) != 1 ||
		!slices.Equal(got.Warnings, []string{"only b has spot", "only b has 10 of its 30 seeds"}) {
		t.Errorf("a policy and seeds of one side come to %+v, %v", got, err)
	}
	other := recorded("a", 20, 0, "spot")
	other.Runs[1].Conditions = "others"
	if got, err := CompareRecorded(other, recorded("b", 20, 0, "spot")); err != nil || got.Outcome != NotComparable || len(got.Warnings) == 0 {
		t.Errorf("other conditions come to %+v, %v", got, err)
	}
	far := recorded("c", 2, 0, "spot")
	far.Seeds = []uint64{77}
	if _, err := CompareRecorded(other, far); !errors.Is(err, ErrConfig) {
		t.Errorf("reports without a seed in common: %v", err)
	}
	broken := recorded("d", 2, 0, "spot")
	broken.Runs[1].Hash = "xyz"
	if _, err := CompareRecorded(other, broken); err == nil || !strings.Contains(err.Error(), "spot of web with seed 1") {
		t.Errorf("a hash that is none: %v", err)
	}
}
