package bill

import (
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/sim"
)

// TestSavings: whatever savings are divided by, the costs add up to the bill of the run and what
// commitments pay of it; only Spot saves.
func TestSavings(t *testing.T) {
	eachCase(t, func(t *testing.T, u *Usage, r *sim.Result) {
		charges, err := u.Meter(time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		want, spot := r.Bill, false
		for _, c := range charges {
			want += c.Spared
			spot = spot || u.Markets[u.Nodes[c.Node].Market].Capacity == policy.Spot
		}
		saved := policy.Money(0)
		for k, by := range []string{"namespace", "pool", "label:app"} {
			all, err := u.Savings(by)
			if err != nil {
				t.Fatal(err)
			}
			var cost, total policy.Money
			for _, s := range all {
				cost, total = cost+s.Cost, total+s.Saved()
			}
			if k == 0 {
				saved = total
			}
			if cost != want || total != saved || (total > 0) != spot {
				t.Errorf("by %s: cost %v, want %v; saved %v, by namespace %v, with Spot %v", by, cost, want, total, saved, spot)
			}
		}
	})
}

// TestSavingsByTeamAndMonth: one Spot node at half the price on demand, which two teams share
// over the end of a month, and one on demand.
func TestSavingsByTeamAndMonth(t *testing.T) {
	at := func(text string) policy.Time {
		x, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return policy.TimeOf(x)
	}
	from, turn, to := at("2026-10-31T12:00:00Z"), at("2026-11-01T00:00:00Z"), at("2026-11-02T00:00:00Z")
	half := policy.Resources{CPU: 2000, Memory: 8 << 30}
	owner := func(team string) Owner {
		return Owner{Namespace: "default", Labels: []policy.Label{{Key: "team", Value: team}}, Requests: half}
	}
	size := policy.InstanceType{Name: "m5.xlarge", Capacity: policy.Resources{CPU: 4000, Memory: 16 << 30}}
	u := &Usage{
		Window: billing.Span{From: from, To: to}, Types: []policy.InstanceType{size, size, size}, Zones: []string{"a", "a", "a"},
		Markets: []policy.Market{
			{Name: "s", Capacity: policy.Spot, Type: 0, OnDemand: 200_000}, {ID: 1, Name: "o", Type: 1, Zone: 1, OnDemand: 200_000},
			{ID: 2, Name: "unknown", Capacity: policy.Spot, Type: 2, Zone: 2},
		},
		Charges: []*billing.Curve{curve([]policy.Time{from}, []policy.Money{100_000}),
			curve([]policy.Time{from}, []policy.Money{200_000}), curve([]policy.Time{from}, []policy.Money{70_000})},
		Nodes: []Node{
			{Name: "n1", Market: 0, From: from, To: to, Billed: policy.NoPrice}, {Name: "n2", Market: 1, From: from, To: to, Billed: policy.NoPrice},
			{Name: "n3", Market: 2, From: turn, To: to, Billed: policy.NoPrice},
		},
		Owners: []Owner{owner("shop"), owner("search")},
		Pods: []Pod{
			{Name: "a", Node: 0, Owner: 0, From: from, To: to}, {Name: "b", Node: 0, Owner: 1, From: turn, To: to},
			{Name: "c", Node: 1, Owner: 1, From: turn, To: to},
		},
	}
	all, err := u.Savings("label:team")
	if err != nil {
		t.Fatal(err)
	}
	// In October 12 hours of $0.10 and of $0.20, of which shop held half of the first; in November
	// 24 hours, of which the teams hold all of the first and search half of the second, and 24 hours
	// of $0.07 without a price on demand.
	want := []Saving{
		{"2026-10", Idle, 3_000_000, 3_600_000}, {"2026-10", "shop", 600_000, 1_200_000},
		{"2026-11", Idle, 4_080_000, 4_080_000}, {"2026-11", "search", 3_600_000, 4_800_000}, {"2026-11", "shop", 1_200_000, 2_400_000},
	}
	if len(all) != len(want) {
		t.Fatalf("got %+v", all)
	}
	for i := range want {
		if all[i] != want[i] {
			t.Errorf("got %+v, want %+v", all[i], want[i])
		}
	}
	if len(u.Warnings) != 1 {
		t.Errorf("warnings %q", u.Warnings)
	}
}
