package portfolio_test

import (
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// TestReturns follows a pool for which Spot has become too expensive: it leaves Spot at once, and
// returns only when Spot has been cheaper by the margin for long enough that the savings forgone,
// $0.05 an hour, equal the cost of a round trip: twice $0.0083 for two pods that are missed for 2.5
// minutes each, and $0.005 for nodes that overlap.
func TestReturns(t *testing.T) {
	s, m, err := policytest.Parse(`
type a.4 4
market y a.4 spot 0.25
market z a.4 on-demand 0.20
market z a.4 spot 0.25
pool web steer=1
app api 1 pdb=1 replicas=2
node n1 web z a.4 spot
pod api n1 2`)
	if err != nil {
		t.Fatal(err)
	}
	p, err := build("disturbance=0s")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		after time.Duration
		price float64
		want  float64
	}{
		{0, 0.25, 0},
		{10 * time.Minute, 0.19, 0}, // cheaper, but not by the margin
		{10 * time.Minute, 0.10, 0}, // the time starts
		{30 * time.Minute, 0.10, 0},
		{10 * time.Minute, 0.19, 0}, // and starts again
		{10 * time.Minute, 0.10, 0},
		{31 * time.Minute, 0.10, 0},
		{2 * time.Minute, 0.10, 1},
		{10 * time.Minute, 0.19, 1}, // within the margin nothing changes
		{10 * time.Minute, 0.21, 0},
	} {
		s.Now = s.Now.Add(c.after)
		s.Markets[0].Price, s.Markets[2].Price = policy.Dollars(c.price), policy.Dollars(c.price)
		_, m = p.Decide(s, m)
		if got := m.Pool("web").Target; got != c.want {
			t.Fatalf("at %v and $%v the share is %v, not %v", s.Now, c.price, got, c.want)
		}
	}
}

// TestNothingOnDemand follows a pool of an auction where nothing is sold on demand: while
// no price is known it chooses nothing that it would hold on to, and then it is all spot.
func TestNothingOnDemand(t *testing.T) {
	s, m, err := policytest.Parse(`
type a.4 4
market z a.4 on-demand 0.20
market z a.4 spot 0.05
pool web steer=0
app api 1 pdb=1 replicas=2
pod api pending 2`)
	if err != nil {
		t.Fatal(err)
	}
	s.Pools[0].Provisioner, s.Markets[0].OnDemandModelled = policy.ProvisionerNone, true
	p, err := build("")
	if err != nil {
		t.Fatal(err)
	}
	s.Markets[0].Offered, s.Markets[1].Offered = false, false
	for range 3 {
		s.Now = s.Now.Add(5 * time.Second)
		if _, m = p.Decide(s, m); m.Pool("web").HasTarget {
			t.Fatalf("with no price known it is to be %v spot", m.Pool("web").Target)
		}
	}
	s.Markets[1].Offered = true
	for _, before := range []float64{1, 0} { // as it chose by itself, and as an earlier version did
		x := m.Pool("web")
		if before == 0 {
			x.Target, x.HasTarget = 0, true
			m = m.With(x)
		}
		s.Now = s.Now.Add(5 * time.Second)
		var plan policy.Plan
		if plan, m = p.Decide(s, m); m.Pool("web").Target != 1 || len(plan.Launches) == 0 {
			t.Fatalf("it is to be %v spot, and launches are %v", m.Pool("web").Target, plan.Launches)
		}
	}
}
