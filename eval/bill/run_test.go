package bill

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim"
)

// cases are runs in which nodes come and go within minutes, bid, and are paid by a plan. All
// nodes have fees.
var cases = []struct{ scenario, policy string }{
	{"squeeze", "portfolio"}, {"bidding-war", "spotvortex"}, {"gpu-budget", "spotvortex"}, {"zone-outage", "spot"}, {"asg-web", "rescheduler"},
	{"committed", "static"}, {"committed", "on-demand"},
}

const caseLength = 30*time.Hour + 20*time.Minute

// configOf returns a run of a case, which does not start on the hour, on burstable types or
// others.
func configOf(t *testing.T, scenario, spec string, burstable bool) sim.Config {
	t.Helper()
	w := evaltest.Embedded(t, scenario)
	w.Start, w.Duration = w.Start.Add(17*time.Minute), min(w.Duration, caseLength)
	w.Pools = slices.Clone(w.Pools)
	for i := range w.Pools {
		w.Pools[i].Fees = policy.NodeFees{Fee: 20_548, Volumes: 2192}
	}
	w.Types, w.Templates = slices.Clone(w.Types), slices.Clone(w.Templates)
	for i := range w.Types {
		if w.Types[i].Credits = (policy.CPUCredits{}); burstable {
			w.Types[i].Credits = policy.CPUCredits{Baseline: 20 * w.Types[i].VCPU, Surplus: 50_000}
		}
	}
	for i := range w.Templates {
		w.Templates[i].CPUUse = w.Templates[i].Requests.CPU
	}
	return evaltest.Config(t, w, spec, 5)
}

// usageOf runs a case.
func usageOf(t *testing.T, scenario, spec string) (*Usage, *sim.Result) {
	t.Helper()
	cfg := configOf(t, scenario, spec, true)
	w := NewWatch(&cfg, About{Account: "shop", Run: spec, Tags: []policy.Label{{Key: "spotter.dev/simulated", Value: "true"}}})
	r, err := sim.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w.Usage(), r
}

// A ranCase is a case that was run. Tests only read it.
type ranCase struct {
	u *Usage
	r *sim.Result
}

var ran = map[string]ranCase{}

// eachCase calls f for every case, which is run once.
func eachCase(t *testing.T, f func(t *testing.T, u *Usage, r *sim.Result)) {
	for _, c := range cases {
		name := c.scenario + " " + c.policy
		t.Run(name, func(t *testing.T) {
			x, ok := ran[name]
			if !ok {
				x.u, x.r = usageOf(t, c.scenario, c.policy)
				ran[name] = x
			}
			f(t, x.u, x.r)
		})
	}
}

// TestMeter adds up the charges of hours and of days to the bill of the run, of each
// capacity type, and has each node once in a period in which it ran.
func TestMeter(t *testing.T) {
	eachCase(t, func(t *testing.T, u *Usage, r *sim.Result) {
		if int64(len(u.Nodes)) < r.Launches || len(u.Pods) == 0 {
			t.Fatalf("%d nodes of %d launches, %d pods", len(u.Nodes), r.Launches, len(u.Pods))
		}
		for _, every := range []time.Duration{time.Hour, 24 * time.Hour} {
			charges, err := u.Meter(every)
			if err != nil {
				t.Fatal(err)
			}
			var bill, spot, spared policy.Money
			var fees policy.NodeFees
			seen := map[string]bool{}
			for i := range charges {
				c := &charges[i]
				n := &u.Nodes[c.Node]
				bill += c.Billed + c.Fees.Total()
				spared += c.Spared
				fees.Fee, fees.Volumes, fees.Credits = fees.Fee+c.Fees.Fee, fees.Volumes+c.Fees.Volumes, fees.Credits+c.Fees.Credits
				if u.Markets[n.Market].Capacity == policy.Spot {
					spot += c.Billed + c.Fees.Total()
				}
				key := fmt.Sprint(n.Name, c.Period.From)
				if seen[key] || c.Billed < 0 || c.Spared < 0 || c.Time <= 0 || c.Period.Length() != every ||
					c.Period.From.Std().Truncate(every) != c.Period.From.Std() {
					t.Errorf("%s: %+v", n.Name, *c)
				}
				seen[key] = true
			}
			if bill != r.Bill || spot != r.SpotBill || fees != r.Fees || fees.Fee == 0 || fees.Volumes == 0 || fees.Credits == 0 {
				t.Errorf("every %v it is %v, of which %v for Spot and fees of %+v; the run was billed %v, %v and %+v", every,
					bill, spot, fees, r.Bill, r.SpotBill, r.Fees)
			}
			if off := spared - r.Spared; max(off, -off) > policy.Money(len(charges)) {
				t.Errorf("every %v commitments spare %v, in the run %v", every, spared, r.Spared)
			}
		}
	})
}

