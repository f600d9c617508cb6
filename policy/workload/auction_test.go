package workload_test

import (
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/policy/workload"
)

// TestAuctionsCountLikeZones holds that three auctions of one region spread a
// pool as three zones do, and that to the letter they do not.
func TestAuctionsCountLikeZones(t *testing.T) {
	s, _, err := policytest.Parse(`type a 4
type b 4
type c 4
market iad a on-demand 0.2
market iad a spot 0.01
market iad b spot 0.01
market iad c spot 0.01
pool web none`)
	if err != nil {
		t.Fatal(err)
	}
	zones := func(compat bool) int { return featuresOf(s, 0, workload.Options{Compat: compat}).Zones }
	if n := zones(false); n != 1 {
		t.Errorf("%d zones of a provider that has no auctions, want 1", n)
	}
	for i := range s.Markets {
		s.Markets[i].Provider = policy.Rackspace
	}
	if n, letter := zones(false), zones(true); n != 3 || letter > 1 {
		t.Errorf("%d zones, %d to the letter; want 3 and at most 1", n, letter)
	}
	s.Markets[3].Offered = false
	if n := zones(false); n != 2 {
		t.Errorf("%d with an auction closed, want 2", n)
	}
}
