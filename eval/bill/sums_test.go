package bill

import (
	"slices"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim"
)

// TestSums: whatever a bill is divided by, the parts add up to the bill of the run, and no more ran
// on Spot than ran.
func TestSums(t *testing.T) {
	eachCase(t, func(t *testing.T, u *Usage, r *sim.Result) {
		for _, by := range []string{ByPool, ByNamespace, ByDay} {
			sums, err := u.Sums(by)
			if err != nil {
				t.Fatal(err)
			}
			sum, names := policy.Money(0), []string(nil)
			for _, s := range sums {
				sum += s.Billed
				names = append(names, s.Name)
				if s.SpotHours > s.NodeHours || by != ByNamespace && s.NodeHours <= 0 {
					t.Errorf("by %s: %s has %v node-hours, %v of them on Spot", by, s.Name, s.NodeHours, s.SpotHours)
				}
			}
			if sum != r.Bill {
				t.Errorf("by %s: the parts %v add up to %v, want %v", by, names, sum, r.Bill)
			}
			if by == ByDay && (!slices.IsSorted(names) || len(names) < 2) {
				t.Errorf("the days are %v", names)
			}
		}
	})
}