// TestMeterChecks: a node that is metered at something else than the run was charged is
// a bug, and is said.
func TestMeterChecks(t *testing.T) {
	u, _ := usageOf(t, "squeeze", "portfolio")
	u.Nodes[3].Billed++
	if _, err := u.Meter(time.Hour); err == nil {
		t.Error("it is not said")
	}
}

// TestWatched: the run is the same with and without a bill.
func TestWatched(t *testing.T) {
	_, watched := usageOf(t, "squeeze", "portfolio")
	plain, err := sim.Run(t.Context(), configOf(t, "squeeze", "portfolio", true))
	if err != nil || plain.Hash != watched.Hash {
		t.Errorf("%x and %x, %v", plain.Hash, watched.Hash, err)
	}
}

// TestMeterByHand: of nodes at $2 an hour a reserved instance pays for the first. One that
// leaves at the end of an hour is charged in that hour, ten seconds as a minute.
func TestMeterByHand(t *testing.T) {
	u := plain()
	from := u.Window.From
	u.Markets[0].Capacity, u.Charges[0] = policy.OnDemand, curve([]policy.Time{1}, []policy.Money{2_000_000})
	u.Commitments = []policy.Commitment{{Name: "ri", Amount: 1, Fee: 1_000_000}}
	u.Nodes = []Node{
		{Name: "paid", From: from, To: from + 2*anHour, Billed: 0},
		{Name: "half", From: from + anHour/2, To: from + anHour, Billed: 1_000_000},
		{Name: "brief", From: from + anHour - 10_000, To: from + anHour, Billed: 33_333},
	}
	charges, err := u.Meter(time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	first, second := periodOf(from, time.Hour), periodOf(from+anHour, time.Hour)
	want := []Charge{
		{0, first, time.Hour, 0, 2_000_000, policy.NodeFees{}}, {1, first, time.Hour / 2, 1_000_000, 0, policy.NodeFees{}},
		{2, first, time.Minute, 33_333, 0, policy.NodeFees{}}, {0, second, time.Hour, 0, 2_000_000, policy.NodeFees{}},
	}
	if !slices.Equal(charges, want) {
		t.Errorf("the charges are %+v, want %+v", charges, want)
	}
}

// TestPodOfOneName: a pod that ends before it is bound again leaves the one before it as
// it was.
func TestPodOfOneName(t *testing.T) {
	w := &Watch{owners: map[string]int32{"db": 0}, nodes: map[string]int32{"n": 0}, pods: map[string]int32{}}
	for _, e := range []sim.Entry{
		{At: 5, Kind: "bound", Subject: "db-0", Object: "n"}, {At: 10, Kind: "ended", Subject: "db-0"}, {At: 20, Kind: "ended", Subject: "db-0"},
		{At: 30, Kind: "bound", Subject: "db-0", Object: "n"}, {At: 40, Kind: "ended", Subject: "db-0"},
	} {
		w.Happened(e)
	}
	if p := w.Usage().Pods; len(p) != 2 || p[0].From != 5 || p[0].To != 10 || p[1].From != 30 || p[1].To != 40 {
		t.Errorf("the pods are %+v", p)
	}
}
