package spotvortex

import (
	"math"
	"testing"

	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/policy/workload"
)

// TestTariffOfPaidNodes looks at four nodes on demand at $0.10 of which some were
// paid for in advance, with spot at $0.03. While some were not, each node that goes
// saves its price, since what was paid for covers another; when all were, none
// saves anything, and what its pods are worth stays what it was.
func TestTariffOfPaidNodes(t *testing.T) {
	for _, c := range []struct {
		reserved           string
		spot, fixed, value float64
		saves, grows       bool
	}{
		{"", 0.03, 0.10, 0.10, true, true},
		{"reserved r a.large 3", 0.03, 0.10, 0.10, true, true},
		{"reserved r a.large 4", 0.03, 0, 0.10, false, false},
		// Half of the price of the last node is covered: a move takes ten hours to
		// pay back what its pods miss, and six are allowed.
		{"plan p 0.35", 0.03, 0.05, 0.10, true, false},
	} {
		s, _, err := policytest.Parse(`type a.large 4
market z a.large on-demand 0.10
market z a.large spot 0.03
` + c.reserved + `
pool web
node n1 web z a.large on-demand
node n2 web z a.large on-demand
node n3 web z a.large on-demand
node n4 web z a.large on-demand
app api 2
pod api n1
pod api n2
pod api n3
pod api n4
`)
		if err != nil {
			t.Fatal(err)
		}
		var sc buffers
		h := sc.survey(s, workload.Collect(s, workload.Options{}, &sc.workload))[0]
		got := h.tariff()
		if math.Abs(got.spot-c.spot) > 1e-9 || math.Abs(got.fixed-c.fixed) > 1e-9 || math.Abs(got.value-c.value) > 1e-9 {
			t.Errorf("%q: %+v, want %v, %v and %v", c.reserved, got, c.spot, c.fixed, c.value)
		}
		st := h.state()
		if grows := (Edge{RiskMax: 1, SavingsMin: 0.15, PaybackMax: 6}).allow(&st, 0); grows != c.grows {
			t.Errorf("%q: grows %v, want %v (%+v)", c.reserved, grows, c.grows, st)
		}
		if all, none := h.costAt(1), h.costAt(0); (none > all) != c.saves {
			t.Errorf("%q: %v on spot, %v on demand", c.reserved, all, none)
		}
	}
}
